package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"deckhand/api"
	"deckhand/client"
)

// webAttacks are requests that a web page can make a browser send, by what they are after. Each
// would be answered if it came from our own page, or from a program with a key.
func webAttacks(id string) map[string][3]string {
	return map[string][3]string{
		"health":            {"GET", "/alive", ""},
		"who am I":          {"GET", "/api/me", ""},
		"settings":          {"POST", "/api/settings", `{"language":"de"}`},
		"a stream":          {"GET", "/api/conversations/" + id + "/events/stream", ""},
		"a socket":          {"GET", "/api/conversations/" + id + "/events/ws", ""},
		"a terminal":        {"GET", "/api/conversations/" + id + "/terminal", ""},
		"polling Socket.IO": {"GET", "/socket.io/?EIO=4&transport=polling&conversation_id=" + id, ""},
		"Socket.IO":         {"GET", "/socket.io/?EIO=4&transport=websocket&conversation_id=" + id, ""},
		"our tool server":   {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		"the page":          {"GET", "/", ""},
	}
}

// fromPage sends one of them with the victim's key or cookie.
func (b *box) fromPage(attack [3]string, header ...string) int {
	b.t.Helper()
	if strings.HasSuffix(attack[1], "/ws") || strings.HasSuffix(attack[1], "/terminal") || strings.Contains(attack[1], "transport=websocket") {
		header = append(header, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, attack[0], b.base+attack[1], strings.NewReader(attack[2]))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("X-Session-API-Key", b.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Del(header[i]); header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// A web page that has a name pointed at the server, or that is merely open beside it, gets
// nothing: not with the victim's key, not with the victim's cookie, on no route and no upgrade.
func TestAttackForeignPages(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	status, body, head := b.raw("POST", "/api/login", `{"key":"`+b.key+`"}`, "X-Session-API-Key", "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	for what, attack := range webAttacks(id) {
		if what == "a terminal" {
			continue // it would start a sandbox
		}
		if got := b.fromPage(attack); got != http.StatusOK && got != http.StatusSwitchingProtocols {
			t.Errorf("%s from a program with a key: %d, so its refusal below would prove nothing", what, got)
		}
	}
	b.post("/api/settings", `{"language":"en"}`)
	for what, attack := range webAttacks(id) {
		for _, host := range []string{"evil.test", "evil.test:80", "127.evil.com", "localhost.evil.com", "127.0.0.1.nip.io", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0"} {
			if got := b.fromPage(attack, "Host", host); got != http.StatusMisdirectedRequest && got != http.StatusBadRequest {
				t.Errorf("%s at Host %s: %d", what, host, got)
			}
		}
		for _, origin := range []string{"null", "http://evil.test", b.base + ".evil.test", "http://localhost", "http://127.0.0.1:1", "file://"} {
			for name, login := range map[string][]string{"key": {}, "cookie": {"X-Session-API-Key", "", "Cookie", cookie}} {
				if got := b.fromPage(attack, append([]string{"Origin", origin, "Sec-Fetch-Site", "cross-site"}, login...)...); got != http.StatusForbidden {
					t.Errorf("%s from Origin %s with the %s: %d", what, origin, name, got)
				}
			}
		}
	}
	if s, err := b.client.Settings(t.Context()); err != nil || s.Language == nil || *s.Language != "en" {
		t.Errorf("a page changed the settings: %+v %v", s, err)
	}
}

// listeners opens every kind of stream with a key, waits until each is under way, and gives a
// channel that tells of the end of each.
func (b *box) listeners(ctx context.Context, id string) (names []string, ended chan string) {
	b.t.Helper()
	ended = make(chan string, 10)
	began := make(chan string, 10)
	start := func(name string, read func(began func()) error) {
		names = append(names, name)
		go func() {
			once := false
			err := read(func() {
				if !once {
					once = true
					began <- name
				}
			})
			if !once {
				began <- name + " did not begin"
			}
			if ctx.Err() != nil || err == nil {
				ended <- name + " went on until the test gave up"
				return
			}
			ended <- name
		}()
	}
	c := client.New(b.base, b.key)
	start("events", func(began func()) error {
		for _, err := range c.FollowLegacy(ctx, id, 0) {
			if err != nil {
				return err
			}
			began()
		}
		return nil
	})
	start("list", func(began func()) error {
		for _, err := range c.FollowList(ctx) {
			if err != nil {
				return err
			}
			began()
		}
		return nil
	})
	start("terminal", func(began func()) error {
		term, err := c.Terminal(ctx, id, "", api.TerminalSize{Rows: 20, Cols: 80})
		if err != nil {
			return err
		}
		defer term.Close()
		if _, err := io.WriteString(term, "echo\r"); err != nil {
			return err
		}
		for buf := make([]byte, 1024); err == nil; {
			if _, err = term.Read(buf); err == nil {
				began()
			}
		}
		return err
	})
	sockets := map[string]string{
		"WebSocket": "/api/conversations/" + id + "/events/ws",
		"Socket.IO": "/socket.io/?" + url.Values{"EIO": {"4"}, "transport": {"websocket"}, "conversation_id": {id}, "latest_event_id": {"-1"}}.Encode(),
	}
	for name, path := range sockets {
		start(name, func(began func()) error {
			conn, _, err := websocket.Dial(ctx, b.base+path, &websocket.DialOptions{HTTPClient: http.DefaultClient, HTTPHeader: http.Header{"X-Session-Api-Key": {b.key}}})
			if err != nil {
				return err
			}
			defer conn.CloseNow()
			conn.SetReadLimit(-1)
			for {
				_, text, err := conn.Read(ctx)
				switch {
				case err != nil:
					return err
				case strings.HasPrefix(string(text), "0{"):
					err = conn.Write(ctx, websocket.MessageText, []byte("40"))
				case string(text) == "2":
					err = conn.Write(ctx, websocket.MessageText, []byte("3"))
				case strings.HasPrefix(string(text), "41"), strings.HasPrefix(string(text), "44"): // the server says goodbye, or refuses
					return errors.New(string(text))
				case name == "WebSocket" || strings.HasPrefix(string(text), `42["oh_event"`):
					began()
				}
				if err != nil {
					return err
				}
			}
		})
	}
	for range names {
		if got := <-began; strings.Contains(got, " ") {
			b.t.Error(got)
		}
	}
	return names, ended
}

// A key that is revoked, and a user who is disabled, are out at once: every open stream ends,
// and nothing that is sent afterwards is taken.
func TestAttackRevokedKey(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	for how, end := range map[string]func(user, key string) (int, string){
		"revoked": func(_, key string) (int, string) {
			code, _, errs := command(t, "key", "revoke", key, "--data-dir", b.dir)
			return code, errs
		},
		"disabled": func(user, _ string) (int, string) {
			code, text, _ := b.raw("PATCH", "/api/users/"+user, `{"disabled":true}`)
			return code - http.StatusOK, text
		},
	} {
		t.Run(how, func(t *testing.T) {
			user := "user-" + how
			owner := b.userOf(user, "first")
			owner.t = t
			owner.demo("scripted/demo")
			id := owner.create("hello")
			owner.follow(id, 0, agentIs("awaiting_user_input"))
			made, err := owner.client.CreateKey(t.Context(), api.CreateKey{Name: api.Some("stolen")})
			if err != nil {
				t.Fatal(err)
			}
			thief := *owner
			thief.key, thief.client = made.Secret, client.New(b.base, made.Secret)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			names, ended := thief.listeners(ctx, id)
			if code, text := end(user, made.ID); code != 0 {
				t.Fatalf("%d %s", code, text)
			}
			for name, header := range map[string][]string{"header": {}, "bearer": {"X-Session-API-Key", "", "Authorization", "Bearer " + thief.key}} {
				if code, text, _ := thief.raw("GET", "/api/me", "", header...); code != http.StatusUnauthorized {
					t.Errorf("in a %s it still works: %d %s", name, code, text)
				}
			}
			for range names {
				if name := <-ended; strings.Contains(name, " ") {
					t.Error(name)
				}
			}
			if how == "disabled" {
				if code, text, _ := b.raw("PATCH", "/api/users/"+user, `{"disabled":false}`); code != http.StatusOK {
					t.Fatalf("%d %s", code, text)
				}
			}
			owner.remove(id)
		})
	}
}
