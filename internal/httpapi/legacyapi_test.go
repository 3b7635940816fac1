package httpapi

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// undocumented are operations that the older server's document does not name, but
// that it, its front ends or the hosted service have, with what ours answer: a part of the body,
// and the status if it is not 200. {id} stands for a conversation.
var undocumented = map[string]struct {
	body   string
	status int
	answer string
}{
	"GET /server_info": {answer: `"uptime"`},
	"GET /api/conversations/{conversation_id}/vscode-url":                       {answer: `{"vscode_url":null}`},
	"GET /api/conversations/{conversation_id}/web-hosts":                        {answer: `"hosts":{`},
	"POST /api/conversations/{conversation_id}/message":                         {body: `{"message":"x"}`, answer: `{"success":true}`},
	"POST /api/conversations/{conversation_id}/exp-config":                      {body: `{"config":{"a":"b"}}`, answer: "false"},
	"GET /api/conversations/{conversation_id}/security/{path}":                  {status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"POST /api/conversations/{conversation_id}/security/{path}":                 {body: `{"policy":"x"}`, status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"PUT /api/conversations/{conversation_id}/security/{path}":                  {status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"DELETE /api/conversations/{conversation_id}/security/{path}":               {status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"GET /api/security/policy":                                                  {status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"POST /api/security/policy":                                                 {body: `{"policy":"x"}`, status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"GET /api/security/settings":                                                {status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"POST /api/security/settings":                                               {body: `{"RISK_SEVERITY":1}`, status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"GET /api/security/export-trace":                                            {status: 404, answer: `{"detail":"Security analyzer not initialized"}`},
	"GET /api/user/search/branches?repository=team/app&query=main":              {answer: `[{"name":"main"`},
	"GET /api/microagent-management/conversations?selected_repository=team/app": {answer: `"results":[]`},
	"POST /api/authenticate":                                                    {answer: `{"message":"User authenticated"}`},
	"POST /api/accept_tos":                                                      {body: `{"redirect_url":"https://evil.test/"}`, answer: `{"message":"There are no terms to accept here"}`},
	"POST /api/logout":                                                          {answer: `{`},
	"GET /api/keys":                                                             {answer: `"prefix":"dh_","last_used_at":null`},
	"POST /api/keys":                                                            {body: `{"name":"mine"}`, status: http.StatusCreated, answer: `"key":"dh_`},
	"DELETE /api/keys/{key_id}":                                                 {status: 404, answer: `"msg_id"`},
	"GET /api/keys/llm/byor":                                                    {status: 404, answer: "llm_api_key"},
	"POST /api/keys/llm/byor/refresh":                                           {status: 404, answer: "llm_api_key"},
	"POST /feedback/conversation":                                               {body: `{"conversation_id":"{id}","rating":5}`, answer: `"status":"success"`},
	"GET /feedback/conversation/{conversation_id}/batch":                        {answer: `{`},
	"GET /feedback/conversation/{conversation_id}/{event_id}":                   {answer: `{"exists":false}`},
	"POST /mcp/mcp":                                                             {body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, answer: `"create_conversation"`},
}

// elsewhere are those that have tests of their own, for they are no single requests.
var elsewhere = []string{"GET /socket.io/", "POST /socket.io/"}

// Each does what its callers rely on, and says what our document says.
func TestLegacyExtras(t *testing.T) {
	y := newYard(t)
	y.settled()
	doc := document(t)
	for name, c := range undocumented {
		method, path, _ := strings.Cut(name, " ")
		pattern, query, _ := strings.Cut(path, "?")
		w := wish{method: method, path: map[string]string{"conversation_id": y.id, "path": "policy", "key_id": "none", "event_id": "1"}, body: strings.ReplaceAll(c.body, "{id}", y.id)}
		op := legacyOperation{Method: method, Path: pattern}
		if query != "" {
			op.Path += "?" + query
		}
		a := y.make(op, w)
		if c.status == 0 {
			c.status = http.StatusOK
		}
		if a.status != c.status || !strings.Contains(a.body, c.answer) || strings.Contains(a.body, "evil.test") {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
			continue
		}
		check := checker{t: t, judge: judge{at(t, doc, "components", "schemas").(map[string]any)}, documented: at(t, doc, "paths", pattern, strings.ToLower(method), "responses").(map[string]any)}
		if !check.judge.valid(check.ours(a.status), a.value(t)) {
			t.Errorf("%s: the answer is not what our document says: %.300s", name, a.body)
		}
		if strings.Contains(pattern, "{conversation_id}") {
			w.path["conversation_id"] = y.foreign
			if a := y.make(op, w); a.status != http.StatusNotFound || strings.Contains(a.body, "analyzer") {
				t.Errorf("%s of another user's conversation: %d %.300s", name, a.status, a.body)
			}
		}
	}
}

// Where the reference had its passthrough by mistake, open to all, there is no route.
func TestNoSecurityRouteAtTheRoot(t *testing.T) {
	r := newRig(t)
	if a := r.direct("10.4.0.1", "GET", "/security/policy"); a.status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.do("GET", "/security/policy", "").want(t, 404, "Path not found")
}

// The page names every operation, once and in its table, and only such as there are.
func TestLegacyPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "legacy-api.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, op := range legacyOperations(t) {
		want[op.name()] = true
	}
	for name := range undocumented {
		name, _, _ = strings.Cut(name, "?")
		want[name] = true
	}
	for _, name := range elsewhere {
		want[name] = true
	}
	routes := map[string]bool{}
	for _, rt := range new(Handler).table() {
		routes[rt.Method+" "+strings.TrimSuffix(rt.Path, "{$}")] = true
	}
	row := regexp.MustCompile("(?m)^\\| (GET|POST|PUT|PATCH|DELETE) \\| `([^`]+)` \\| (same|more|differs|nothing) \\| (.*) \\|$")
	named := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		name := m[1] + " " + m[2]
		if named[name] {
			t.Errorf("%s stands there twice", name)
		}
		named[name] = true
		if !want[name] {
			t.Errorf("%s is no operation of the older server", name)
		}
		if !routes[name] {
			t.Errorf("%s is not served", name)
		}
		if (m[3] == "same") != (m[4] == "") {
			t.Errorf("%s: what differs is said exactly where something does: %q", name, m[4])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !named[name] {
			t.Errorf("%s is not on the page", name)
		}
	}
	if tables := strings.Count(string(page), "\n| GET |") + strings.Count(string(page), "\n| POST |") + strings.Count(string(page), "\n| PUT |") +
		strings.Count(string(page), "\n| PATCH |") + strings.Count(string(page), "\n| DELETE |"); tables != len(named) {
		t.Errorf("%d rows, of which %d can be read", tables, len(named))
	}
}
