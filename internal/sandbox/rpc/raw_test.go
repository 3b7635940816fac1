package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

func closeWrite(t testing.TB, c net.Conn) {
	t.Helper()
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
}

func TestRawAcceptAndRefuse(t *testing.T) {
	p, q := pair(t, Handlers{}, raws("dial", func(_ context.Context, c *RawCall) {
		var port int
		if err := c.Into(&port); err != nil {
			c.Refuse(err)
			return
		}
		if port != 80 {
			c.Refuse(fmt.Errorf("port %d: %w", port, os.ErrNotExist))
			return
		}
		defer c.Close()
		if err := c.Accept(); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(c, c)
	}))
	want(t, p.Call(t.Context(), "dial", 0, 81, nil), os.ErrNotExist)
	want(t, p.Call(t.Context(), "dial", 0, "no", nil), ErrInvalid)

	ctx, cancel := context.WithCancel(t.Context())
	s, err := p.Open(ctx, "dial", 0, 80)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(nil); err != nil {
		t.Fatal(err)
	}
	c := s.Raw()
	cancel() // has no power over it any more
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	closeWrite(t, c)
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "hello" {
		t.Errorf("%q came back: %v", got, err)
	}
	c.Close()
	settled(t, p, q)
}

// Either end may end its side and go on reading for as long as it likes.
func TestRawHalfClose(t *testing.T) {
	p, q := pair(t, Handlers{}, raws("half", func(ctx context.Context, c *RawCall) {
		defer c.Close()
		_, _ = c.Write([]byte("that is all"))
		closeWrite(t, c.Conn)
		got, err := io.ReadAll(c)
		if err != nil || len(got) != 1<<20 {
			t.Errorf("%d bytes came after our side was closed: %v", len(got), err)
		}
		if ctx.Err() != nil {
			t.Error("a caller that closed its side is taken for gone")
		}
	}))
	c := open(t, t.Context(), p, "half").Raw()
	if got, err := io.ReadAll(c); err != nil || string(got) != "that is all" {
		t.Errorf("%q: %v", got, err)
	}
	if _, err := c.Write(make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	closeWrite(t, c)
	c.Close()
	settled(t, p, q)
}

// A close is noticed by the other end, whatever it is doing.
func TestRawCloseIsNoticed(t *testing.T) {
	use := map[string]func(net.Conn) error{
		"reading": func(c net.Conn) error {
			if _, err := io.Copy(io.Discard, c); err != nil {
				return err
			}
			return io.EOF
		},
		"writing": func(c net.Conn) error {
			for {
				if _, err := c.Write(make([]byte, 10_000)); err != nil {
					return err
				}
			}
		},
		"writing with deadlines": func(c net.Conn) error {
			for {
				_ = c.SetWriteDeadline(time.Now().Add(time.Hour))
				if _, err := c.Write(make([]byte, 10_000)); err != nil {
					return err
				}
			}
		},
	}
	for name, f := range use {
		t.Run("handler "+name, func(t *testing.T) {
			started, ended := make(chan struct{}), make(chan error, 1)
			p, q := pair(t, Handlers{}, raws("raw", func(ctx context.Context, c *RawCall) {
				defer c.Close()
				close(started)
				err := f(c.Conn)
				<-ctx.Done() // ends, too
				ended <- err
			}))
			c := open(t, t.Context(), p, "raw").Raw()
			<-started
			c.Close()
			if err := <-ended; !errors.Is(err, io.EOF) && !errors.Is(err, ErrUnread) {
				t.Error(err)
			}
			settled(t, p, q)
		})
		t.Run("caller "+name, func(t *testing.T) {
			start := make(chan struct{})
			p, q := pair(t, Handlers{}, raws("raw", func(_ context.Context, c *RawCall) {
				<-start
				c.Close()
			}))
			c := open(t, t.Context(), p, "raw").Raw()
			ended := make(chan error, 1)
			go func() { ended <- f(c) }()
			close(start)
			if err := <-ended; !errors.Is(err, io.EOF) && !errors.Is(err, ErrUnread) {
				t.Error(err)
			}
			c.Close()
			settled(t, p, q)
		})
	}
}

// Closing wakes readers and writers at the same end, as with any connection.
func TestRawCloseWakesItsOwn(t *testing.T) {
	p, q := pair(t, Handlers{}, raws("raw", func(ctx context.Context, c *RawCall) {
		<-ctx.Done()
		c.Close()
	}))
	c := open(t, t.Context(), p, "raw").Raw()
	ended := make(chan error, 2)
	go func() { _, err := c.Read(make([]byte, 1)); ended <- err }()
	go func() { _, err := c.Write(make([]byte, 8<<20)); ended <- err }()
	c.Close()
	want(t, <-ended, net.ErrClosed)
	want(t, <-ended, net.ErrClosed)
	want(t, c.SetDeadline(time.Time{}), net.ErrClosed)
	settled(t, p, q)
}

func TestRawDeadline(t *testing.T) {
	p, q := pair(t, Handlers{}, raws("raw", func(_ context.Context, c *RawCall) {
		defer c.Close()
		_, _ = io.Copy(c, c)
	}))
	c := open(t, t.Context(), p, "raw").Raw()
	_ = c.SetReadDeadline(time.Unix(1, 0))
	var timeout net.Error
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Error(err)
	}
	_ = c.SetReadDeadline(time.Time{})
	_, _ = c.Write([]byte("x"))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	c.Close()
	settled(t, p, q)
}

// A connection whose context ends just as it is made must not be forgotten at
// the other end.
func TestRawCancelledAsItOpens(t *testing.T) {
	p, q := pair(t, Handlers{}, raws("raw", func(ctx context.Context, c *RawCall) {
		_ = c.Accept()
		<-ctx.Done()
		c.Close()
	}))
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := p.Open(ctx, "raw", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Answer(nil); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			go cancel()
		} else {
			for cancel(); !s.conn.closed.Load(); {
				runtime.Gosched()
			}
		}
		s.Raw().Close()
	}
	settled(t, p, q)
}
