package gemini

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"deckhand/internal/llm"
)

// longestFrame and longestRefusal are how much of a frame and of an error is
// read, in bytes.
const (
	longestFrame   = 32 << 20
	longestRefusal = 1 << 20
)

// send sends a request. An answer that says why there is none comes with an *apiError.
func (m *model) send(ctx context.Context, req llm.Request) (*http.Response, error) {
	at, err := m.address()
	if err != nil {
		return nil, err
	}
	header := http.Header{"Accept": {"*/*"}}
	if m.key != "" {
		header.Set("X-Goog-Api-Key", m.key)
	}
	response, err := llm.Post(ctx, m.client, at, header, m.request(req))
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		said, _ := io.ReadAll(io.LimitReader(response.Body, longestRefusal)) // what was read before it broke is enough
		return response, readError(said, response.StatusCode)
	}
	return response, nil
}

// address is where the model is.
func (m *model) address() (string, error) {
	if m.name == "" || strings.ContainsAny(m.name, "?&") || strings.Contains(m.name, "..") {
		return "", fmt.Errorf("%q is not the name of a model", m.name)
	}
	if m.options.Vertex != "" {
		return m.options.Vertex + "/models/" + url.PathEscape(m.name) + ":streamGenerateContent?alt=sse", nil
	}
	u, err := url.Parse(m.base)
	if err != nil {
		return "", err
	}
	name := m.name
	if !strings.HasPrefix(name, "models/") && !strings.HasPrefix(name, "tunedModels/") {
		name = "models/" + name
	}
	u = u.JoinPath(version, name+":streamGenerateContent")
	u.RawQuery = "alt=sse"
	return u.String(), nil
}

// readError reads an error in the provider's words, or keeps what it says.
func readError(said []byte, status int) *apiError {
	if e, err := reported(said); e != nil && err == nil {
		return e
	}
	return &apiError{Code: status, Message: string(said), foreign: true}
}

// reported is the error that an object reports, nil if it reports none. With an
// error, what does not fit is left out.
func reported(data []byte) (*apiError, error) {
	var e struct {
		Error *apiError `json:"error"`
	}
	err := json.Unmarshal(data, &e)
	return e.Error, err
}

// errUnreadable says that an answer is not of the shape that the API promises.
var errUnreadable = errors.New("the response is not in Gemini's format")

// brokenError says why a stream did not come to its end.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return e.cause.Error() }

// chunks are the frames of an answer. Unlike other streams, one may end without an
// empty line after its last frame, and errors may come in it without a frame.
func chunks(body io.Reader) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, longestFrame)
		var frame []byte
		for lines.Scan() {
			if line := lines.Bytes(); len(line) > 0 {
				if len(frame)+len(line) >= longestFrame {
					yield(chunk{}, errUnreadable)
					return
				}
				frame = append(append(frame, line...), '\n')
				continue
			}
			if len(frame) == 0 {
				continue
			}
			if c, err := readFrame(frame); !yield(c, err) || err != nil {
				return
			}
			frame = frame[:0]
		}
		err := lines.Err()
		if len(frame) > 0 {
			c, odd := readFrame(frame)
			if odd == nil || err == nil {
				if !yield(c, odd) || odd != nil {
					return
				}
			}
		}
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			yield(chunk{}, errUnreadable)
		case err != nil:
			yield(chunk{}, &brokenError{err})
		}
	}
}

// readFrame reads what is between two empty lines.
func readFrame(frame []byte) (chunk, error) {
	data, framed := bytes.CutPrefix(frame, []byte("data:"))
	if bytes.Contains(data, []byte(`"error"`)) {
		if e, _ := reported(data); e != nil {
			return chunk{}, e
		}
	}
	var c chunk
	if !framed || json.Unmarshal(data, &c) != nil {
		return chunk{}, errUnreadable
	}
	return c, nil
}
