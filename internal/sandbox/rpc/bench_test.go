package rpc

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// socketpair is what connects a server with a runner on the same machine.
func socketpair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		ends[i], err = net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

func benchPair(b *testing.B, h Handlers) *Peer {
	x, y := socketpair(b)
	p, err := Dial(x, Handlers{})
	if err != nil {
		b.Fatal(err)
	}
	q, err := Accept(y, h)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close(); q.Close() })
	return p
}

// BenchmarkCall is one small request and its answer.
func BenchmarkCall(b *testing.B) {
	p := benchPair(b, Handlers{Calls: map[string]Handler{
		"echo": func(_ context.Context, c *Call) (any, error) {
			var s string
			err := c.Into(&s)
			return s, err
		},
	}})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		var s string
		if err := p.Call(ctx, "echo", 1, "hello", &s); err != nil || s != "hello" {
			b.Fatal(s, err)
		}
	}
}

// BenchmarkData is how fast bytes travel to the handler and back.
func BenchmarkData(b *testing.B) {
	const size = 1 << 20
	p := benchPair(b, Handlers{Calls: map[string]Handler{
		"take": func(_ context.Context, c *Call) (any, error) { return io.Copy(io.Discard, c) },
		"give": func(_ context.Context, c *Call) (any, error) {
			buf := make([]byte, size)
			for {
				if _, err := c.Write(buf); err != nil {
					return nil, err
				}
			}
		},
	}})
	b.Run("send", func(b *testing.B) {
		s, err := p.Open(b.Context(), "take", 0, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		buf := make([]byte, size)
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Write(buf); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.CloseWrite(); err != nil {
			b.Fatal(err)
		}
		if err := s.Answer(nil); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("receive", func(b *testing.B) {
		s, err := p.Open(b.Context(), "give", 0, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		buf := make([]byte, size)
		b.SetBytes(size)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := io.ReadFull(s, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}
