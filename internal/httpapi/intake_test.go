package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/httpapi/rest"
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

// hold begins a request of which so much has come, and returns when the handler waits for the rest.
func (r *rig) hold(user string, announced, came int) (end func() answer) {
	r.t.Helper()
	b := &stuckBody{strings.NewReader(strings.Repeat(" ", came)), make(chan struct{}, 1), make(chan struct{})}
	req := r.request("POST", "/api/settings", b)
	req.ContentLength = int64(announced)
	if req.Header.Del("X-Session-API-Key"); user != "" {
		req.Header.Set("X-Session-API-Key", r.keys[user])
	}
	w, done := httptest.NewRecorder(), make(chan struct{})
	go func() { defer close(done); r.api.ServeHTTP(w, req) }()
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
	return r.api.intake.Held()
}

// Bodies that do not come to their end take as much memory as came of them, and a user cannot have more than a share.
func TestMemoryOfBodiesIsBounded(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Bodies = rest.Bodies{PerUser: 1<<20 + 64<<10, Total: 3 << 20} }})
	announced := r.hold("ada", 15<<20, 0)
	if n := r.bodyMemory(); n > rest.FirstPiece {
		t.Errorf("%d bytes are set aside for nothing", n)
	}
	stranger := r.hold("", 15<<20, 0) // the key comes before the body
	if a := stranger(); a.status != http.StatusUnauthorized || r.bodyMemory() > rest.FirstPiece {
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
		return before + strings.TrimSuffix(strings.Repeat(item+",", rest.MaxValues), ",") + after
	}
	for path, body := range map[string]string{
		"POST /api/settings":               list(`{"mcp_config":{"sse_servers":[`, `{}`, `]}}`),
		"POST /api/conversations":          list(`{"image_urls":[`, `""`, `]}`),
		"POST /api/conversations/x/events": list(`{"action":"message","args":{"content":"x","a":[`, `1`, `]}}`),
		"POST /mcp":                        list(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[`, `{}`, `]}}}`),
	} {
		method, path, _ := strings.Cut(path, " ")
		if a := r.do(method, path, body); a.status != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, strconv.FormatInt(rest.MaxValues, 10)+" JSON values") {
			t.Errorf("%s: %d %.200s", path, a.status, a.body)
		}
	}
	if a := r.do("POST", "/mcp", strings.Repeat("[", rest.MaxDepth+2)); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "nested too deeply") {
		t.Errorf("%d %.200s", a.status, a.body)
	}
	image := []byte(`{"image_urls":["data:image/png;base64,` + strings.Repeat("A", 12<<20) + `"]}`)
	body, release, err := r.api.intake.ReceiveJSON(httptest.NewRecorder(), httptest.NewRequest("POST", "/", bytes.NewReader(image)), "ada", rest.MaxBody)
	if err != nil || len(body) != len(image) {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if n := r.bodyMemory(); n < 2*int64(len(image))+4*rest.ValueMemory {
		t.Errorf("%d bytes are set aside for what %d bytes decode to", n, len(image))
	}
	if release(); r.bodyMemory() != 0 {
		t.Errorf("%d bytes are never given back", r.bodyMemory())
	}
}
