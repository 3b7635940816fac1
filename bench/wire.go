package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"time"
)

// link is one kept-alive connection. It does little more than move bytes,
// because the client shares the machine with what it measures; it is the same
// for us and for the floor.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	body []byte
}

func dial(addr string) (*link, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &link{conn: c, in: bufio.NewReaderSize(c, 4096)}, nil
}

func (l *link) close() { _ = l.conn.Close() }

// message is a whole request, made once and sent many times.
func message(method, path, addr, key, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nX-Session-API-Key: %s\r\n", method, path, addr, key)
	if method == "POST" {
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

func (l *link) head() (head, error) {
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

// ask sends a request and returns the answer's body, which the next ask
// overwrites. Anything but success is an error.
func (l *link) ask(request []byte) ([]byte, error) {
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
		return nil, fmt.Errorf("answered %d: %.200s", h.status, l.body)
	}
	return l.body, nil
}

// ask1 is a single question on a connection of its own.
func ask1(addr string, request []byte) ([]byte, error) {
	l, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer l.close()
	return l.ask(request)
}

// stream reads server-sent events.
type stream struct {
	link *link
	in   *bufio.Reader
}

// follow opens a stream after the given event.
func follow(addr, path, key string, after int64) (*stream, error) {
	l, err := dial(addr)
	if err != nil {
		return nil, err
	}
	if _, err := l.conn.Write(message("GET", fmt.Sprintf("%s?after=%d", path, after), addr, key, "")); err != nil {
		return nil, err
	}
	h, err := l.head()
	if err == nil && h.status != 200 {
		err = fmt.Errorf("the stream was answered %d", h.status)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	s := &stream{link: l, in: l.in}
	if h.chunked {
		s.in = bufio.NewReaderSize(httputil.NewChunkedReader(l.in), 4096)
	}
	return s, nil
}

// next is the number of the next frame that has one. Others, like fragments of
// an answer, are read and passed over.
func (s *stream) next() (int64, error) {
	value, err := s.field("id:")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(value), 10, 64)
}

// field is the next value of this name. What does not fit into the buffer is
// passed over: nothing that is waited for is as long.
func (s *stream) field(name string) ([]byte, error) {
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
