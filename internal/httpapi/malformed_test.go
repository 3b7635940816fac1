package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

// canary stands where a secret might stand. No answer repeats it.
const canary = "CANARY-7f3a91c4"

// bad is a request that must be refused, and what the answer says.
type bad struct {
	name, method, path, body string
	header                   []string
	status                   int
	// loc is the path to the field, joined by dots; empty for other errors than 422.
	loc, msg string
}

// open is the conversation that the rows are about.
const open = "open-1"

const (
	toSettings = "/api/settings"
	toCreate   = "/api/conversations"
	toKeys     = "/api/keys"
	toOpen     = "/api/conversations/" + open
)

func post(path, name, body, loc, msg string) bad {
	return bad{name: name, method: "POST", path: path, body: body, status: 422, loc: loc, msg: msg}
}

// field is a POST of one field.
func field(path, name, value, msg string) bad {
	return post(path, name+"="+clip(value), `{"`+name+`":`+value+`}`, "body."+name, msg)
}

func get(path, query, loc, msg string) bad {
	return bad{name: "?" + clip(query), method: "GET", path: path + "?" + query, status: 422, loc: loc, msg: msg}
}

func clip(s string) string { return s[:min(len(s), 40)] }

func list(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// numbered is a list of n different items.
func numbered(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// bodies are mistakes in the JSON itself, the same for every route with a body.
func bodies(path string) []bad {
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	return []bad{
		post(path, "array", `["`+canary+`"]`, "body", "Must be an object"),
		post(path, "string", `"`+canary+`"`, "body", "Must be an object"),
		post(path, "number", `5`, "body", "Must be an object"),
		post(path, "null", `null`, "body", "Must not be null"),
		post(path, "truncated", `{"title":"`+canary, "body", "unexpected end"),
		post(path, "truncated object", `{"title":"`+canary+`"`, "body", "unexpected end"),
		post(path, "trailing", `{} `+canary, "body", "unexpected data after"),
		post(path, "two values", `{}{}`, "body", "unexpected data after"),
		post(path, "no quotes", `{title:"`+canary+`"}`, "body", "syntax error at byte"),
		post(path, "single quotes", `{'title':'`+canary+`'}`, "body", "syntax error at byte"),
		post(path, "comment", `{/*`+canary+`*/}`, "body", "syntax error at byte"),
		post(path, "trailing comma", `{"a":1,}`, "body", "syntax error at byte"),
		post(path, "byte order mark", "\ufeff{}", "body", "syntax error at byte"),
		post(path, "NaN", `{"max_budget_per_task":NaN}`, "body", "syntax error at byte"),
		post(path, "Infinity", `{"max_budget_per_task":-Infinity}`, "body", "syntax error at byte"),
		post(path, "leading zero", `{"max_iterations":05}`, "body", "syntax error at byte"),
		post(path, "hex", `{"max_iterations":0x10}`, "body", "syntax error at byte"),
		post(path, "invalid UTF-8", "{\"title\":\"\xff"+canary+"\"}", "body", "invalid UTF-8"),
		post(path, "overlong UTF-8", "{\"title\":\"\xc0\xaf"+canary+"\"}", "body", "invalid UTF-8"),
		post(path, "lone surrogate", `{"title":"\ud800`+canary+`"}`, "body", "invalid escape"),
		post(path, "control character", "{\"title\":\"\x01"+canary+"\"}", "body", "syntax error at byte"),
		post(path, "raw NUL", "{\"title\":\"\x00"+canary+"\"}", "body", "syntax error at byte"),
		post(path, "twice", `{"title":"`+canary+`","title":"b"}`, "body", "duplicate name"),
		post(path, "twice by escape", `{"title":"`+canary+`","titl\u0065":"b"}`, "body", "duplicate name"),
		post(path, "twice inside", `{"mcp_config":{"sse_servers":[],"sse_servers":["`+canary+`"]}}`, "body", "duplicate name"),
		post(path, "10,000 deep", deep, "body", "nested too deeply"),
		post(path, "65 arrays", `{"a":`+strings.Repeat("[", 65)+strings.Repeat("]", 65)+`}`, "body", "nested too deeply"),
	}
}

func contentTypes() []bad {
	var out []bad
	for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json", "application/json; =", "text/json", "application/xml"} {
		out = append(out, bad{name: ct, method: "POST", path: toSettings, body: `{"language":"` + canary + `"}`, header: []string{"Content-Type", ct},
			status: http.StatusUnsupportedMediaType, msg: "application/json"})
	}
	return out
}

func idempotencyKeys() []bad {
	row := func(name string, keys ...string) bad {
		b := post(toCreate, "Idempotency-Key "+name, `{"initial_user_msg":"x"}`, "header.Idempotency-Key", "1 to 255 printable")
		for _, k := range keys {
			b.header = append(b.header, "Idempotency-Key", k)
		}
		return b
	}
	return []bad{row("256 long", strings.Repeat("k", 256)), row("not ASCII", "schlüssel"), row("tab", "a\tb"), row("twice", "a", "b"), row("twice the same", "a", "a")}
}

func malformed() []bad {
	var all []bad
	for _, path := range []string{toSettings, toCreate, toKeys, toOpen + "/message"} {
		all = append(all, bodies(path)...)
	}
	for _, more := range [][]bad{malformedSettings(), malformedTools(toSettings), malformedTools(toCreate), malformedCreate(), malformedRepositories(),
		malformedKeys(), malformedPatch(), malformedMessages(), malformedImages(), malformedEvents(), malformedQueries(), malformedIDs(), contentTypes(), idempotencyKeys()} {
		all = append(all, more...)
	}
	return all
}

// Everything that can be wrong with a request is said with a place and a
// sentence, repeats no value, and leaves nothing behind.
func TestMalformed(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.create(`{"conversation_id":"` + open + `"}`)
	before := r.everything()
	rows := malformed()
	if len(rows) < 120 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, b := range rows {
		t.Run(b.method+" "+clip(b.path)+" "+b.name, func(t *testing.T) {
			r := *r
			r.t = t
			b.check(t, r.do(b.method, b.path, b.body, b.header...))
		})
	}
	t.Logf("%d rows", len(rows))
	if after := r.everything(); after != before {
		t.Errorf("something was stored:\n%s\nbefore:\n%s", after, before)
	}
	if strings.Contains(r.logs.String(), canary) {
		t.Error("the log repeats a value")
	}
}

func (b bad) check(t *testing.T, a answer) {
	t.Helper()
	if strings.Contains(a.body, canary) {
		t.Errorf("the answer repeats the value: %s", a.body)
	}
	if a.status != b.status {
		t.Fatalf("status %d, want %d: %s", a.status, b.status, clip(a.body))
	}
	if b.status != 422 {
		if !strings.Contains(a.body, b.msg) || !strings.Contains(a.body, `"msg_id":"`) {
			t.Errorf("%q and a msg_id are not in %s", b.msg, a.body)
		}
		return
	}
	var places []string
	for _, f := range decoded[api.ValidationError](t, a).Detail {
		parts := make([]string, len(f.Loc))
		for i, p := range f.Loc {
			parts[i] = fmt.Sprint(p)
		}
		place := strings.Join(parts, ".")
		if place == b.loc && strings.Contains(f.Msg, b.msg) {
			if f.Type == "" || !strings.HasSuffix(f.Msg, ".") {
				t.Errorf("not a sentence with a type: %+v", f)
			}
			return
		}
		places = append(places, place+": "+f.Msg)
	}
	t.Errorf("%s: %q is not among %q", b.loc, b.msg, places)
}

// everything is all that is stored, as text.
func (r *rig) everything() string {
	r.t.Helper()
	var b strings.Builder
	for _, user := range []string{"admin", "ada", "bob"} {
		rec, err := r.stored.LoadSettings(r.t.Context(), user)
		fmt.Fprintf(&b, "settings of %s: %d %s %v\n", user, rec.Version, rec.Body, err)
		for _, row := range r.rows(user) {
			// The checkpoint of an earlier request may come at any time. All other events count.
			others := slices.DeleteFunc(r.events(string(row.ID)), func(p session.Payload) bool { _, is := p.(session.Checkpointed); return is })
			row.Last, row.UpdatedAt = int64(len(others)), time.Time{}
			fmt.Fprintf(&b, "conversation %+v\n", row)
		}
	}
	keys, _ := r.gate.List(r.t.Context(), "")
	users, _ := r.gate.Users(r.t.Context())
	fmt.Fprintf(&b, "%d keys, %d users, %d answers\n", len(keys), len(users), len(r.answers.all()))
	return b.String()
}

// A body is refused by its size before it is taken in, however its length is told.
func TestTooLarge(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	before := r.everything()
	for _, path := range []string{toSettings, toCreate, toKeys} {
		a := r.announce(path, rest.MaxBody+1)
		a.want(t, http.StatusRequestEntityTooLarge, "16 MiB", api.CodeTooLarge)
	}
	// A stranger must not make us set memory aside for a login.
	if a := r.announce("/api/login", 1<<20); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("login: %d %s", a.status, a.body)
	}
	chunked := func(n int) answer {
		body := io.MultiReader(strings.NewReader(`{"x":"`), io.LimitReader(endless{}, int64(n-8)), strings.NewReader(`"}`))
		return r.send(r.request("POST", toCreate, io.NopCloser(body)))
	}
	chunked(rest.MaxBody+1).want(t, http.StatusRequestEntityTooLarge, "16 MiB")
	chunked(rest.MaxBody).want(t, 422, "Unknown field") // just fits, so it is read
	if after := r.everything(); after != before {
		t.Errorf("something was stored:\n%s", after)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// announce sends the head of a request and not a byte of its body.
func (r *rig) announce(path string, length int64) answer {
	r.t.Helper()
	u, _ := url.Parse(r.base)
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute)) // a server that waits for the body would never answer
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Session-API-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, r.keys["ada"], length)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return answer{res.StatusCode, string(b), res.Header}
}

// A body that stops short of its announced length is not a request.
func TestShortBody(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	u, _ := url.Parse(r.base)
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Session-API-Key: %s\r\nContent-Length: 100\r\n\r\n{}", toCreate, r.keys["ada"])
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", res.StatusCode)
	}
	if rows := r.rows("ada"); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

// What is valid is not refused: the table above must not be passed by a handler
// that refuses everything.
func TestWellFormed(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	for _, body := range []string{`{}`, ``, ` {} `, `{"repository":null,"git_provider":null,"selected_branch":null,"initial_user_msg":null,"image_urls":null,"replay_json":null,"suggested_task":null,"create_microagent":null,"conversation_instructions":null,"mcp_config":null}`,
		`{"conversation_id":"` + strings.Repeat("A", 100) + `"}`, `{"conversation_id":"_-aZ09"}`, `{"initial_user_msg":"\ud83d\ude00 ü"}`,
		`{"image_urls":` + list(50, `"https://example.org/x.png"`) + `}`, `{"image_urls":["data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="]}`, `{"replay_json":"` + strings.ReplaceAll(recorded, `"`, `\"`) + `"}`,
		`{"repository":"group/sub/project.name","git_provider":"gitlab","selected_branch":"feature/a-b_c.d"}`, `{"repository":"a/.github"}`,
	} {
		if a := r.do("POST", toCreate, body); a.status != 200 {
			t.Errorf("%s: %d %s", clip(body), a.status, a.body)
		}
	}
	for _, ct := range []string{"", "application/json; charset=utf-8", "application/merge-patch+json", "APPLICATION/JSON"} {
		r.do("POST", toSettings, `{"language":"en"}`, "Content-Type", ct).want(t, 200)
	}
}
