package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
	"deckhand/client"
)

// openRoutes need no key: health, login, the page, what providers send, and Socket.IO, which
// checks the key itself.
var openRoutes = []string{"/alive", "/health", "/ready", "/server_info", "/login", "/login/oidc", "/login/oidc/callback", "/api/login", "/api/login/options", "/assets/deckhand/{name}",
	"/integrations/{provider}/webhook", "/socket.io", "/socket.io/", "/", "/conversations/{conversation_id}", "/conversations/{conversation_id}/{tab}", "/settings", "/settings/{tab}", "/ui/{name}", "/manifest.webmanifest", "/sw.js"}

// claims are headers by which a client says who it is. None of them counts.
var claims = []string{"X-Forwarded-User", "victim", "X-Remote-User", "victim", "Remote-User", "victim", "X-User", "victim", "X-Auth-Request-User", "victim", "X-Role", "admin",
	"X-Scopes", "admin", "X-Admin", "true", "Forwarded", "for=127.0.0.1;by=admin", "X-Forwarded-For", "127.0.0.1", "X-Original-URL", "/api/me", "X-Rewrite-URL", "/api/me"}

// intruder attacks a server on which a victim has something of every kind.
type intruder struct {
	*box
	victim, thief *box
	canaries      birds
	victims       map[string]string // ids in paths, those of the victim
	unknown       map[string]string // and such that do not exist
	sent          int
}

// userOf makes a user with a key.
func (b *box) userOf(name, label string) *box {
	b.t.Helper()
	made, err := b.client.CreateKey(b.t.Context(), api.CreateKey{User: api.Some(name), Name: api.Some(label)})
	if err != nil {
		b.t.Fatal(err)
	}
	u := *b
	u.key, u.client = made.Secret, client.New(b.base, made.Secret)
	return &u
}

// newIntruder fills a server with canaries of a victim.
func newIntruder(t *testing.T) *intruder {
	t.Helper()
	x := &intruder{box: serve(t, "", "--body-memory", "1G"), canaries: birds{}}
	put, ctx := x.canaries.put, t.Context()
	x.victim, x.thief = x.userOf("victim", put("label of a key")), x.userOf("thief", "mine")
	x.thief.demo("scripted/demo")
	x.victim.post("/api/settings", fmt.Sprintf(`{"llm_model":"scripted/demo","llm_api_key":%q,"search_api_key":%q,"git_user_name":%q,"secrets_store":{"custom_secrets":{"%s":{"secret":%q,"description":%q}}},
		"mcp_config":{"sse_servers":[],"stdio_servers":[{"name":"tools","command":"no-such-program","args":[%q]}],"shttp_servers":[]}}`,
		put("model key"), put("search key"), put("git name"), strings.ReplaceAll(put("name of a secret"), "-", "_"), put("secret"), put("description of a secret"), put("argument of a tool server")))
	x.canaries["name of a secret"] = strings.ReplaceAll(x.canaries["name of a secret"], "-", "_")
	x.victim.post("/api/settings", `{"mcp_config":{"sse_servers":[],"stdio_servers":[],"shttp_servers":[]}}`) // stored once, and never started
	id := x.victim.create(put("first message"))
	x.victim.follow(id, 0, agentIs("awaiting_user_input"))
	if err := x.victim.client.Rename(ctx, id, put("title")); err != nil {
		t.Fatal(err)
	}
	x.victim.upload(id, map[string]string{put("name of a file"): put("file")})
	hook := x.victim.hook(website(t, func(http.ResponseWriter, *http.Request) {}) + "/" + put("address of a webhook"))
	if _, err := x.victim.client.TestWebhook(ctx, hook.ID); err != nil {
		t.Fatal(err)
	}
	key, err := x.victim.client.CreateKey(ctx, api.CreateKey{Name: api.Some("second")})
	if err != nil {
		t.Fatal(err)
	}
	x.canaries["second key"], x.canaries["key"], x.canaries["secret of a webhook"] = key.Secret, x.victim.key, hook.Secret
	x.victims = map[string]string{"conversation_id": id, "webhook_id": hook.ID, "delivery_id": fmt.Sprint(x.victim.tried(hook.ID).ID), "key_id": key.ID, "secret_id": x.canaries["name of a secret"],
		"integration_id": "none", "name": "victim", "tab": "changes", "page": "security", "folder": "decisions", "provider": "gitea", "path": "policy", "event_id": "1", "repository_name": "octo%2Fapp"}
	x.unknown = maps.Clone(x.victims)
	for _, name := range []string{"conversation_id", "webhook_id", "key_id", "secret_id"} {
		x.unknown[name] = twisted(x.victims[name])
	}
	x.unknown["name"] = "nobody"
	return x
}

// twisted is an id of the same shape that does not exist.
func twisted(id string) string {
	last := "a"
	if strings.HasSuffix(id, last) {
		last = "b"
	}
	return id[:len(id)-1] + last
}

// upload puts files into a workspace.
func (b *box) upload(id string, files map[string]string) {
	b.t.Helper()
	body, kind := uploadForm(b.t, files)
	if code, text, _ := b.raw("POST", "/api/conversations/"+id+"/upload-files", body, "Content-Type", kind); code != http.StatusOK {
		b.t.Fatalf("%d %s", code, text)
	}
}

// uploadForm is a form with files, and its type.
func uploadForm(t *testing.T, files map[string]string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, text := range files {
		part, err := w.CreateFormFile("files", name)
		if err == nil {
			_, err = io.WriteString(part, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// bodies are what the routes take that change something.
var bodies = map[string]string{
	"/message": `{"message":"stolen"}`, "/events": `{"action":"message","args":{"content":"stolen"}}`, "/approvals": `{"decision":"accept"}`, "/egress": `{"mode":"open"}`, "/file": `{"path":"x","content":"stolen"}`,
	"/trust": `{"trusted":true}`, "/overrides": `{"llm_model":"scripted/demo"}`, "/fork": `{}`, "/restore": `{"event_id":1}`, "/{conversation_id}": `{"title":"stolen"}`, "/{webhook_id}": `{"enabled":false,"rotate_secret":true}`,
	"/{name}": `{"disabled":true}`, "/{secret_id}": `{"name":"STOLEN","description":"stolen"}`, "/{integration_id}": `{"label":"stolen"}`, "/submit-feedback": `{"feedback":"positive"}`, "/users": `{"name":"mallory","admin":true}`,
	"/keys": `{"user":"victim"}`, "/notifications": `{"muted":true}`,
}

// answer is what came back, as far as it matters here.
type wireAnswer struct {
	status int
	body   string
}

// strike makes one request from an address of the loopback network, with upgrades offered where
// there is something to upgrade, and looks for canaries in whatever comes back.
func (x *intruder) strike(who, key, method, path, query string, ids map[string]string, header ...string) wireAnswer {
	x.t.Helper()
	x.sent++
	ctx, cancel := context.WithTimeout(x.t.Context(), 2*time.Minute)
	defer cancel()
	at, body, kind := path, "", "application/json"
	for name, id := range ids {
		at = strings.ReplaceAll(at, "{"+name+"}", id)
	}
	if method != "GET" && method != "HEAD" {
		body = bodies[path[strings.LastIndex(path, "/"):]]
		if strings.HasSuffix(path, "/upload-files") {
			body, kind = uploadForm(x.t, map[string]string{"stolen": "stolen"})
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, x.base+at+query, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if key != "" {
		req.Header.Set("X-Session-API-Key", key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if strings.HasSuffix(path, "/ws") || strings.HasSuffix(path, "/terminal") {
		for name, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			req.Header.Set(name, v)
		}
	}
	// Every attempt comes from another address: wrong keys are counted by address.
	from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(x.sent>>8), byte(x.sent))}
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		x.t.Fatalf("%s: %s %s: %v", who, method, at, err)
	}
	defer res.Body.Close()
	var text []byte
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") { // it would go on; its first frame is everything that is there
		buf := make([]byte, 64<<10)
		n, _ := res.Body.Read(buf)
		text = buf[:n]
	} else if text, err = io.ReadAll(res.Body); err != nil {
		x.t.Fatalf("%s: %s %s: %v", who, method, at, err)
	}
	shown := fmt.Sprintf("%s %v", text, res.Header)
	if strings.Contains(path, "{secret_id}") { // the name that was asked for may be repeated
		shown = strings.ReplaceAll(shown, ids["secret_id"], "")
	}
	if found := x.canaries.in([]byte(shown)); found != nil {
		x.t.Errorf("%s: %s %s shows %v: %.500s", who, method, at, found, text)
	}
	return wireAnswer{res.StatusCode, string(text)}
}

// same makes answers to requests that differ in ids only comparable.
func (x *intruder) same(a wireAnswer, ids map[string]string) string {
	text := a.body
	for name, id := range ids {
		if len(id) > 6 {
			text = strings.ReplaceAll(text, id, "{"+name+"}")
		}
	}
	return fmt.Sprint(a.status, " ", text)
}

// owned tells whether a path leads to what belongs to somebody.
func owned(path string) bool {
	return slices.ContainsFunc([]string{"{conversation_id}", "{webhook_id}", "{key_id}", "{secret_id}", "{delivery_id}"}, func(id string) bool { return strings.Contains(path, id) }) && !slices.Contains(openRoutes, path)
}

// state is everything of the victim that an attack could change, line by line.
func (x *intruder) state() []string {
	var out []string
	id := x.victims["conversation_id"]
	for _, path := range []string{"/api/settings", "/api/secrets", "/api/webhooks", "/api/notifications", "/api/trusted-repositories", "/api/conversations/" + id + "/events?limit=100", "/api/conversations/" + id + "/trust",
		"/api/conversations/" + id + "/list-files", "/api/conversations/" + id + "/overrides", "/api/conversations/" + id + "/queue"} {
		code, text, _ := x.victim.raw("GET", path, "")
		out = append(out, fmt.Sprintln(path, code, text))
	}
	keys, err := x.victim.client.Keys(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	for _, k := range keys {
		out = append(out, fmt.Sprintln(k.ID, k.Name))
	}
	return out
}

// An outsider and another user try every route of the document with every method. The outsider
// is refused; the other user cannot tell what the victim has from what does not exist; neither
// is shown anything of the victim or changes it.
func TestAttackEveryRoute(t *testing.T) {
	t.Parallel()
	x := newIntruder(t)
	defer x.victim.remove(x.victims["conversation_id"])
	var doc struct{ Paths map[string]map[string]any }
	code, text, _ := x.raw("GET", "/openapi.json", "")
	if err := json.Unmarshal([]byte(text), &doc); err != nil || code != http.StatusOK || len(doc.Paths) < 100 {
		t.Fatalf("%d, %d paths, %v", code, len(doc.Paths), err)
	}
	before := x.state()
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			for _, query := range []string{"", "?session_api_key=" + x.victim.key + "&api_key=" + x.victim.key + "&token=" + x.victim.key} {
				a := x.strike("outsider", "", method, path, query, x.victims, claims...)
				if !slices.Contains(openRoutes, path) && (a.status != http.StatusUnauthorized || a.body != `{"detail":"Unauthorized"}`) {
					t.Errorf("outsider: %s %s: %d %.300s", method, path, a.status, a.body)
				}
			}
			if path == "/api/logout" || path == "/api/login" || strings.HasPrefix(path, "/socket.io") {
				continue // they are about the own login and the own key
			}
			theirs := x.strike("thief", x.thief.key, method, path, "", x.victims, claims...)
			if !owned(path) {
				continue
			}
			none := x.strike("thief", x.thief.key, method, path, "", x.unknown, claims...)
			if got, want := x.same(theirs, x.victims), x.same(none, x.unknown); got != want || theirs.status < 400 || theirs.status == http.StatusForbidden && !strings.HasPrefix(path, "/api/admin/") || theirs.status >= 500 {
				t.Errorf("%s %s tells the victim's from what is not there: %.400s\n%.400s", method, path, got, want)
			}
		}
	}
	x.askTools()
	x.listen()
	for i, line := range x.state() {
		if i >= len(before) || line != before[i] {
			t.Errorf("the victim had something else before: %s", line)
		}
	}
	x.repeat()
	if found := (birds{"the victim's key": x.victim.key}).in([]byte(x.logs.String())); found != nil {
		t.Error("the log shows a key that stood in an address")
	}
	t.Logf("%d requests", x.sent)
}

// bearer adds a key to each request.
type bearer struct{ key string }

func (k bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(r)
}

// askTools has the thief call each tool of the server's own MCP server on what belongs to the victim.
func (x *intruder) askTools() {
	x.t.Helper()
	ctx := x.t.Context()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "thief"}, nil).Connect(ctx, &sdk.StreamableClientTransport{Endpoint: x.base + "/mcp", HTTPClient: &http.Client{Transport: bearer{x.thief.key}}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	defer s.Close()
	list, err := s.ListTools(ctx, nil)
	if err != nil || len(list.Tools) < 6 {
		x.t.Fatalf("%+v %v", list, err)
	}
	for _, tool := range list.Tools {
		var told []string
		for _, ids := range []map[string]string{x.victims, x.unknown} {
			args := map[string]any{"conversation_id": ids["conversation_id"]}
			if tool.Name == "send_message" {
				args["message"] = "stolen"
			}
			if tool.Name == "create_conversation" || strings.HasPrefix(tool.Name, "create_") {
				continue // it makes something new, and takes no id
			}
			if tool.Name == "list_conversations" {
				args = nil
			}
			res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: tool.Name, Arguments: args})
			text, _ := json.Marshal(res)
			if found := x.canaries.in(text); found != nil || err == nil && !res.IsError && args != nil {
				x.t.Errorf("%s shows %v: %.500s %v", tool.Name, found, text, err)
			}
			told = append(told, x.same(wireAnswer{0, fmt.Sprint(string(text), err)}, ids))
		}
		if len(told) == 2 && told[0] != told[1] {
			x.t.Errorf("%s tells the victim's from what is not there: %s\n%s", tool.Name, told[0], told[1])
		}
	}
}

// listen has the thief join the victim's conversation, by the sockets of legacy clients.
func (x *intruder) listen() {
	x.t.Helper()
	for _, id := range []string{x.victims["conversation_id"], x.unknown["conversation_id"]} {
		if got := x.thief.dial("", "conversation_id", id, "latest_event_id", "-1", "session_api_key", x.thief.key).packet(); !strings.HasPrefix(got, `44{"message":"Conversation not found"`) {
			x.t.Errorf("%.300s", got)
		}
	}
}

// repeat has the thief send a request with the victim's idempotency key: answers are kept for
// the user who got them.
func (x *intruder) repeat() {
	x.t.Helper()
	_, first, _ := x.victim.raw("POST", "/api/keys", `{"name":"ci"}`, "Idempotency-Key", "ci-key")
	code, second, _ := x.thief.raw("POST", "/api/keys", `{"name":"ci"}`, "Idempotency-Key", "ci-key")
	var theirs, own api.NewKey
	if err := json.Unmarshal([]byte(first), &theirs); err != nil {
		x.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(second), &own); err != nil || code != http.StatusCreated || own.Secret == theirs.Secret || own.ID == theirs.ID {
		x.t.Errorf("%d %v: the thief is given the victim's key", code, err)
	}
	if err := x.victim.client.RevokeKey(x.t.Context(), theirs.ID); err != nil {
		x.t.Fatal(err)
	}
}
