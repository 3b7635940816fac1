package cloud

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// maxFrame is the maximum size of a frame in bytes; AWS sends at most 16 MiB.
const maxFrame = 17 << 20

// readEvents converts a stream in AWS's binary format to server-sent events, which adapters understand. Model events in
// chunks keep their own types. An exception becomes an event of type error in Anthropic's format.
func readEvents(body io.ReadCloser) io.ReadCloser {
	return &eventReader{body: body, in: bufio.NewReader(body)}
}

type eventReader struct {
	body io.ReadCloser
	in   *bufio.Reader
	left []byte // of the last event
	err  error
}

// Read implements io.Reader.
func (e *eventReader) Read(p []byte) (int, error) {
	for len(e.left) == 0 && e.err == nil {
		var f frame
		if f, e.err = readFrame(e.in); e.err == nil {
			e.left, e.err = f.event()
		}
	}
	if len(e.left) > 0 {
		n := copy(p, e.left)
		e.left = e.left[n:]
		return n, nil
	}
	return 0, e.err
}

// Close implements io.Closer.
func (e *eventReader) Close() error { return e.body.Close() }

// frame is a message of the stream. Only headers that are strings are kept.
type frame struct {
	headers map[string]string
	payload []byte
}

var errFrame = errors.New("the AWS event stream is corrupted")

// readFrame reads a frame. io.EOF means that the stream ended between two frames.
func readFrame(r io.Reader) (frame, error) {
	var prelude [12]byte
	if _, err := io.ReadFull(r, prelude[:]); err != nil {
		return frame{}, err
	}
	total, headers := binary.BigEndian.Uint32(prelude[:]), binary.BigEndian.Uint32(prelude[4:])
	if crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]) || total > maxFrame || total < 16 || headers > total-16 {
		return frame{}, errFrame
	}
	rest := make([]byte, total-12)
	if _, err := io.ReadFull(r, rest); err != nil {
		return frame{}, io.ErrUnexpectedEOF
	}
	sum, rest := binary.BigEndian.Uint32(rest[len(rest)-4:]), rest[:len(rest)-4]
	if crc32.Update(crc32.ChecksumIEEE(prelude[:]), crc32.IEEETable, rest) != sum {
		return frame{}, errFrame
	}
	f := frame{headers: map[string]string{}, payload: rest[headers:]}
	for b := rest[:headers]; len(b) > 0; {
		name, value, after, ok := readHeader(b)
		if !ok {
			return frame{}, errFrame
		}
		f.headers[name], b = value, after
	}
	return f, nil
}

// sizes are the sizes of header values by type. Types 6 and 7 have a length prefix.
var sizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

func readHeader(b []byte) (name, value string, rest []byte, ok bool) {
	n := int(b[0])
	if len(b) < n+2 || int(b[n+1]) >= len(sizes) {
		return "", "", nil, false
	}
	name, size, rest := string(b[1:n+1]), sizes[b[n+1]], b[n+2:]
	if size < 0 {
		if len(rest) < 2 {
			return "", "", nil, false
		}
		size, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
	}
	if len(rest) < size {
		return "", "", nil, false
	}
	if b[n+1] == 7 {
		value = string(rest[:size])
	}
	return name, value, rest[size:], true
}

// event converts the frame to a server-sent event.
func (f frame) event() ([]byte, error) {
	kind, data := f.headers[":event-type"], f.payload
	if f.headers[":message-type"] != "event" {
		return failed(f), nil
	}
	if kind == "chunk" {
		var chunk struct {
			Bytes []byte `json:"bytes"`
		}
		var inner struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(f.payload, &chunk); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(chunk.Bytes, &inner); err != nil {
			return nil, err
		}
		kind, data = inner.Type, chunk.Bytes
	}
	if strings.ContainsAny(kind, "\r\n") || strings.ContainsAny(string(data), "\r\n") { // JSON without line breaks
		return nil, errFrame
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data), nil
}

// kinds maps AWS exceptions to Anthropic's error types.
var kinds = map[string]string{
	"throttlingException": "rate_limit_error", "modelNotReadyException": "overloaded_error", "serviceUnavailableException": "overloaded_error",
	"modelTimeoutException": "timeout_error", "validationException": "invalid_request_error", "accessDeniedException": "permission_error",
}

// failed converts an exception or error in a stream to an error event.
func failed(f frame) []byte {
	var said struct{ Message string }
	_ = json.Unmarshal(f.payload, &said)
	name := f.headers[":exception-type"]
	if name == "" {
		name = f.headers[":error-code"]
	}
	if said.Message == "" {
		said.Message = strings.TrimSpace(f.headers[":error-message"] + " " + name)
	}
	kind := kinds[name]
	if kind == "" {
		kind = "api_error"
	}
	data, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": said.Message}})
	return fmt.Appendf(nil, "event: error\ndata: %s\n\n", data)
}
