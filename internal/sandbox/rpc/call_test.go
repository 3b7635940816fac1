package rpc

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

type sum struct{ A, B int }

func add(_ context.Context, c *Call) (any, error) {
	var s sum
	if err := c.Into(&s); err != nil {
		return nil, err
	}
	return s.A + s.B, nil
}

// echo gives data back as it comes, and how much it was.
func echo(_ context.Context, c *Call) (any, error) { return io.Copy(c, c) }

func TestManyCallsBothWays(t *testing.T) {
	h := Handlers{Calls: map[string]Handler{"add": add, "echo": echo}}
	p, q := pair(t, h, h)
	var all sync.WaitGroup
	for _, peer := range []*Peer{p, q} {
		for i := range 100 {
			all.Go(func() {
				for k := range 10 {
					var got int
					if err := peer.Call(t.Context(), "add", 0, sum{i, k}, &got); err != nil || got != i+k {
						t.Errorf("%d and %d make %d: %v", i, k, got, err)
					}
				}
				sent := bytes.Repeat([]byte{byte(i)}, 1000*i)
				if got, n := exchange(t, peer, sent); !bytes.Equal(got, sent) || n != len(sent) {
					t.Errorf("%d of %d bytes came back, and the answer says %d", len(got), len(sent), n)
				}
			})
		}
	}
	all.Wait()
	settled(t, p, q)
}

// exchange sends to echo and reads at the same time.
func exchange(t *testing.T, p *Peer, sent []byte) (got []byte, n int) {
	s, err := p.Open(t.Context(), "echo", 0, nil)
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	defer s.Close()
	var sending sync.WaitGroup
	sending.Go(func() {
		if _, err := s.Write(sent); err != nil {
			t.Error(err)
		}
		if err := s.CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	got, err = io.ReadAll(s)
	if err != nil {
		t.Error(err)
	}
	sending.Wait()
	if err := s.Answer(&n); err != nil {
		t.Error(err)
	}
	return got, n
}

func TestDataIsTheSameBothWays(t *testing.T) {
	p, q := pair(t, Handlers{}, calls("echo", echo))
	sent := make([]byte, 5<<20+17) // many windows
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	if got, n := exchange(t, p, sent); !bytes.Equal(got, sent) || n != len(sent) {
		t.Errorf("%d bytes came back, and the answer says %d", len(got), n)
	}
	settled(t, p, q)
}

// A reader that reads nothing must stop the writer, in either direction.
func TestBackPressure(t *testing.T) {
	var given atomic.Int64
	ended := make(chan error, 1)
	p, q := pair(t, Handlers{}, Handlers{Calls: map[string]Handler{
		"give": func(_ context.Context, c *Call) (any, error) {
			for {
				n, err := c.Write(make([]byte, 10_000))
				given.Add(int64(n))
				if err != nil {
					ended <- err
					return nil, err
				}
			}
		},
		"idle": func(ctx context.Context, c *Call) (any, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
	}})
	s := open(t, t.Context(), p, "give")
	if _, err := s.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	want(t, <-ended, context.Canceled)
	if n := given.Load(); n > 1<<20 {
		t.Errorf("%d bytes were given to a caller that took one", n)
	}

	ctx, cancel := context.WithCancel(t.Context())
	s = open(t, ctx, p, "idle")
	sent := make(chan int, 1)
	go func() {
		n, err := s.Write(make([]byte, 8<<20))
		want(t, err, context.Canceled)
		sent <- n
	}()
	// The call is cancelled while its buffer is, or is being, filled with what
	// its handler does not read: it must notice nevertheless.
	cancel()
	want(t, <-ended, context.Canceled)
	if n := <-sent; n > 1<<20 {
		t.Errorf("%d bytes were sent to a handler that took none", n)
	}
	settled(t, p, q)
}

// A handler with unread output must notice that its caller leaves.
func TestCancelBehindFullBuffer(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	p, q := pair(t, Handlers{}, calls("idle", func(ctx context.Context, c *Call) (any, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}))
	s := open(t, t.Context(), p, "idle")
	<-started
	if _, err := s.Write(make([]byte, 200_000)); err != nil { // fits into yamux's window
		t.Fatal(err)
	}
	s.Close()
	<-ended
	settled(t, p, q)
}

func TestCancelIsSeen(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *Call) error{
		"waiting": func(ctx context.Context, _ *Call) error { <-ctx.Done(); return ctx.Err() },
		"reading": func(_ context.Context, c *Call) error { _, err := io.Copy(io.Discard, c); return err },
		"writing": func(_ context.Context, c *Call) error {
			for {
				if _, err := c.Write(make([]byte, 1000)); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			started, ended := make(chan struct{}), make(chan error, 1)
			p, q := pair(t, Handlers{}, calls("wait", func(ctx context.Context, c *Call) (any, error) {
				close(started)
				err := wait(ctx, c)
				want(t, ctx.Err(), context.Canceled)
				ended <- err
				return nil, err
			}))
			ctx, cancel := context.WithCancel(t.Context())
			s := open(t, ctx, p, "wait")
			<-started
			cancel()
			want(t, <-ended, context.Canceled)
			want(t, s.Answer(nil), context.Canceled)
			s.Close()
			settled(t, p, q)
		})
	}
}

// Half of a file must never look like a whole one.
func TestHalfOfTheDataIsAnError(t *testing.T) {
	for name, leave := range map[string]func(s *Stream, cut func()){
		"closed": func(s *Stream, _ func()) { s.Close() },
		"cut":    func(_ *Stream, cut func()) { cut() },
	} {
		t.Run(name, func(t *testing.T) {
			ended, started := make(chan error, 1), make(chan struct{})
			p, _, x, _ := pairOn(t, Handlers{}, calls("take", func(_ context.Context, c *Call) (any, error) {
				if _, err := io.ReadFull(c, make([]byte, 500)); err != nil {
					t.Error(err)
				}
				close(started)
				_, err := io.Copy(io.Discard, c)
				ended <- err
				return nil, err
			}))
			s := open(t, t.Context(), p, "take")
			if _, err := s.Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			<-started
			leave(s, func() { x.Close() })
			if err := <-ended; err == nil {
				t.Error("the handler took half of the data for all of it")
			}
		})
	}
}

// A handler may refuse without reading what is sent to it. The sender learns
// why, and at once.
func TestRefusedWhileSending(t *testing.T) {
	p, q := pair(t, Handlers{}, calls("take", func(_ context.Context, c *Call) (any, error) {
		if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: no room", ErrTooBig)
	}))
	s := open(t, t.Context(), p, "take")
	for {
		if _, err := s.Write(make([]byte, 100_000)); err != nil {
			want(t, err, ErrUnread)
			break
		}
	}
	want(t, s.Answer(nil), ErrTooBig)
	s.Close()
	settled(t, p, q)
}

// What a handler leaves behind must not read or write once it has returned.
func TestNothingIsLeftBehind(t *testing.T) {
	left := make(chan error, 2)
	p, q := pair(t, Handlers{}, calls("leave", func(_ context.Context, c *Call) (any, error) {
		go func() {
			_, err := io.Copy(io.Discard, c)
			left <- err
			_, err = c.Write([]byte("too late"))
			left <- err
		}()
		for c.in.TryLock() { // until it reads
			c.in.Unlock()
			runtime.Gosched()
		}
		return "done", nil
	}))
	s := open(t, t.Context(), p, "leave")
	var got string
	if err := s.Answer(&got); err != nil || got != "done" {
		t.Fatal(got, err)
	}
	want(t, <-left, context.Canceled)
	if err := <-left; err == nil {
		t.Error("something was written after the answer")
	}
	s.Close()
	settled(t, p, q)
}

func TestPanics(t *testing.T) {
	h := Handlers{
		Calls: map[string]Handler{"add": add, "panic": func(context.Context, *Call) (any, error) { panic("oh") }},
		Raw:   map[string]RawHandler{"panic raw": func(context.Context, *RawCall) { panic("oh") }},
	}
	p, q := pair(t, Handlers{}, h)
	err := p.Call(t.Context(), "panic", 0, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "panic panicked: oh") {
		t.Error(err)
	}
	if _, err := open(t, t.Context(), p, "panic raw").Raw().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	var n int
	if err := p.Call(t.Context(), "add", 0, sum{1, 2}, &n); err != nil || n != 3 {
		t.Error("it does not go on after a panic:", n, err)
	}
	_ = q
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	all := []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission,
		ErrFenced, ErrEscapes, ErrInvalid, ErrBusy, ErrTooBig, ErrBinary, ErrNoRepo,
	}
	plain := errors.New("something else")
	h := calls("fail", func(_ context.Context, c *Call) (any, error) {
		var i int
		if err := c.Into(&i); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("number %d: %w", i, append(all, plain)[i])
	})
	p, _ := pair(t, Handlers{}, h)
	for i, meant := range append(all, plain) {
		err := p.Call(t.Context(), "fail", 0, i, nil)
		if err == nil || err.Error() != fmt.Sprintf("number %d: %v", i, meant) {
			t.Errorf("the text changed: %v", err)
		}
		for _, other := range all {
			if errors.Is(err, other) != (other == meant) {
				t.Errorf("%v is taken for %v: %v", err, other, errors.Is(err, other))
			}
		}
		if errors.Is(err, ErrLost) {
			t.Errorf("%v is taken for a lost connection", err)
		}
		// It keeps it over the next connection, too.
		if again := toError(fmt.Errorf("passed on: %w", err)); meant != plain && !errors.Is(again, meant) {
			t.Errorf("%v has lost its meaning", again)
		}
	}
	want(t, p.Call(t.Context(), "fail", 0, "not a number", nil), ErrInvalid)
	want(t, p.Call(t.Context(), "unknown", 0, nil, nil), ErrInvalid)
}

func TestFenceTravels(t *testing.T) {
	p, _ := pair(t, Handlers{}, calls("fence", func(_ context.Context, c *Call) (any, error) { return c.Under(), nil }))
	var got int64
	if err := p.Call(t.Context(), "fence", 1<<53+1, nil, &got); err != nil || got != 1<<53+1 {
		t.Error(got, err)
	}
}

func TestTooLarge(t *testing.T) {
	p, q := pair(t, Handlers{}, Handlers{Calls: map[string]Handler{
		"give": func(_ context.Context, c *Call) (any, error) {
			var n int
			err := c.Into(&n)
			return strings.Repeat("x", n), err
		},
		"length": func(_ context.Context, c *Call) (any, error) { return len(c.Params), nil },
		"fail":   func(context.Context, *Call) (any, error) { return nil, errors.New(strings.Repeat("ä", maxMessage)) },
	}})
	want(t, p.Call(t.Context(), "length", 0, strings.Repeat("x", maxJSON), nil), ErrTooBig)
	want(t, p.Call(t.Context(), "give", 0, maxJSON, nil), ErrTooBig)
	if err := p.Call(t.Context(), "fail", 0, nil, nil); err == nil || len(err.Error()) > maxMessage+10 {
		t.Error("an endless error came")
	}
	// What is large but not too large travels.
	var n int
	if err := p.Call(t.Context(), "length", 0, strings.Repeat("x", 1<<20), &n); err != nil || n != 1<<20+2 {
		t.Error(n, err)
	}
	var s string
	if err := p.Call(t.Context(), "give", 0, 1<<20, &s); err != nil || len(s) != 1<<20 {
		t.Error(len(s), err)
	}
	settled(t, p, q)
}

func TestAnswerPassesOverData(t *testing.T) {
	p, q := pair(t, Handlers{}, calls("give", func(_ context.Context, c *Call) (any, error) {
		_, err := c.Write(make([]byte, 1<<20))
		return "done", err
	}))
	s := open(t, t.Context(), p, "give")
	if _, err := s.Read(make([]byte, 10)); err != nil { // a part of a frame
		t.Fatal(err)
	}
	var got string
	if err := s.Answer(&got); err != nil || got != "done" {
		t.Error(got, err)
	}
	if _, err := s.Read(make([]byte, 1)); err != io.EOF {
		t.Error(err)
	}
	s.Close()
	settled(t, p, q)
}
