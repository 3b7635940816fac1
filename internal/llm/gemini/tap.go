package gemini

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// tap stands between the SDK and the line, for one call. It keeps what the SDK
// drops or only writes to the process's log: the status and headers of an error,
// why a stream broke, and errors that come as frames of the stream.
type tap struct {
	next   http.RoundTripper
	status int
	header http.Header
	broken error // why the stream ended, if it did not end well
}

// RoundTrip implements http.RoundTripper.
func (t *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.status, t.header = res.StatusCode, res.Header
	if res.StatusCode == http.StatusOK {
		res.Body = &frames{tap: t, body: res.Body, lines: bufio.NewReader(res.Body)}
	}
	return res, nil
}

// frames is the body of a stream, read line by line.
type frames struct {
	tap   *tap
	body  io.Closer
	lines *bufio.Reader
	line  []byte
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.line) == 0 {
		line, err := f.lines.ReadBytes('\n')
		f.line = bare(line)
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			f.tap.broken = err
		}
		if len(f.line) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, f.line)
	f.line = f.line[n:]
	return n, nil
}

// Close implements io.Closer.
func (f *frames) Close() error { return f.body.Close() }

// bare takes an error out of its frame: the SDK recognises errors only without.
func bare(line []byte) []byte {
	data, framed := bytes.CutPrefix(line, []byte("data:"))
	if !framed || !bytes.Contains(data, []byte(`"error"`)) {
		return line
	}
	var e struct{ Error *json.RawMessage }
	if json.Unmarshal(data, &e) != nil || e.Error == nil {
		return line
	}
	return bytes.TrimLeft(data, " ")
}
