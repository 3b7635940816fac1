package rest

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckhand/api"
)

// Limits of a request.
const (
	MaxBody  = 16 << 20
	MaxDepth = 64
	// MaxPublicBody is what strangers may send: it holds a login, and no more memory is set aside for them.
	MaxPublicBody = 64 << 10
)

// number is a JSON number as it was written, so that 1.0 and 1 stay different.
type number string

// ReadBody reads the whole body of JSON, within the limit; see ReceiveJSON.
func (i *Intake) ReadBody(w http.ResponseWriter, r *http.Request, user string, limit int64) ([]byte, func(), error) {
	if ct := r.Header.Get("Content-Type"); ct != "" && ct != "application/json" {
		t, _, err := mime.ParseMediaType(ct)
		if err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
			return nil, func() {}, Fail(http.StatusUnsupportedMediaType, api.CodeBadRequest, "The request body must be JSON. Send Content-Type: application/json.")
		}
	}
	return i.ReceiveJSON(w, r, user, limit)
}

// TooLarge refuses a body that is larger than the limit.
func TooLarge(limit int64) *Fault {
	f := Fail(http.StatusRequestEntityTooLarge, api.CodeTooLarge, "The request body is too large. The limit is "+Size(limit)+".")
	f.Header = http.Header{"Connection": {"close"}}
	return f
}

// Size is a number of bytes as people read it.
func Size(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// parse decodes a body into maps, slices, strings, bools, numbers and nil, strictly: no
// duplicate names, no invalid UTF-8, nothing after the value, no endless nesting.
func parse(b []byte) (any, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return map[string]any{}, nil
	}
	d := decoders.Get().(*jsontext.Decoder)
	d.Reset(bytes.NewReader(b))
	defer decoders.Put(d)
	v, err := value(d, 0)
	if err == nil {
		if _, more := d.ReadToken(); !errors.Is(more, io.EOF) {
			err = errTrailing
		}
	}
	if err == nil {
		return v, nil
	}
	var invalid *api.ValidationError
	if errors.As(err, &invalid) {
		return nil, err
	}
	return nil, api.Invalid("json_invalid", "The request body is not valid JSON: "+reason(err)+".")
}

// decoders are kept, since each brings a buffer along.
var decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(bytes.NewReader(nil)) }}

func tooDeep() error { return api.Invalid("json_invalid", "The request body is nested too deeply.") }

func value(d *jsontext.Decoder, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, tooDeep()
	}
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		return number(t.String()), nil
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := value(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return list, err
	}
	object := map[string]any{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if object[key], err = value(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = d.ReadToken()
	return object, err
}

var errTrailing = errors.New("unexpected data after the JSON value")

// reason says what is wrong with the JSON without repeating any of it: it may hold a secret.
func reason(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, errTrailing):
		return text
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "duplicate name in an object"
	case strings.Contains(text, "invalid UTF-8"):
		return "invalid UTF-8"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "unexpected end"
	case strings.Contains(text, "surrogate"):
		return "invalid escape sequence"
	}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		return "syntax error at byte " + strconv.FormatInt(syn.ByteOffset, 10)
	}
	return "cannot be parsed"
}

// decodeInto fills a Go value from a body that was validated.
func decodeInto(b []byte, v any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{}")
	}
	err := json.Unmarshal(b, v)
	var invalid *api.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		return prefixed(invalid, err)
	}
	return api.Invalid("json_invalid", "A value in the request body is out of range or has the wrong type.")
}

// prefixed makes sure every path begins with where it is: a type that decodes
// itself does not know in which field it stands, but the decoder does.
func prefixed(e *api.ValidationError, err error) *api.ValidationError {
	at := []any{"body"}
	var where *json.SemanticError
	if errors.As(err, &where) {
		for name := range where.JSONPointer.Tokens() {
			at = append(at, name)
		}
	}
	for i, d := range e.Detail {
		if len(d.Loc) == 0 || d.Loc[0] != "body" {
			e.Detail[i].Loc = slices.Concat(at, d.Loc)
		}
	}
	return e
}

// WriteJSON sends v. Encoding v2 writes nil slices as [] and does not escape
// HTML; maps are sorted, so that the same state gives the same answer.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	var b []byte
	var err error
	if a, ok := v.(interface{ AppendJSON([]byte) ([]byte, error) }); ok {
		b, err = a.AppendJSON(make([]byte, 0, 256))
	} else {
		b, err = json.Marshal(v, json.Deterministic(true))
	}
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"The response could not be encoded.","msg_id":"`+api.CodeInternal+`"}`)
	}
	h := w.Header()
	h["Content-Type"] = JSONType
	h["Content-Length"] = []string{strconv.FormatInt(int64(len(b)), 10)}
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// JSONType is the Content-Type of JSON, as a header has it.
var JSONType = []string{"application/json"}
