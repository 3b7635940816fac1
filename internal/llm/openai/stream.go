package openai

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"deckhand/internal/llm"
)

// frames sends a request and yields the frames of the answer, or why there are
// no more.
func (w wire) frames(ctx context.Context, path string, body [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		res, err := llm.Post(ctx, w.client, w.base+"/"+path+w.query, w.header, body)
		if err == nil {
			res, err = onlyStreams(res)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		defer res.Body.Close()
		for e, err := range llm.Events(res.Body) {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case len(e.Data) == 0:
				continue
			case bytes.HasPrefix(e.Data, []byte("[DONE]")) || !yield(e.Data, nil):
				return
			}
		}
	}
}

// head is what every frame may have instead of its contents.
type head struct {
	Error jsontext.Value `json:"error"`
}

func (h head) failed() bool { return len(h.Error) > 0 && h.Error.Kind() != 'n' }

// lateError is what a provider says inside of a stream instead of going on.
type lateError struct{ data []byte }

func (e *lateError) Error() string { return "the provider failed during the reply" }

// unreadableError says that a frame is not JSON, or not an object.
type unreadableError struct{ why string }

func (e *unreadableError) Error() string {
	return "the server sent an invalid response: " + e.why
}

// How JSON is read. lax is always accepted. With loose, reading continues after a value of an
// unexpected type: one odd field is no reason to lose an answer.
var (
	lax   = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	loose = json.JoinOptions(lax, jsonv1.ReportErrorsWithLegacySemantics(true))
)

// read reads a frame. Values of another kind than expected are left out.
func read(data []byte, into interface{ failed() bool }) error {
	err := json.Unmarshal(data, into, loose)
	var kind *jsonv1.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return &unreadableError{"a JSON " + kind.Value}
	case err != nil && kind == nil:
		return &unreadableError{err.Error()}
	case into.failed():
		return &lateError{data}
	}
	return nil
}

// text is a string. Where a server writes something else, such as arguments that
// are an object, it is the JSON that the server wrote.
type text string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err == nil {
			*t = text(token.String())
		}
		return err
	}
	v, err := d.ReadValue()
	if err == nil && v.Kind() != 'n' {
		*t = text(v)
	}
	return err
}

// number is a whole number. Some servers write it as a string, or as a float.
type number int64

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *number) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	digits := string(bytes.Trim(v, `"`))
	if i, err := strconv.ParseInt(digits, 10, 64); err == nil {
		*n = number(i)
	} else if f, err := strconv.ParseFloat(digits, 64); err == nil {
		*n = number(f)
	}
	return nil
}
