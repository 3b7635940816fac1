package pg

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// The types that go in and come out, by their numbers in PostgreSQL.
const (
	oidBool, oidBytes, oidInt8, oidInt2, oidInt4, oidText = 16, 17, 20, 21, 23, 25

	oidBools, oidBytesList, oidInt4s, oidTexts, oidInt8s = 1000, 1001, 1007, 1009, 1016
)

// params are values in the form in which they travel.
type params struct {
	values  [][]byte
	oids    []uint32
	formats []int16
}

func encode(args []any) (p params, err error) {
	for _, v := range args {
		oid, b, err := encodeOne(v)
		if err != nil {
			return p, err
		}
		p.values, p.oids, p.formats = append(p.values, b), append(p.oids, oid), append(p.formats, 1)
	}
	return p, nil
}

func encodeOne(v any) (oid uint32, b []byte, err error) {
	switch v := v.(type) {
	case nil:
		return 0, nil, nil
	case int64:
		return oidInt8, binary.BigEndian.AppendUint64(nil, uint64(v)), nil
	case bool:
		return oidBool, boolByte(v), nil
	case string:
		return oidText, storable(v), nil
	case []byte:
		return oidBytes, v, nil
	case []int64:
		return oidInt8s, array(oidInt8, len(v), func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v[i])) }), nil
	case []int32:
		return oidInt4s, array(oidInt4, len(v), func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v[i])) }), nil
	case []bool:
		return oidBools, array(oidBool, len(v), func(i int) []byte { return boolByte(v[i]) }), nil
	case []string:
		return oidTexts, array(oidText, len(v), func(i int) []byte { return storable(v[i]) }), nil
	case []*string:
		return oidTexts, array(oidText, len(v), func(i int) []byte {
			if v[i] == nil {
				return nil
			}
			return storable(*v[i])
		}), nil
	case [][]byte:
		return oidBytesList, array(oidBytes, len(v), func(i int) []byte { return v[i] }), nil
	}
	return 0, nil, fmt.Errorf("a %T cannot be stored", v)
}

func boolByte(b bool) []byte {
	if b {
		return []byte{1}
	}
	return []byte{0}
}

// array is the binary form of a list; nil is NULL.
func array(oid uint32, n int, of func(int) []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 1)    // there may be NULLs
	b = binary.BigEndian.AppendUint32(b, oid)
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = binary.BigEndian.AppendUint32(b, 1) // the first index
	for i := range n {
		v := of(i)
		if v == nil {
			b = binary.BigEndian.AppendUint32(b, 1<<32-1)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	return b
}

// escape begins a text that PostgreSQL does not take as it is.
const escape = "\x01"

// storable is a text as it is stored. PostgreSQL takes neither zero bytes nor what is not UTF-8;
// such texts are rare, and are stored as hexadecimal digits.
func storable(s string) []byte {
	if strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, escape) && utf8.ValidString(s) {
		return append(make([]byte, 0, len(s)), s...)
	}
	return hex.AppendEncode([]byte(escape), []byte(s))
}

// stored reverses storable.
func stored(b []byte) string {
	if digits, ok := strings.CutPrefix(string(b), escape); ok {
		if s, err := hex.DecodeString(digits); err == nil {
			return string(s)
		}
	}
	return string(b)
}

// decode reads a value. What it returns is a copy.
func decode(f pgconn.FieldDescription, b []byte) (any, error) {
	if b == nil {
		return nil, nil
	}
	switch {
	case f.DataTypeOID == oidInt8 && len(b) == 8:
		return int64(binary.BigEndian.Uint64(b)), nil
	case f.DataTypeOID == oidInt4 && len(b) == 4:
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case f.DataTypeOID == oidInt2 && len(b) == 2:
		return int64(int16(binary.BigEndian.Uint16(b))), nil
	case f.DataTypeOID == oidBool && len(b) == 1:
		return b[0] != 0, nil
	case f.DataTypeOID == oidText:
		return stored(b), nil
	case f.DataTypeOID == oidBytes:
		return append([]byte{}, b...), nil
	}
	return nil, fmt.Errorf("the column %s has the unexpected type %d", f.Name, f.DataTypeOID)
}

// Micros is how a time is stored.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Moment reverses Micros.
func Moment(v any) time.Time { return time.UnixMicro(Number(v)).UTC() }

// Number is the number of a column; 0 if it is NULL.
func Number(v any) int64 {
	n, _ := v.(int64)
	return n
}

// Text is the string of a column that may be NULL.
func Text(v any) string {
	s, _ := v.(string)
	return s
}

// Truth is the value of a boolean column; false if it is NULL.
func Truth(v any) bool {
	b, _ := v.(bool)
	return b
}

// Bytes is a blob; nil and empty are the same.
func Bytes(v any) []byte {
	b, _ := v.([]byte)
	return b
}

// OptionalTime is a time that is zero if it is NULL, and OrNull the reverse.
func OptionalTime(v any) time.Time {
	if v == nil {
		return time.Time{}
	}
	return Moment(v)
}

// OrNull is NULL for the zero time.
func OrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return Micros(t)
}

// OrNone is NULL for an empty text.
func OrNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Blob is NULL for no bytes at all.
func Blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
