package rpc

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLostConnection(t *testing.T) {
	const n = 20
	var started, ended sync.WaitGroup
	started.Add(2 * n)
	ended.Add(2 * n)
	h := calls("wait", func(ctx context.Context, _ *Call) (any, error) {
		started.Done()
		<-ctx.Done()
		ended.Done()
		return nil, ctx.Err()
	})
	p, q, x, _ := pairOn(t, h, h)
	errs := make(chan error, 2*n)
	for range n {
		go func() { errs <- p.Call(context.Background(), "wait", 0, nil, nil) }()
		go func() { errs <- q.Call(context.Background(), "wait", 0, nil, nil) }()
	}
	started.Wait()
	x.Close()
	for range 2 * n {
		want(t, <-errs, ErrLost)
	}
	ended.Wait()
	<-p.Done()
	<-q.Done()
	want(t, p.Call(context.Background(), "wait", 0, nil, nil), ErrLost)
	want(t, q.Call(context.Background(), "wait", 0, nil, nil), ErrLost)
}

// What came before the connection broke is not lost, and is not the whole.
func TestLostInTheMiddleOfData(t *testing.T) {
	p, _, _, y := pairOn(t, Handlers{}, calls("give", func(ctx context.Context, c *Call) (any, error) {
		_, err := c.Write([]byte("half"))
		<-ctx.Done()
		return nil, err
	}))
	s := open(t, t.Context(), p, "give")
	b := make([]byte, 4)
	if _, err := io.ReadFull(s, b); err != nil || string(b) != "half" {
		t.Fatal(string(b), err)
	}
	y.Close()
	for range 2 { // the second time, too
		_, err := s.Read(b)
		want(t, err, ErrLost)
	}
	want(t, s.Answer(nil), ErrLost)
}

func TestCloseWaitsForHandlers(t *testing.T) {
	started := make(chan struct{})
	var ended atomic.Bool
	p, q := pair(t, Handlers{}, calls("slow", func(ctx context.Context, _ *Call) (any, error) {
		close(started)
		<-ctx.Done()
		ended.Store(true)
		return nil, nil
	}))
	lost := make(chan error, 1)
	go func() { lost <- p.Call(context.Background(), "slow", 0, nil, nil) }()
	<-started
	q.Close()
	if !ended.Load() {
		t.Error("Close did not wait")
	}
	want(t, <-lost, ErrLost)
	q.Close() // twice is once
}

// Closing while calls are made must neither hang nor race.
func TestCloseWhileCalling(t *testing.T) {
	h := Handlers{Calls: map[string]Handler{"add": add, "echo": echo}}
	for range 20 {
		p, q := pair(t, h, h)
		var all sync.WaitGroup
		first := make(chan struct{}, 100)
		for _, peer := range []*Peer{p, q} {
			for range 5 {
				all.Go(func() {
					for {
						var n int
						err := peer.Call(context.Background(), "add", 0, sum{1, 2}, &n)
						if err == nil && n != 3 {
							t.Error("a wrong answer", n)
						}
						if err != nil {
							want(t, err, ErrLost)
							return
						}
						select {
						case first <- struct{}{}:
						default:
						}
					}
				})
			}
		}
		<-first
		all.Go(func() { p.Close() })
		all.Go(func() { q.Close() })
		all.Wait()
	}
}

// More calls at once than there is room for are refused, and do no harm to the others.
func TestTooManyCalls(t *testing.T) {
	release := make(chan struct{})
	p, q := pair(t, Handlers{}, calls("wait", func(context.Context, *Call) (any, error) { <-release; return nil, nil }))
	var streams []*Stream
	var err error
	for range maxStreams {
		var s *Stream
		if s, err = p.Open(t.Context(), "wait", 0, nil); err != nil {
			break
		}
		streams = append(streams, s)
	}
	want(t, err, ErrBusy)
	close(release)
	for _, s := range streams {
		if err := s.Answer(nil); err != nil {
			t.Error(err)
		}
		s.Close()
	}
	settled(t, p, q)
}

// Who breaks off is sure that the other side has cleaned up.
func TestBreakOffWaitsForTheHandler(t *testing.T) {
	var cleaned atomic.Bool
	p, _ := pair(t, Handlers{}, calls("take", func(_ context.Context, c *Call) (any, error) {
		_, err := io.Copy(io.Discard, c)
		cleaned.Store(true)
		return nil, err
	}))
	for range 100 {
		cleaned.Store(false)
		s := open(t, t.Context(), p, "take")
		if _, err := s.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		s.BreakOff()
		if !cleaned.Load() {
			t.Fatal("the handler is still at it")
		}
		s.Close()
	}
}
