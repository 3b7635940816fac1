package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/api"
)

// birds are secrets that must be found nowhere, by where they were put in.
type birds map[string]string

// put makes a secret that nobody else has.
func (b birds) put(where string) string {
	var r [12]byte
	_, _ = rand.Read(r[:])
	b[where] = "canary-" + hex.EncodeToString(r[:])
	return b[where]
}

// forms are the ways in which a secret can be written down. In base64 its
// letters depend on how many bytes stand before it, so all three ways are here.
func forms(secret string) []string {
	out := []string{secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for shift := range 3 {
		coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), secret...))
		inner := coded[4 : len(coded)-4]
		out = append(out, inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
	return out
}

// in names the secrets that a text shows.
func (b birds) in(text []byte) []string {
	var found []string
	for where, secret := range b {
		for i, form := range forms(secret) {
			if bytes.Contains(text, []byte(form)) {
				found = append(found, fmt.Sprintf("%s (form %d)", where, i))
				break
			}
		}
	}
	return found
}

// aviary is a server and everything it has said.
type aviary struct {
	*box
	birds birds
	said  bytes.Buffer
}

// ask makes a request and keeps the answer, head and body.
func (a *aviary) ask(method, path, body string, header ...string) (int, string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("X-Session-API-Key", a.key)
	if method != "GET" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		a.t.Fatal(err)
	}
	fmt.Fprintf(&a.said, "%d %v\n%s\n", res.StatusCode, res.Header, b)
	return res.StatusCode, string(b)
}

func (a *aviary) ok(method, path, body string, header ...string) string {
	a.t.Helper()
	status, text := a.ask(method, path, body, header...)
	if status >= 300 {
		a.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}

// A secret that was put in comes out nowhere: not in the data, not in the log, not in an answer.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	a := &aviary{box: serve(t, ""), birds: birds{}}
	put := a.birds.put
	forge := website(t, func(w http.ResponseWriter, r *http.Request) { // it knows the tokens and gives nothing for them
		if !strings.HasSuffix(r.URL.Path, "/user") {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, `{"id":7,"login":"ada","username":"ada"}`)
	})
	settings := fmt.Sprintf(`{"llm_model":"scripted/demo","llm_api_key":%q,"search_api_key":%q,"sandbox_api_key":%q,"unknown_field":%q,
		"secrets_store":{"provider_tokens":{"github":{"token":%q,"host":%q},"gitlab":{"token":%q,"host":%q,"user_id":"7"}},"custom_secrets":{"NPM_TOKEN":%q,"DB":{"secret":%q,"description":"a database"}}},
		"mcp_config":{"sse_servers":[{"url":"https://a.example/sse","api_key":%q}],"stdio_servers":[{"name":"fs","command":"no-such-program","args":["--token",%q],"env":{"KEY":%q}}],"shttp_servers":[{"url":"https://b.example/mcp","api_key":%q}]}}`,
		put("llm_api_key"), put("search_api_key"), put("sandbox_api_key"), put("unknown settings field"), put("github token"), forge, put("gitlab token"), forge, put("custom secret"), put("described secret"),
		put("sse api_key"), "plain", put("stdio env"), put("shttp api_key"))
	a.ok("POST", "/api/settings", settings, "Idempotency-Key", "settings")
	a.ok("POST", "/api/settings", settings, "Idempotency-Key", "settings")
	a.ok("GET", "/api/settings", "")
	conversation := fmt.Sprintf(`{"conversation_id":"bird","initial_user_msg":"hello","mcp_config":{"sse_servers":[{"url":"https://c.example/sse","api_key":%q}],"stdio_servers":[{"name":"fs","command":"no-such-program","args":["-k",%q],"env":{"KEY":%q}}],"shttp_servers":[{"url":"https://d.example/","api_key":%q}]}}`,
		put("conversation sse api_key"), put("conversation stdio argument"), put("conversation stdio env"), put("conversation shttp api_key"))
	a.ok("POST", "/api/conversations", conversation, "Idempotency-Key", "conversation")
	a.ok("POST", "/api/conversations", conversation)
	a.follow("bird", 0, agentIs("awaiting_user_input"))

	// A new key is shown once; the request sent again gets that same answer.
	shown := a.said.Len()
	first := a.ok("POST", "/api/keys", `{"name":"ci"}`, "Idempotency-Key", "key")
	if again := a.ok("POST", "/api/keys", `{"name":"ci"}`, "Idempotency-Key", "key"); again != first {
		t.Errorf("%s and %s", first, again)
	}
	a.said.Truncate(shown)
	var made api.NewKey
	if err := json.Unmarshal([]byte(first), &made); err != nil {
		t.Fatal(err)
	}
	a.birds["new API key"] = made.Secret
	a.birds["admin's key"] = a.key
	_, ticket, _ := strings.Cut(a.link, "#")
	a.birds["login ticket"] = ticket

	a.mistakes()
	a.everyRoute()
	a.ok("POST", "/api/login", fmt.Sprintf(`{"key":%q}`, made.Secret), "Idempotency-Key", "login")
	var tools bytes.Buffer
	for _, args := range [][]string{{"key", "list"}, {"user", "list"}, {"doctor", "--addr", "127.0.0.1:0"}, {"doctor", "bird"}, {"key", "rotate-master"}, {"key", "revoke", made.ID}} {
		_, out, errs := command(t, append(args, "--data-dir", a.dir)...)
		tools.WriteString(out + errs)
	}
	a.ok("GET", "/api/settings", "")
	if found := a.birds.in(tools.Bytes()); found != nil {
		t.Errorf("commands print %v", found)
	}
	a.search()
	a.stop() // what was only in memory until now is in the files after this
	a.search()
}

// mistakes puts secrets where they do not belong.
func (a *aviary) mistakes() {
	put := a.birds.put
	for i, c := range [][3]string{
		{"POST", "/api/settings", `{"llm_api_key":{"value":%q}}`},
		{"POST", "/api/settings", `{"llm_api_key":[%q]}`},
		{"POST", "/api/settings", `{"llm_api_key":"%s\nInjected: yes"}`},
		{"POST", "/api/settings", `{"max_iterations":%q}`},
		{"POST", "/api/settings", `{"llm_base_url":"https://user:%s@host.example/"}`},
		{"POST", "/api/settings", `{"llm_base_url":%q}`},
		{"POST", "/api/settings", `{"agent":%q}`},
		{"POST", "/api/settings", `{"email":%q}`},
		{"POST", "/api/settings", `{"secrets_store":%q}`},
		{"POST", "/api/settings", `{"secrets_store":{"provider_tokens":{"github":[%q]}}}`},
		{"POST", "/api/settings", `{"secrets_store":{"provider_tokens":{"nowhere":%q}}}`},
		{"POST", "/api/settings", `{"secrets_store":{"custom_secrets":{"NOT A NAME":%q}}}`},
		{"POST", "/api/settings", `{"mcp_config":{"sse_servers":[{"url":5,"api_key":%q}]}}`},
		{"POST", "/api/settings", `{"mcp_config":{"stdio_servers":[{"name":"n","command":"x -k %s"}]}}`},
		{"POST", "/api/settings", `{"llm_api_key":%q`},
		{"POST", "/api/settings", `{"llm_api_key":%q} trailing`},
		{"POST", "/api/conversations", `{"mcp_config":{"sse_servers":[{"url":"ftp://x/","api_key":%q}]}}`},
		{"POST", "/api/conversations", `{"api_key":%q}`},
		{"POST", "/api/conversations", `{"repository":%q}`},
		{"POST", "/api/conversations", `{"conversation_id":"bird","initial_user_msg":%q}`},
		{"POST", "/api/conversations/bird/events", `{"action":"run","args":{"command":[%q]}}`},
		{"POST", "/api/keys", `{"key":%q}`},
		{"POST", "/api/login", `{"key":%q}`},
		{"POST", "/api/login", `{"ticket":%q}`},
		{"POST", "/api/login", `{"key":[%q]}`},
	} {
		secret := put(fmt.Sprintf("mistake %d: %s %s %s", i, c[0], c[1], c[2]))
		if status, text := a.ask(c[0], c[1], fmt.Sprintf(c[2], secret)); status < 400 || status >= 500 {
			a.t.Errorf("%v: %d %s", c, status, text)
		}
	}
	a.ask("GET", "/api/me", "", "X-Session-API-Key", put("wrong key"))
	a.ask("GET", "/api/me", "", "X-Session-API-Key", "", "Authorization", "Bearer "+put("wrong bearer"))
	a.ask("GET", "/api/me?session_api_key="+put("key in the query"), "", "X-Session-API-Key", "")
	a.ask("GET", "/api/me", "", "X-Session-API-Key", "", "Cookie", "deckhand_session="+put("wrong cookie"))
	a.ask("GET", "/api/conversations/bird/events/stream?after="+put("position"), "")
	a.ask("GET", "/api/conversations?page_id="+put("page id"), "")
	a.ask("DELETE", "/api/keys/"+a.birds["new API key"], "")
}

// everyRoute asks for everything the document lists, streams excepted: they are followed elsewhere.
func (a *aviary) everyRoute() {
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(a.ok("GET", "/openapi.json", "")), &doc); err != nil {
		a.t.Fatal(err)
	}
	n := 0
	for path, item := range doc.Paths {
		if strings.HasSuffix(path, "/stream") || strings.HasSuffix(path, "/ws") {
			continue
		}
		for method := range item {
			if method == "delete" {
				continue // the conversation is still needed
			}
			at := strings.NewReplacer("{conversation_id}", "bird", "{key_id}", "none", "{name}", "style.css").Replace(path)
			if status, text := a.ask(strings.ToUpper(method), at, ""); status >= 500 {
				a.t.Errorf("%s %s: %d %s", method, at, status, text)
			}
			n++
		}
	}
	if n < 20 {
		a.t.Errorf("only %d routes", n)
	}
	a.ok("GET", "/api/conversations/bird/events?limit=100", "")
}

// search looks through all that was written.
func (a *aviary) search() {
	a.t.Helper()
	if found := a.birds.in(a.said.Bytes()); found != nil {
		a.t.Errorf("answers show %v", found)
	}
	if found := a.birds.in([]byte(a.logs.String())); found != nil {
		a.t.Errorf("the log shows %v", found)
	}
	master, err := os.ReadFile(filepath.Join(a.dir, "master.key"))
	if err != nil {
		a.t.Fatal(err)
	}
	all := birds{"master key": strings.TrimSpace(string(master))}
	for where, secret := range a.birds {
		all[where] = secret
	}
	files := 0
	err = filepath.WalkDir(a.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, where := range all.in(text) {
			name := filepath.Base(path)
			if name == "admin.key" && strings.HasPrefix(where, "admin's key") || name == "master.key" && strings.HasPrefix(where, "master key") {
				continue
			}
			a.t.Errorf("%s holds %s", name, where)
		}
		return nil
	})
	if err != nil || files < 3 {
		a.t.Errorf("%d files, %v", files, err)
	}
}

// The search above must be able to find what it looks for.
func TestBirdsAreFound(t *testing.T) {
	t.Parallel()
	b := birds{}
	secret := b.put("x")
	for _, text := range []string{secret, "a" + secret + "b", hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.URLEncoding.EncodeToString([]byte(`{"k":"` + secret + `"}`)), base64.StdEncoding.EncodeToString([]byte(`{"ke":"` + secret + `"}`)), base64.RawURLEncoding.EncodeToString([]byte(`{"key":"` + secret + `"}`))} {
		if b.in([]byte(text)) == nil {
			t.Errorf("not found in %s", text)
		}
	}
	if b.in([]byte("canary-")) != nil {
		t.Error("found where it is not")
	}
}
