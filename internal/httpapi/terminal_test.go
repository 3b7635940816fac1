package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/httpapi/forward"
)

// screen reads a terminal until something appears on it.
type screen struct {
	t    *testing.T
	term *client.Terminal
	seen bytes.Buffer
}

func (h *sandboxRig) terminal(id, name string, size api.TerminalSize) *screen {
	h.t.Helper()
	term, err := h.client.Terminal(h.t.Context(), id, name, size)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = term.Close() })
	return &screen{t: h.t, term: term}
}

func (s *screen) typed(text string) {
	s.t.Helper()
	if _, err := s.term.Write([]byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for a text, and gives what came before it.
func (s *screen) until(text string) string {
	s.t.Helper()
	buf := make([]byte, 4096)
	for {
		if before, after, ok := strings.Cut(s.seen.String(), text); ok {
			s.seen = *bytes.NewBufferString(after)
			return before
		}
		n, err := s.term.Read(buf)
		s.seen.Write(buf[:n])
		if err != nil {
			s.t.Fatalf("%v, and %q did not come: %q", err, text, s.seen.String())
		}
	}
}

func TestTerminal(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	s := h.terminal(id, "", api.TerminalSize{Rows: 30, Cols: 100})
	s.typed("echo he''llo; stty size\r")
	s.until("hello")
	s.until("30 100")
	if err := s.term.Resize(api.TerminalSize{Rows: 41, Cols: 123}); err != nil {
		t.Fatal(err)
	}
	// The answer comes when the size has: frames are taken in order.
	s.typed("stty size; echo af''ter\r")
	s.until("41 123")
	s.until("after")
	s.typed("printf 'r\\303\\251sum\\303\\251 \\377\\n'\r")
	s.until("résumé \xff")
	if err := s.term.Close(); err != nil {
		t.Error(err)
	}
	// It lives on, and shows what was on it.
	again := h.terminal(id, "main", api.TerminalSize{})
	again.until("hello")
	again.until("résumé")
	again.typed("echo still he''re\r")
	again.until("still here")
	// Another name is another terminal.
	other := h.terminal(id, "other", api.TerminalSize{})
	other.typed("echo fir''st\r")
	if before := other.until("first"); strings.Contains(before, "hello") {
		t.Errorf("%q", before)
	}
	other.typed("exit\r")
	buf := make([]byte, 4096)
	for {
		if _, err := other.term.Read(buf); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
			break
		}
	}
	log := h.logs.String()
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"terminal opened"`) && (!strings.Contains(line, `"user":"ada"`) || !strings.Contains(line, id)) {
			t.Errorf("%s", line)
		}
	}
	if strings.Count(log, `"terminal opened"`) != 3 || strings.Contains(log, "still he") {
		t.Errorf("%d terminals were logged", strings.Count(log, `"terminal opened"`))
	}
}

// A terminal can be opened in a stopped conversation; the sandbox ends with it.
func TestTerminalOfStopped(t *testing.T) {
	h := newSandboxRig(t)
	id := h.stopped()
	h.put(id, "note", "left behind")
	s := h.terminal(id, "", api.TerminalSize{})
	s.typed("cat note\r")
	s.until("left behind")
	box, err := h.driver.Attach(t.Context(), handleOf(id))
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if err := s.term.Close(); err != nil {
		t.Error(err)
	}
	<-box.Done()
	if c, err := h.client.Conversation(t.Context(), id); err != nil || c.Status != "STOPPED" {
		t.Errorf("%v %s", err, c.Status)
	}
}

// closed reads until the connection ends, and gives its code.
func (s *screen) closed() websocket.StatusCode {
	s.t.Helper()
	buf := make([]byte, 4096)
	for {
		_, err := s.term.Read(buf)
		if errors.Is(err, io.EOF) {
			return websocket.StatusNormalClosure
		}
		if err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func TestTerminalEnds(t *testing.T) {
	h := newSandboxRig(t)
	t.Run("with the sandbox", func(t *testing.T) {
		mine, r := *h, *h.rig
		r.t, mine.rig = t, &r
		id, _ := mine.begun()
		s := mine.terminal(id, "", api.TerminalSize{})
		s.typed("echo re''ady\r")
		s.until("ready")
		if _, err := mine.client.Stop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		// Its shell may be gone a moment before the sandbox is.
		if code := s.closed(); code != websocket.StatusServiceRestart && code != websocket.StatusNormalClosure {
			t.Errorf("closed with %d", code)
		}
	})
	id, _ := h.begun()
	t.Run("with the key", func(t *testing.T) {
		mine, r := *h, *h.rig
		r.t, mine.rig = t, &r
		made, err := mine.client.CreateKey(t.Context(), api.CreateKey{})
		if err != nil {
			t.Fatal(err)
		}
		mine.client = client.New(mine.base, made.Secret)
		defer mine.client.HTTP.CloseIdleConnections()
		s := mine.terminal(id, "key", api.TerminalSize{})
		s.typed("echo re''ady\r")
		s.until("ready")
		if err := h.client.RevokeKey(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
		if code := s.closed(); code != 4001 {
			t.Errorf("closed with %d", code)
		}
		_, err = mine.client.Terminal(t.Context(), id, "", api.TerminalSize{})
		refused(t, err, http.StatusUnauthorized)
	})
	for name, frame := range map[string]string{"not JSON": "x", "no command": "{}", "no size": `{"resize":{}}`, "too large": `{"resize":{"rows":1001,"cols":1}}`, "negative": `{"resize":{"rows":-1,"cols":1}}`} {
		t.Run("with a text frame that is "+name, func(t *testing.T) {
			conn := h.dial(t, id, "")
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
				t.Fatal(err)
			}
			if code := lastCode(t, conn); code != websocket.StatusPolicyViolation {
				t.Errorf("closed with %d", code)
			}
		})
	}
	t.Run("with a frame that is too large", func(t *testing.T) {
		conn := h.dial(t, id, "")
		if err := conn.Write(t.Context(), websocket.MessageBinary, make([]byte, forward.MaxFrame+1)); err != nil {
			t.Fatal(err)
		}
		if code := lastCode(t, conn); code != websocket.StatusMessageTooBig {
			t.Errorf("closed with %d", code)
		}
	})
	t.Run("with the server", func(t *testing.T) {
		conn := h.dial(t, id, "")
		h.api.Close()
		if code := lastCode(t, conn); code != websocket.StatusGoingAway {
			t.Errorf("closed with %d", code)
		}
	})
}

func (h *sandboxRig) dial(t *testing.T, id, query string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), h.base+"/api/conversations/"+id+"/terminal"+query, &websocket.DialOptions{
		HTTPClient: h.rig.client, HTTPHeader: http.Header{"X-Session-Api-Key": {h.keys["ada"]}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func lastCode(t *testing.T, conn *websocket.Conn) websocket.StatusCode {
	t.Helper()
	for {
		if _, _, err := conn.Read(t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func TestTerminalIsRefused(t *testing.T) {
	h := newSandboxRig(t)
	id := h.create(`{}`)
	path := "/api/conversations/" + id + "/terminal"
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	ask := func(query string, header ...string) answer {
		return h.do("GET", path+query, "", append(header, upgrade...)...)
	}
	for _, origin := range []string{"http://evil.test", "null", h.base + ".evil.test"} {
		ask("", "Origin", origin).want(t, http.StatusForbidden)
	}
	ask("", "X-Session-API-Key", "").want(t, 401)
	ask("?session_api_key="+h.keys["ada"], "X-Session-API-Key", "").want(t, 401)
	login := h.do("POST", "/api/login", `{"key":"`+h.keys["ada"]+`"}`, "X-Session-API-Key", "").want(t, 200)
	cookie, _, _ := strings.Cut(login.header.Get("Set-Cookie"), ";")
	ask("", "X-Session-API-Key", "", "Cookie", cookie, "Origin", "http://evil.test").want(t, http.StatusForbidden)
	ask("", "X-Session-API-Key", "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site").want(t, 401)
	for query, loc := range map[string]string{"?name=": "name", "?name=a%20b": "name", "?name=" + strings.Repeat("a", 33): "name", "?name=../x": "name", "?rows=0": "rows", "?cols=1001": "cols", "?rows=x": "rows", "?rows=1&rows=2": "rows"} {
		ask(query).want(t, 422, `"query","`+loc+`"`)
	}
	h.do("GET", path, "").want(t, http.StatusUpgradeRequired, "WebSocket")
	h.asleep(id)
	if found, err := h.driver.List(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("a request that was refused made a sandbox: %v %v", found, err)
	}
	// The browser's login opens it for our own page.
	conn, _, err := websocket.Dial(t.Context(), h.base+path, &websocket.DialOptions{HTTPClient: h.rig.client,
		HTTPHeader: http.Header{"Cookie": {cookie}, "Origin": {h.base}}})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.CloseNow()
}

// A client that does not read holds up its terminal and nothing else.
func TestTerminalWithoutReader(t *testing.T) {
	h := newSandboxRig(t)
	id, _ := h.begun()
	stalled := h.dial(t, id, "?name=stalled")
	if err := stalled.Write(t.Context(), websocket.MessageBinary, []byte("yes\r")); err != nil {
		t.Fatal(err)
	}
	s := h.terminal(id, "", api.TerminalSize{})
	s.typed("echo al''ive\r")
	s.until("alive")
	if _, err := h.client.ListFiles(t.Context(), id, ""); err != nil {
		t.Error(err)
	}
}
