package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/hashicorp/yamux"
)

// hostile is an end that sends what it likes.
func hostile(t testing.TB, h Handlers) (*yamux.Session, *Peer) {
	t.Helper()
	x, y := socketpair(t)
	config := yamux.DefaultConfig()
	config.LogOutput = io.Discard
	config.EnableKeepAlive = false
	config.StreamOpenTimeout = 0
	session, err := yamux.Client(x, config)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Accept(y, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close(); q.Close() })
	return session, q
}

func frame(k kind, body string) []byte {
	b := append([]byte{byte(k)}, binary.BigEndian.AppendUint32(nil, uint32(len(body)))...)
	return append(b, body...)
}

func huge(k kind, n uint32) []byte {
	return append([]byte{byte(k)}, binary.BigEndian.AppendUint32(nil, n)...)
}

// Whatever comes in the place of a request ends that call and no other.
func TestMalformedRequests(t *testing.T) {
	ask := frame(request, `{"m":"take"}`)
	for name, sent := range map[string][]byte{
		"nothing":             {},
		"half a head":         {'R', 0},
		"half a body":         frame(request, `{"m":"take"}`)[:10],
		"unknown frame":       frame('?', "x"),
		"data first":          frame(data, "x"),
		"an answer":           frame(answer, "{}"),
		"not JSON":            frame(request, "{"),
		"wrong JSON":          frame(request, `{"m":7}`),
		"huge request":        huge(request, maxJSON+1),
		"huge data":           append(bytes.Clone(ask), huge(data, maxData+1)...),
		"an end with a body":  append(bytes.Clone(ask), frame(end, "x")...),
		"a second request":    append(bytes.Clone(ask), ask...),
		"gone of nobody":      frame(gone, "\xff\xff\xff\xff"),
		"gone without number": frame(gone, "x"),
		"huge gone":           huge(gone, 5),
	} {
		t.Run(name, func(t *testing.T) {
			session, q := hostile(t, Handlers{Calls: map[string]Handler{
				"take": func(_ context.Context, c *Call) (any, error) { return io.Copy(io.Discard, c) },
			}})
			go func() { // it may be told that its stream was let go
				for {
					told, err := session.AcceptStream()
					if err != nil {
						return
					}
					told.Close()
				}
			}()
			stream, err := session.OpenStream()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Write(sent); err != nil {
				t.Fatal(err)
			}
			stream.Close()
			got, _ := io.ReadAll(stream) // it comes to an end
			if bytes.HasPrefix(got, []byte("A")) {
				t.Errorf("it was answered with %q", got)
			}
			settled(t, q)
			if q.session.IsClosed() {
				t.Error("the whole connection ended")
			}
		})
	}
}

// Whatever comes in the place of an answer is an error, and never a crash.
func TestMalformedAnswers(t *testing.T) {
	for name, sent := range map[string][]byte{
		"nothing":       {},
		"half a head":   {'A', 0, 0},
		"half a body":   frame(answer, `"hello"`)[:8],
		"half the data": frame(data, "12345")[:8],
		"unknown frame": frame('?', "x"),
		"a request":     frame(request, "{}"),
		"huge answer":   huge(answer, maxJSON+1),
		"huge data":     huge(data, maxData+1),
	} {
		t.Run(name, func(t *testing.T) {
			session, q := hostile(t, Handlers{})
			s := open(t, t.Context(), q, "ask")
			stream, err := session.AcceptStream()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Write(sent); err != nil {
				t.Fatal(err)
			}
			stream.Close()
			want(t, s.Answer(nil), ErrLost)
			_, err = s.Read(make([]byte, 1))
			want(t, err, ErrLost)
		})
	}
	t.Run("not JSON", func(t *testing.T) {
		session, q := hostile(t, Handlers{})
		for _, sent := range [][]byte{frame(answer, "{"), frame(failure, "{"), frame(failure, "{}")} {
			s := open(t, t.Context(), q, "ask")
			stream, err := session.AcceptStream()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = stream.Write(sent)
			var v any
			if err := s.Answer(&v); err == nil || err.Error() == "" {
				t.Errorf("%q was taken for %v", sent, v)
			}
		}
	})
}

// An answer that is announced and does not come takes up no memory.
func TestAnnouncedIsNotAllocated(t *testing.T) {
	r := io.MultiReader(bytes.NewReader(huge(answer, maxJSON)), bytes.NewReader(make([]byte, 100)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := readFrame(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes were allocated for 100 that came", n)
	}
}

// Pings would make yamux start goroutines without a bound.
func TestPingsEndTheConnection(t *testing.T) {
	session, q := hostile(t, Handlers{})
	go func() { _, _ = session.Ping() }()
	<-q.Done()
}

// Streams that are opened and never used must not pile up.
func TestTooManyStreamsEndTheConnection(t *testing.T) {
	session, q := hostile(t, Handlers{})
	for range 2 * maxStreams {
		if _, err := session.OpenStream(); err != nil {
			break
		}
	}
	<-q.Done()
}

// An end that accepts nothing must not hold up a call with a deadline. It depends on who
// comes first whether a call could be, so it is tried some times.
func TestNotAccepted(t *testing.T) {
	for range 20 {
		_, q := hostile(t, Handlers{})
		notAccepted(t, q)
	}
}

func notAccepted(t *testing.T, q *Peer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var started sync.WaitGroup
	errs := make(chan error, maxStreams/2-1)
	for range cap(errs) {
		started.Add(1)
		go func() { started.Done(); errs <- q.Call(ctx, "ask", 0, nil, nil) }()
	}
	started.Wait()
	cancel()
	for range cap(errs) {
		want(t, <-errs, context.Canceled)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add(frame(request, `{"m":"x"}`))
	f.Add(frame(data, "x"))
	f.Add(frame(end, ""))
	f.Add(huge(answer, maxJSON))
	f.Add(huge(failure, 1<<31))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			before := r.Len()
			k, body, err := readFrame(r)
			if err != nil {
				if errors.Is(err, io.EOF) != (before == 0) {
					t.Errorf("%v with %d bytes left", err, before)
				}
				return
			}
			var w bytes.Buffer
			if err := writeFrame(&w, k, body); err != nil {
				t.Fatal(err)
			}
			at := len(b) - before
			if !bytes.Equal(w.Bytes(), b[at:len(b)-r.Len()]) {
				t.Errorf("%q was read from %q", w.Bytes(), b[at:])
			}
		}
	})
}

// FuzzPeer feeds a peer with bytes: as the whole connection, and as one call
// and one answer on a good one.
func FuzzPeer(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Add(append([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 17}, frame(request, `{"m":"echo"}`)...))
	f.Add(append(frame(request, `{"m":"echo"}`), frame(data, "hello")...))
	f.Add(append(frame(request, `{"m":"raw"}`), "hello"...))
	f.Add(append(frame(data, "x"), frame(answer, "1")...))
	h := Handlers{
		Calls: map[string]Handler{"echo": echo},
		Raw:   map[string]RawHandler{"raw": func(_ context.Context, c *RawCall) { defer c.Close(); _, _ = io.Copy(c, c) }},
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, y := net.Pipe()
		q, err := Accept(y, h)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, x) }()
		_, _ = x.Write(b)
		x.Close()
		<-q.Done()
		q.Close()

		session, q := hostile(t, h)
		go func() { // it is asked, and told that streams were let go
			for {
				stream, err := session.AcceptStream()
				if err != nil {
					return
				}
				_, _ = stream.Write(b[:min(len(b), 100_000)])
				stream.Close()
			}
		}()
		stream, err := session.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = stream.Write(b[:min(len(b), 100_000)])
		stream.Close()
		_, _ = io.Copy(io.Discard, stream)

		s, err := q.Open(t.Context(), "ask", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, s)
		var v any
		_ = s.Answer(&v)
		s.Close()
		session.Close()
		q.Close()
	})
}
