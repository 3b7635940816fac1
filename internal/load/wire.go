package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"
)

// Link is one kept-alive connection. It does little more than move bytes,
// because the client shares the machine with what it measures; it is the same
// for us and for the floor.
type Link struct {
	conn net.Conn
	in   *bufio.Reader
	body []byte
}

// Dial connects.
func Dial(addr string) (*Link, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &Link{conn: c, in: bufio.NewReaderSize(c, 4096)}, nil
}

// Close ends the connection.
func (l *Link) Close() { _ = l.conn.Close() }

// Message is a whole request, made once and sent many times.
func Message(method, path, addr, key, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nX-Session-API-Key: %s\r\n", method, path, addr, key)
	if method != "GET" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// head is what matters of an answer's first lines.
type head struct {
	status  int
	length  int
	chunked bool
}

func (l *Link) head() (head, error) {
	h := head{length: -1}
	first := true
	for {
		line, err := l.in.ReadSlice('\n')
		if err != nil {
			return h, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first {
			if len(line) < 12 {
				return h, fmt.Errorf("not an answer: %q", line)
			}
			if h.status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return h, err
			}
			first = false
			continue
		}
		if len(line) == 0 {
			return h, nil
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if h.length, err = strconv.Atoi(string(value)); err != nil {
				return h, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			h.chunked = true
		}
	}
}

// Ask sends a request and returns the answer's body, which the next Ask
// overwrites. Anything but success is an error.
func (l *Link) Ask(request []byte) ([]byte, error) {
	if _, err := l.conn.Write(request); err != nil {
		return nil, err
	}
	h, err := l.head()
	if err != nil {
		return nil, err
	}
	if h.chunked {
		l.body, err = io.ReadAll(httputil.NewChunkedReader(l.in))
		if err == nil {
			_, err = l.in.ReadSlice('\n') // the empty line after the last chunk
		}
	} else {
		if cap(l.body) < max(h.length, 0) {
			l.body = make([]byte, h.length)
		}
		l.body = l.body[:max(h.length, 0)]
		_, err = io.ReadFull(l.in, l.body)
	}
	if err != nil {
		return nil, err
	}
	if h.status >= 300 {
		return nil, &StatusError{h.status, string(l.body)}
	}
	return l.body, nil
}

// StatusError is an answer that is no success.
type StatusError struct {
	Status int
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("answered %d: %.200s", e.Status, e.Body) }

// Patient repeats a request that the rate limit refused until it is let in. Preparations use
// it; in what is measured, a refusal is a failure.
func Patient(ask func() ([]byte, error)) ([]byte, error) {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for range 2400 { // a minute
		answer, err := ask()
		var refused *StatusError
		if !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests {
			return answer, err
		}
		<-tick.C
	}
	return nil, errors.New("the rate limit refused a request for a minute")
}

// Ask1 is a single question on a connection of its own.
func Ask1(addr string, request []byte) ([]byte, error) {
	l, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.Ask(request)
}

// Stream reads server-sent events.
type Stream struct {
	link *Link
	in   *bufio.Reader
}

// Follow opens a stream after the given event.
func Follow(addr, path, key string, after int64) (*Stream, error) {
	l, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	if _, err := l.conn.Write(Message("GET", fmt.Sprintf("%s?after=%d", path, after), addr, key, "")); err != nil {
		return nil, err
	}
	h, err := l.head()
	if err == nil && h.status != 200 {
		err = &StatusError{h.status, "the stream was refused"}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	s := &Stream{link: l, in: l.in}
	if h.chunked {
		s.in = bufio.NewReaderSize(httputil.NewChunkedReader(l.in), 4096)
	}
	return s, nil
}

// Close ends the stream.
func (s *Stream) Close() { s.link.Close() }

// Until sets when reading fails if nothing has come.
func (s *Stream) Until(deadline time.Time) { _ = s.link.conn.SetReadDeadline(deadline) }

// Next is the number of the next frame that has one. Others, like fragments of
// an answer, are read and passed over.
func (s *Stream) Next() (int64, error) {
	value, err := s.Field("id:")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(value), 10, 64)
}

// Event is the next frame that has a number, with its data. The data is good until the next call.
func (s *Stream) Event() (id int64, data []byte, err error) {
	if id, err = s.Next(); err != nil {
		return 0, nil, err
	}
	data, err = s.Field("data:")
	return id, data, err
}

// Field is the next value of this name. What does not fit into the buffer is
// passed over: nothing that is waited for is as long.
func (s *Stream) Field(name string) ([]byte, error) {
	for {
		line, err := s.in.ReadSlice('\n')
		for err == bufio.ErrBufferFull {
			_, err = s.in.ReadSlice('\n')
			line = nil
		}
		if err != nil {
			return nil, err
		}
		if value, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return bytes.TrimSpace(value), nil
		}
	}
}
