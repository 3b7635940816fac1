// Package wal damages the write-ahead log of an SQLite database as a crash of the machine
// could: behind the last commit, never in it.
package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
)

// Ways to tear a log.
const (
	Garbage  = "garbage"            // random bytes
	Half     = "half a frame"       // the beginning of a good frame
	Checksum = "a wrong checksum"   // a whole frame with the salt of the log and a wrong checksum
	Zeros    = "zeros"              // space that was allocated and never written
	Cut      = "an uncommitted end" // frames behind the last commit are cut in the middle
)

// Ways lists them.
var Ways = []string{Garbage, Half, Checksum, Zeros, Cut}

// Sizes of the format.
const (
	headerSize = 32
	frameSize  = 24
)

// log is what Tear has to know of a file.
type log struct {
	page  int
	order binary.ByteOrder // of checksums
	salt  [8]byte
	data  []byte
	// committed is where the last committed frame ends, and valid where the last good frame does.
	committed, valid int
}

// parse reads a log as SQLite does: a frame is good if it has the salt of the header and its
// checksum continues those before.
func parse(data []byte) (log, error) {
	l := log{data: data}
	if len(data) < headerSize {
		return l, errors.New("it has no header")
	}
	switch binary.BigEndian.Uint32(data) {
	case 0x377f0682:
		l.order = binary.LittleEndian
	case 0x377f0683:
		l.order = binary.BigEndian
	default:
		return l, errors.New("it is not a write-ahead log")
	}
	l.page = int(binary.BigEndian.Uint32(data[8:]))
	copy(l.salt[:], data[16:24])
	a, b := l.sum(0, 0, data[:24])
	if a != binary.BigEndian.Uint32(data[24:]) || b != binary.BigEndian.Uint32(data[28:]) || l.page < 512 {
		return l, errors.New("its header is damaged")
	}
	l.committed, l.valid = headerSize, headerSize
	for l.valid+frameSize+l.page <= len(data) {
		f := data[l.valid : l.valid+frameSize+l.page]
		if string(f[8:16]) != string(l.salt[:]) {
			break
		}
		a, b = l.sum(a, b, f[:8])
		a, b = l.sum(a, b, f[frameSize:])
		if a != binary.BigEndian.Uint32(f[16:]) || b != binary.BigEndian.Uint32(f[20:]) {
			break
		}
		l.valid += len(f)
		if binary.BigEndian.Uint32(f[4:]) != 0 { // the size of the database after a commit
			l.committed = l.valid
		}
	}
	return l, nil
}

// sum continues a checksum.
func (l log) sum(a, b uint32, data []byte) (uint32, uint32) {
	for i := 0; i+8 <= len(data); i += 8 {
		a += l.order.Uint32(data[i:]) + b
		b += l.order.Uint32(data[i+4:]) + a
	}
	return a, b
}

// Tear damages the log in a file and says how. Without a log there is nothing to do.
func Tear(file, how string, random *rand.Rand) (string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(data) == 0 {
		return "there is no log", nil
	}
	if err != nil {
		return "", err
	}
	l, err := parse(data)
	if err != nil {
		return "nothing: " + err.Error(), nil // the server was killed while it began the log
	}
	end, at := l.tail(how, random)
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := f.Truncate(int64(at)); err != nil {
		return "", err
	}
	if _, err := f.WriteAt(end, int64(at)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes at %d of %d", len(end), at, len(data)), f.Sync()
}

// tail is what to write, and where: behind the last commit.
func (l log) tail(how string, random *rand.Rand) (end []byte, at int) {
	frame := frameSize + l.page
	bytes := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	forged := bytes(frame)
	binary.BigEndian.PutUint32(forged, 1+random.Uint32N(20)) // a page that exists
	binary.BigEndian.PutUint32(forged[4:], 1+random.Uint32N(20))
	copy(forged[8:], l.salt[:])
	switch how {
	case Half:
		return forged[:1+random.IntN(frame-1)], l.committed
	case Checksum:
		return forged, l.committed
	case Zeros:
		return make([]byte, 1+random.IntN(3*frame)), l.committed
	case Cut:
		if l.valid > l.committed {
			return nil, l.committed + random.IntN(l.valid-l.committed)
		}
	}
	return bytes(1 + random.IntN(3*frame)), l.committed
}
