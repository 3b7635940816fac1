package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stuckBody is a body of which a part has come. It says so when more is asked for, and ends when it is told to.
type stuckBody struct {
	part    io.Reader
	waiting chan struct{}
	end     chan struct{}
}

func (b *stuckBody) Read(p []byte) (int, error) {
	if n, err := b.part.Read(p); err == nil {
		return n, nil
	}
	b.waiting <- struct{}{}
	<-b.end
	return 0, io.ErrUnexpectedEOF
}

func (b *stuckBody) Close() error { return nil }

// hold begins a request of which so much has come, and returns when the door waits for the rest.
func (r *rig) hold(user string, announced, came int) (end func() answer) {
	r.t.Helper()
	b := &stuckBody{strings.NewReader(strings.Repeat(" ", came)), make(chan struct{}, 1), make(chan struct{})}
	req := r.request("POST", "/api/settings", b)
	req.ContentLength = int64(announced)
	if req.Header.Del("X-Session-API-Key"); user != "" {
		req.Header.Set("X-Session-API-Key", r.keys[user])
	}
	w, done := httptest.NewRecorder(), make(chan struct{})
	go func() { defer close(done); r.door.ServeHTTP(w, req) }()
	select {
	case <-b.waiting:
	case <-done:
	}
	return func() answer {
		close(b.end)
		<-done
		return answer{w.Code, w.Body.String(), w.Header()}
	}
}

func (r *rig) bodyMemory() int64 {
	r.door.intake.mu.Lock()
	defer r.door.intake.mu.Unlock()
	return r.door.intake.total
}

// Bodies that do not come to their end take as much memory as came of them, and a user cannot have more than a share.
func TestMemoryOfBodiesIsBounded(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Bodies = Bodies{PerUser: 1<<20 + 64<<10, Total: 3 << 20} }})
	announced := r.hold("ada", 15<<20, 0)
	if n := r.bodyMemory(); n > firstPiece {
		t.Errorf("%d bytes are set aside for nothing", n)
	}
	stranger := r.hold("", 15<<20, 0) // the key comes before the body
	if a := stranger(); a.status != http.StatusUnauthorized || r.bodyMemory() > firstPiece {
		t.Errorf("%d %s", a.status, a.body)
	}
	half := 400 << 10 // for which 512 KiB are set aside
	first, second := r.hold("ada", -1, half), r.hold("ada", 15<<20, half)
	third := r.hold("ada", 15<<20, half)
	if a := third(); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := r.as("bob", "POST", "/api/settings", "{}"); a.status != http.StatusOK {
		t.Errorf("another user: %d %s", a.status, a.body)
	}
	for _, end := range []func() answer{first, second, announced} {
		if a := end(); a.status != http.StatusBadRequest {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := r.bodyMemory(); n != 0 {
		t.Errorf("%d bytes are never given back", n)
	}
	if a := r.do("POST", "/api/settings", strings.Repeat(" ", 400<<10)+"{}"); a.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
	var held []func() answer
	for _, user := range []string{"ada", "bob", "admin"} {
		held = append(held, r.hold(user, -1, 900<<10))
	}
	if a := r.as("ada", "POST", "/api/settings", "{}"); a.status != http.StatusServiceUnavailable {
		t.Errorf("all is taken: %d %s", a.status, a.body)
	}
	for _, end := range held {
		end()
	}
}

// A short body that decodes to much is refused before it is decoded, wherever it comes in; a long string is not.
func TestBodiesOfManyValues(t *testing.T) {
	r := newRig(t, tune{})
	list := func(before, item, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(item+",", maxValues), ",") + after
	}
	for path, body := range map[string]string{
		"POST /api/settings":               list(`{"mcp_config":{"sse_servers":[`, `{}`, `]}}`),
		"POST /api/conversations":          list(`{"image_urls":[`, `""`, `]}`),
		"POST /api/conversations/x/events": list(`{"action":"message","args":{"content":"x","a":[`, `1`, `]}}`),
		"POST /mcp":                        list(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[`, `{}`, `]}}}`),
	} {
		method, path, _ := strings.Cut(path, " ")
		if a := r.do(method, path, body); a.status != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, itoa(maxValues)+" JSON values") {
			t.Errorf("%s: %d %.200s", path, a.status, a.body)
		}
	}
	if a := r.do("POST", "/mcp", strings.Repeat("[", maxDepth+2)); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "nested too deeply") {
		t.Errorf("%d %.200s", a.status, a.body)
	}
	image := []byte(`{"image_urls":["data:image/png;base64,` + strings.Repeat("A", 12<<20) + `"]}`)
	body, release, err := r.door.receiveJSON(httptest.NewRecorder(), httptest.NewRequest("POST", "/", bytes.NewReader(image)), "ada", maxBody)
	if err != nil || len(body) != len(image) {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if n := r.bodyMemory(); n < 2*int64(len(image))+4*valueMemory {
		t.Errorf("%d bytes are set aside for what %d bytes decode to", n, len(image))
	}
	if release(); r.bodyMemory() != 0 {
		t.Errorf("%d bytes are never given back", r.bodyMemory())
	}
}

// Webhooks, which have no key, leave room for others without one, and all of these for those with one.
func TestDeliveriesLeaveRoom(t *testing.T) {
	t.Parallel()
	i := newIntake(Bodies{PerUser: 200, Total: 1600})
	for _, c := range []struct {
		user string
		n    int64
		ok   bool
	}{
		{deliverers + "a", 200, true}, {deliverers + "b", 101, false}, {deliverers + "b", 100, true}, {deliverers + "c", 1, false},
		{strangers + "a", 101, false}, {strangers + "a", 100, true}, {strangers + "b", 1, false}, {"ada", 200, true},
	} {
		if f := i.take(c.user, c.n); (f == nil) != c.ok {
			t.Errorf("%q takes %d: %v", c.user, c.n, f)
		}
	}
	for user, n := range map[string]int64{deliverers + "a": 200, deliverers + "b": 100, strangers + "a": 100, "ada": 200} {
		i.give(user, n)
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
			d := &Door{intake: newIntake(Bodies{})}
			w := &timedWriter{ResponseWriter: httptest.NewRecorder()}
			r := httptest.NewRequest("POST", "/", nil)
			r.Body, r.ContentLength = io.NopCloser(&trickle{w, 1 << 20, c.piece, c.silent}), 1<<20
			begin := time.Now()
			body, release, err := d.receive(w, r, "ada", maxBody)
			release()
			switch {
			case c.status == 0 && (err != nil || len(body) != 1<<20):
				t.Errorf("%d bytes a second: %v", c.piece, err)
			case c.status != 0 && (err == nil || translate(err).status != c.status):
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
	d := &Door{intake: newIntake(Bodies{})}
	for _, n := range []int{0, 1, firstPiece - 1, firstPiece, firstPiece + 1, 100_000, 200_000} {
		sent := bytes.Repeat([]byte("x"), n)
		for _, announced := range []int64{int64(n), -1} {
			r := httptest.NewRequest("POST", "/", bytes.NewReader(sent))
			r.ContentLength = announced
			got, release, err := d.receive(httptest.NewRecorder(), r, "ada", 100_000)
			release()
			if tooMuch := n > 100_000; tooMuch != (err != nil) || !tooMuch && !bytes.Equal(got, sent) {
				t.Errorf("%d bytes, %d announced: %d bytes, %v", n, announced, len(got), err)
			}
		}
	}
	if d.intake.total != 0 || len(d.intake.users) != 0 {
		t.Errorf("%d bytes are never given back: %v", d.intake.total, d.intake.users)
	}
}
