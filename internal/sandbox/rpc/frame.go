package rpc

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// kind is what a frame holds.
type kind byte

const (
	request kind = 'R' // JSON header and parameters; the first frame of a call
	data    kind = 'D' // bytes
	end     kind = 'E' // no more data from this side
	answer  kind = 'A' // JSON result; the last frame
	failure kind = 'X' // JSON error; the last frame
)

const (
	headSize = 5
	// maxData is how much data one frame carries at most.
	maxData = 64 << 10
	// maxJSON bounds requests and answers. Large things travel as data.
	maxJSON = 32 << 20
)

// header is the JSON of a request.
type header struct {
	Method string `json:"m"`
	// Fence is the claim under which the call is made; 0 for what needs none.
	Fence  int64           `json:"f,omitempty"`
	Params json.RawMessage `json:"p,omitempty"`
}

// writeFrame writes head and body in one go, so that small frames travel together.
func writeFrame(w io.Writer, k kind, body []byte) error {
	buf := make([]byte, headSize+len(body))
	buf[0] = byte(k)
	binary.BigEndian.PutUint32(buf[1:], uint32(len(body)))
	copy(buf[headSize:], body)
	_, err := w.Write(buf)
	return err
}

// readFrame reads one frame; io.EOF only at a border.
func readFrame(r io.Reader) (kind, []byte, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	k, n := kind(head[0]), binary.BigEndian.Uint32(head[1:])
	limit := uint32(maxJSON)
	switch k {
	case data, end:
		limit = maxData
	case request, answer, failure:
	default:
		return 0, nil, fmt.Errorf("unknown frame %q", head[0])
	}
	if n > limit {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too large", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, noEOF(err)
	}
	return k, body, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// The errors that keep their meaning across the connection, with those of io/fs.
var (
	ErrFenced  = errors.New("a newer owner commands this sandbox")
	ErrEscapes = errors.New("the path leads out of the workspace")
	ErrInvalid = errors.New("invalid request")
	ErrBusy    = errors.New("busy")
	ErrTooBig  = errors.New("too large")
	ErrBinary  = errors.New("not a text")
	ErrNoRepo  = errors.New("not a git repository")
)

var codes = []struct {
	code string
	err  error
}{
	{"not_exist", fs.ErrNotExist}, {"exist", fs.ErrExist}, {"permission", fs.ErrPermission},
	{"fenced", ErrFenced}, {"escapes", ErrEscapes}, {"invalid", ErrInvalid}, {"busy", ErrBusy}, {"too_big", ErrTooBig},
	{"binary", ErrBinary}, {"no_repo", ErrNoRepo},
}

// Error is what the other side answered instead of a result.
type Error struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is see the error that was meant on the other side.
func (e *Error) Is(target error) bool {
	for _, c := range codes {
		if c.code == e.Code {
			return c.err == target
		}
	}
	return false
}

// toError is how an error travels.
func toError(err error) *Error {
	e := &Error{Message: err.Error()}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			e.Code = c.code
			break
		}
	}
	return e
}
