package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// helloOf is what a real client sends first.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(theirs, config).Handshake()
	}()
	head := make([]byte, recordHeader)
	if _, err := io.ReadFull(ours, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	if _, err := io.ReadFull(ours, body); err != nil {
		t.Fatal(err)
	}
	ours.Close()
	<-done
	return append(head, body...)
}

// inRecords spreads a message over records of a size.
func inRecords(hello []byte, size int) []byte {
	var out []byte
	for rest := hello[recordHeader:]; len(rest) > 0; {
		n := min(size, len(rest))
		out = append(out, hello[0], hello[1], hello[2], byte(n>>8), byte(n))
		out, rest = append(out, rest[:n]...), rest[n:]
	}
	return out
}

func TestHello(t *testing.T) {
	for _, config := range []*tls.Config{
		{ServerName: "example.org"},
		{ServerName: "example.org", NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS13},
		{ServerName: "example.org", MaxVersion: tls.VersionTLS12},
		{InsecureSkipVerify: true},
		{ServerName: "93.184.216.34"}, // which is not sent
	} {
		want := config.ServerName
		if net.ParseIP(want) != nil {
			want = ""
		}
		whole := helloOf(t, config)
		oldVersion := bytes.Clone(whole)
		oldVersion[1] = 2
		for _, hello := range [][]byte{whole, inRecords(whole, 1), inRecords(whole, 50), append(bytes.Clone(whole), "more"...), oldVersion} {
			if state, name := parseHello(hello); state != greeting || name != want {
				t.Fatalf("got %d, %q, want %q", state, name, want)
			}
		}
		for n := range len(whole) {
			if state, _ := parseHello(whole[:n]); state != unfinished {
				t.Fatalf("after %d of %d bytes: %d", n, len(whole), state)
			}
		}
	}
}

func TestHelloOddities(t *testing.T) {
	good := helloOf(t, &tls.Config{ServerName: "example.org"})
	at := bytes.Index(good, []byte("example.org"))
	change := func(i int, b byte) []byte {
		c := bytes.Clone(good)
		c[i] = b
		return c
	}
	for name, test := range map[string]struct {
		in   []byte
		want opening
	}{
		"nothing":              {nil, unfinished},
		"http":                 {[]byte("GET / HTTP/1.1\r\n"), notTLS},
		"ssh":                  {[]byte("SSH-2.0-x\r\n"), notTLS},
		"SSL 2":                {[]byte{0x80, 0x2e, 1, 3, 1}, notTLS},
		"no hello":             {change(5, 2), broken},
		"empty record":         {[]byte{0x16, 3, 1, 0, 0}, broken},
		"record too long":      {[]byte{0x16, 3, 1, 0xff, 0xff}, broken},
		"hello too long":       {change(6, 9), broken},
		"session too long":     {change(recordHeader+messageHeader+helloFixed, 255), broken},
		"name too long":        {change(at-1, 200), broken},
		"list too short":       {change(at-4, 1), broken},
		"another type of name": {change(at-3, 7), greeting},
		"second record alien":  {append(inRecords(good, 50)[:55], 0x17, 3, 1, 0, 1, 0), broken},
	} {
		if got, found := parseHello(test.in); got != test.want || found != "" {
			t.Errorf("%s: got %d, %q, want %d", name, got, found, test.want)
		}
	}
	// Two names: which one counts is up to the server.
	twice := append([]byte{0, 28}, bytes.Repeat([]byte("\x00\x00\x0bexample.org"), 2)...)
	if _, ok := serverName(twice); ok {
		t.Error("two names are accepted")
	}
}

// heard is a connection that gives what is in it and takes everything.
type heard struct {
	net.Conn
	in io.Reader
}

func (h heard) Read(b []byte) (int, error)       { return h.in.Read(b) }
func (h heard) Write(b []byte) (int, error)      { return len(b), nil }
func (h heard) Close() error                     { return nil }
func (h heard) SetDeadline(time.Time) error      { return nil }
func (h heard) SetReadDeadline(time.Time) error  { return nil }
func (h heard) SetWriteDeadline(time.Time) error { return nil }

// FuzzHello compares what we see with what a real server sees: a hello that it
// understands is one that we refuse or understand, with the same name.
func FuzzHello(f *testing.F) {
	for _, name := range []string{"example.org", "a", ""} {
		hello := helloOf(f, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		f.Add(hello)
		f.Add(inRecords(hello, 20))
		f.Add(hello[:len(hello)/2])
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		state, name := parseHello(in)
		for n := range min(len(in), 200) { // a decision is never taken back
			if early, earlier := parseHello(in[:n]); early != unfinished && (early != state || earlier != name) {
				t.Fatalf("after %d bytes: %d, %q; after all: %d, %q", n, early, earlier, state, name)
			}
		}
		seen := errors.New("seen")
		config := &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			if state == broken { // which is refused
				return nil, seen
			}
			if state != greeting || h.ServerName != name {
				t.Fatalf("a server sees a hello for %q, we see %d, %q", h.ServerName, state, name)
			}
			return nil, seen
		}}
		_ = tls.Server(heard{in: bytes.NewReader(in)}, config).HandshakeContext(context.Background())
	})
}
