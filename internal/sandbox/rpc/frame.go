package rpc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// kind is what a frame holds.
type kind byte

const (
	request kind = 'R' // JSON header and parameters; the first frame of a call
	data    kind = 'D' // bytes
	end     kind = 'E' // no more data from this side
	answer  kind = 'A' // JSON result; the last frame
	failure kind = 'X' // JSON error; the last frame
	gone    kind = 'G' // the number of a stream whose other end was let go; the only frame of its own stream
)

const (
	headSize = 5
	goneSize = 4
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

// Into decodes the parameters.
func (h *header) Into(v any) error {
	if len(h.Params) == 0 {
		return nil
	}
	if err := json.Unmarshal(h.Params, v); err != nil {
		return fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	return nil
}

// frames are buffers for frames that are being sent: a stream does not keep
// what it was given to write.
var frames = sync.Pool{New: func() any { return new([headSize + maxData]byte) }}

// writeFrame writes head and body in one go, so that small frames travel together.
func writeFrame(w io.Writer, k kind, body []byte) error {
	var buf []byte
	if len(body) <= maxData {
		pooled := frames.Get().(*[headSize + maxData]byte)
		defer frames.Put(pooled)
		buf = pooled[:headSize+len(body)]
	} else {
		buf = make([]byte, headSize+len(body))
	}
	buf[0] = byte(k)
	binary.BigEndian.PutUint32(buf[1:], uint32(len(body)))
	copy(buf[headSize:], body)
	_, err := w.Write(buf)
	return err
}

func writeData(w io.Writer, b []byte) (int, error) {
	sent := 0
	for len(b) > 0 {
		part := b[:min(len(b), maxData)]
		if err := writeFrame(w, data, part); err != nil {
			return sent, err
		}
		sent += len(part)
		b = b[len(part):]
	}
	return sent, nil
}

// errFrame says that what came is not what this package sends.
var errFrame = errors.New("malformed frame")

// readHead reads what a frame is and how long; io.EOF only at a border.
func readHead(r io.Reader) (kind, int, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, err
	}
	k, n := kind(head[0]), binary.BigEndian.Uint32(head[1:])
	limit := uint32(0)
	switch k {
	case end:
	case gone:
		limit = goneSize
	case data:
		limit = maxData
	case request, answer, failure:
		limit = maxJSON
	default:
		return 0, 0, fmt.Errorf("%w: unknown %q", errFrame, head[0])
	}
	if n > limit {
		return 0, 0, fmt.Errorf("%w: %d bytes are too many", errFrame, n)
	}
	return k, int(n), nil
}

// readBody reads the rest of a frame. A large one takes up memory as it comes,
// not when it is announced.
func readBody(r io.Reader, n int) ([]byte, error) {
	if n <= maxData {
		body := make([]byte, n)
		_, err := io.ReadFull(r, body)
		return body, noEOF(err)
	}
	var buf bytes.Buffer
	buf.Grow(maxData)
	if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
		return nil, noEOF(err)
	}
	return buf.Bytes(), nil
}

// readFrame reads one frame; io.EOF only at a border.
func readFrame(r io.Reader) (kind, []byte, error) {
	k, n, err := readHead(r)
	if err != nil {
		return 0, nil, err
	}
	body, err := readBody(r, n)
	if err != nil {
		return 0, nil, err
	}
	return k, body, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
