package rest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Webhooks, which have no key, leave room for others without one, and all of these for those with one.
func TestDeliveriesLeaveRoom(t *testing.T) {
	t.Parallel()
	i := NewIntake(Bodies{PerUser: 200, Total: 1600})
	for _, c := range []struct {
		user string
		n    int64
		ok   bool
	}{
		{Deliverers + "a", 200, true}, {Deliverers + "b", 101, false}, {Deliverers + "b", 100, true}, {Deliverers + "c", 1, false},
		{strangers + "a", 101, false}, {strangers + "a", 100, true}, {strangers + "b", 1, false}, {"ada", 200, true},
	} {
		if f := i.Take(c.user, c.n); (f == nil) != c.ok {
			t.Errorf("%q takes %d: %v", c.user, c.n, f)
		}
	}
	for user, n := range map[string]int64{Deliverers + "a": 200, Deliverers + "b": 100, strangers + "a": 100, "ada": 200} {
		i.Give(user, n)
	}
	if i.total != 0 || len(i.users) != 0 {
		t.Errorf("%d bytes are never given back: %v", i.total, i.users)
	}
}

// timedWriter remembers the deadline, and trickle keeps to it.
type timedWriter struct {
	http.ResponseWriter
	deadline time.Time
}

func (w *timedWriter) SetReadDeadline(t time.Time) error { w.deadline = t; return nil }

// trickle gives so many bytes with each piece, a second after the one before, and falls silent when so many are left.
type trickle struct {
	w      *timedWriter
	rest   int
	piece  int
	silent int
}

func (b *trickle) Read(p []byte) (int, error) {
	if b.rest == 0 {
		return 0, io.EOF
	}
	wait := time.Second
	if b.rest <= b.silent {
		wait = time.Hour
	}
	if left := time.Until(b.w.deadline); !b.w.deadline.IsZero() && left < wait {
		<-time.After(left)
		return 0, os.ErrDeadlineExceeded
	}
	<-time.After(wait)
	n := min(len(p), b.piece, b.rest-b.silent)
	b.rest -= n
	return n, nil
}

func TestSlowBodies(t *testing.T) {
	for _, c := range []struct {
		piece  int
		silent int
		status int
		longer time.Duration // than this is too long
	}{
		{16 << 10, 0, 0, 65 * time.Second},
		{100, 0, http.StatusRequestTimeout, 20 * time.Second},
		{900 << 10, 124 << 10, http.StatusRequestTimeout, 30 * time.Second}, // the rate would be enough for two minutes
	} {
		synctest.Test(t, func(t *testing.T) {
			i := NewIntake(Bodies{})
			w := &timedWriter{ResponseWriter: httptest.NewRecorder()}
			r := httptest.NewRequest("POST", "/", nil)
			r.Body, r.ContentLength = io.NopCloser(&trickle{w, 1 << 20, c.piece, c.silent}), 1<<20
			begin := time.Now()
			body, release, err := i.receive(w, r, "ada", MaxBody)
			release()
			switch {
			case c.status == 0 && (err != nil || len(body) != 1<<20):
				t.Errorf("%d bytes a second: %v", c.piece, err)
			case c.status != 0 && !faultHas(err, c.status):
				t.Errorf("%d bytes a second: %v", c.piece, err)
			}
			if took := time.Since(begin); took > c.longer || !w.deadline.IsZero() {
				t.Errorf("%d bytes a second: it took %v, and the deadline is %v", c.piece, took, w.deadline)
			}
		})
	}
}

// A body is read as it is, whatever was announced.
func TestReceive(t *testing.T) {
	i := NewIntake(Bodies{})
	for _, n := range []int{0, 1, FirstPiece - 1, FirstPiece, FirstPiece + 1, 100_000, 200_000} {
		sent := bytes.Repeat([]byte("x"), n)
		for _, announced := range []int64{int64(n), -1} {
			r := httptest.NewRequest("POST", "/", bytes.NewReader(sent))
			r.ContentLength = announced
			got, release, err := i.receive(httptest.NewRecorder(), r, "ada", 100_000)
			release()
			if tooMuch := n > 100_000; tooMuch != (err != nil) || !tooMuch && !bytes.Equal(got, sent) {
				t.Errorf("%d bytes, %d announced: %d bytes, %v", n, announced, len(got), err)
			}
		}
	}
	if i.total != 0 || len(i.users) != 0 {
		t.Errorf("%d bytes are never given back: %v", i.total, i.users)
	}
}

func faultHas(err error, status int) bool {
	f, ok := errors.AsType[*Fault](err)
	return ok && f.Status == status
}
