package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/httpapi/legacy"
	"deckhand/internal/httpapi/rest"
)

// The id of a connection is no key: knowing it is not enough to read events or to act.
func TestSocketIDIsNoKey(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	login := r.do("POST", "/api/login", `{"key":"`+r.keys["ada"]+`"}`, "X-Session-API-Key", "").want(t, 200)
	cookie, _, _ := strings.Cut(login.header.Get("Set-Cookie"), ";")
	cases := map[string]struct {
		join
		alone int // what a request with nothing but the id gets
	}{
		"query":  {join{user: "ada", query: q(id)}, http.StatusForbidden},
		"header": {join{query: q(id), header: []string{"X-Session-API-Key", r.keys["ada"]}}, http.StatusForbidden},
		"cookie": {join{query: q(id), header: []string{"Cookie", cookie}}, http.StatusForbidden},
		"auth":   {join{query: q(id), auth: map[string]string{"session_api_key": r.keys["ada"]}}, http.StatusOK},
		"auth beside a wrong header": {join{query: q(id), header: []string{"X-Session-API-Key", wrongKey}, auth: map[string]string{"session_api_key": r.keys["ada"]}},
			http.StatusOK},
	}
	clients := map[string]*legacyClient{} // all come before the first wrong key
	for name, c := range cases {
		c.transport = "polling"
		clients[name] = r.joined(c.join)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			client := clients[name]
			act := `42["oh_user_action",` + message("stolen "+name) + `]`
			at := "/socket.io/?EIO=4&transport=polling&sid=" + client.sid
			onSocket := strings.Replace(at, "polling", "websocket", 1)
			for _, key := range []string{"", wrongKey, r.keys["bob"]} {
				for _, header := range [][]string{{"X-Session-API-Key", key}, {"X-Session-API-Key", "", "Authorization", "Bearer " + key}} {
					if key == "" && c.alone == http.StatusOK || key == wrongKey && strings.HasSuffix(name, "wrong header") {
						continue
					}
					r.do("GET", at, "", header...).want(t, http.StatusForbidden, "invalid_session_api_key")
					r.do("POST", at, act, header...).want(t, http.StatusForbidden, "invalid_session_api_key")
					r.do("GET", onSocket, "", append(header, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")...).want(t, http.StatusForbidden)
				}
			}
			if c.alone == http.StatusOK {
				r.do("POST", at, `42["oh_user_action",`+message("alone "+name)+`]`, "X-Session-API-Key", "", "Content-Type", "text/plain").want(t, http.StatusOK)
			}
			client.emit("oh_user_action", message("own "+name))
			said := client.until(func(e heard) bool { return e.Args.Content == "own "+name })
			for _, e := range said {
				if strings.Contains(e.whole, "stolen") {
					t.Errorf("%s", e.whole)
				}
			}
		})
	}
}

// After a key is revoked, what waits for its connections is not delivered, and what they send is not done.
func TestSocketAfterRevocation(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	for _, place := range []string{"query", "auth"} {
		plain, key, err := r.gate.Create(t.Context(), "ada", "second", false, 0)
		if err != nil {
			t.Fatal(err)
		}
		j := join{transport: "polling", query: q(id, "session_api_key", plain)}
		if place == "auth" {
			j = join{transport: "polling", query: q(id), auth: map[string]string{"session_api_key": plain}}
		}
		client := r.joined(j)
		r.say(id, "unread "+place)
		if _, err := r.gate.Revoke(t.Context(), key.ID, true); err != nil {
			t.Fatal(err)
		}
		if came, err := client.take(); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("a poll, key in %s: %q, %v", place, came, err)
		}
		if err := client.send(`42["oh_user_action",` + message("too late") + `]`); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("a post, key in %s: %v", place, err)
		}
	}
	if a := r.do("GET", "/api/conversations/"+id+"/events", "").want(t, 200, "unread"); strings.Contains(a.body, "too late") {
		t.Errorf("%s", a.body)
	}
}

// Strangers cannot keep out those whose key comes with the first packet, not even from the same address, as behind a proxy,
// and what waits for a key is bounded.
func TestSocketsWaitingForAKey(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	for range 60 { // more than the allowance for wrong keys
		r.direct("127.0.0.1", "GET", "/socket.io/?EIO=4&transport=polling&session_api_key="+wrongKey)
	}
	for range legacy.MaxWaitingFrom + 50 {
		if a := r.direct("127.0.0.1", "GET", "/socket.io/?EIO=4&transport=polling"); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	for _, transport := range []string{"polling", "websocket"} {
		client := r.joined(join{transport: transport, query: q(id), auth: map[string]string{"session_api_key": r.keys["ada"]}})
		client.emit("oh_user_action", message(strings.Repeat("long ", rest.MaxPublicBody/4)+transport)) // it may send more now
		client.until(func(e heard) bool { return strings.HasSuffix(e.Args.Content, transport) })
	}
	waiting := r.api.legacy.Waiting
	if n, open := waiting(), r.api.legacy.Open(); n > legacy.MaxWaitingFrom || open > 60+legacy.MaxWaitingFrom+2 {
		t.Errorf("%d wait, %d connections are open", n, open)
	}
	for i := range legacy.MaxWaiting + 50 {
		r.direct("10.0."+strconv.FormatInt(int64(i/100), 10)+".1", "GET", "/socket.io/?EIO=4&transport=polling")
	}
	if n, open := waiting(), r.api.legacy.Open(); n != legacy.MaxWaiting || open > legacy.MaxWaiting+2 {
		t.Errorf("%d wait, %d connections are open", n, open)
	}
	guest := r.direct("10.1.1.1", "GET", "/socket.io/?EIO=4&transport=polling")
	sid := strings.Split(guest.body, `"`)[3]
	r.do("POST", "/socket.io/?EIO=4&transport=polling&sid="+sid, "4"+strings.Repeat("x", rest.MaxPublicBody), "X-Session-API-Key", "").want(t, http.StatusRequestEntityTooLarge)
	r.api.Close()
	if n := waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// What a client posts counts as memory of its user while it is read.
func TestSocketPostsTakeMemory(t *testing.T) {
	r := newSocketRig(t, tune{config: func(c *Config) { c.Bodies = rest.Bodies{PerUser: 64 << 10, Total: 1 << 20} }})
	id := r.create(`{}`)
	client := r.joined(join{user: "ada", transport: "polling", query: q(id)})
	client.emit("oh_user_action", message(strings.Repeat("x", 10<<10)))
	if n := r.bodyMemory(); n != 0 {
		t.Errorf("%d bytes are never given back", n)
	}
	if err := client.send(`42["oh_user_action",` + message(strings.Repeat("x", 100<<10)) + `]`); err == nil {
		t.Error("more was taken than there is memory for")
	}
	r.joined(join{user: "bob", transport: "polling", query: q(decoded[api.ConversationResponse](t, r.as("bob", "POST", "/api/conversations", `{}`)).ConversationID)})
	if n := r.bodyMemory(); n != 0 {
		t.Errorf("%d bytes are never given back", n)
	}
}
