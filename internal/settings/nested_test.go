package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"deckhand/api"

	"github.com/google/go-cmp/cmp"
)

// nested is one update of full below a field, and everything it changes.
type nested struct {
	name string
	body string
	want map[string]string // as dump shows it; "-" for gone
	bad  string            // type of the error
	loc  []any
	note string // part of the note
}

func run(t *testing.T, rows []nested) {
	t.Helper()
	stored, _, err := Merge(nil, parse(t, full))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			got, changes, err := update(&stored, tt.body)
			if tt.bad != "" {
				wantRefused(t, tt.body, err, tt.bad, append([]any{"body"}, tt.loc...)...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d := dump(got)
			for name, want := range tt.want {
				v, ok := d[name]
				if !ok {
					v = "-"
				}
				if v != want {
					t.Errorf("%s is %s, want %s", name, v, want)
				}
			}
			if notes := strings.Join(changes.Notes, " "); (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("the notes are %q", notes)
			}
		})
	}
}

func TestMergeSecretsStore(t *testing.T) {
	p := func(v string) string { return `{"secrets_store":{"provider_tokens":` + v + `}}` }
	c := func(v string) string { return `{"secrets_store":{"custom_secrets":` + v + `}}` }
	kept := map[string]string{"github": `"ghp-1||"`, "gitlab": `"glpat|git.corp.example|u1"`, "NPM_TOKEN": `"npm-1|"`, "PYPI": `"pypi-1|publish"`}
	token := func(parts ...any) []any { return append([]any{"secrets_store", "provider_tokens"}, parts...) }
	custom := func(parts ...any) []any { return append([]any{"secrets_store", "custom_secrets"}, parts...) }
	run(t, []nested{
		{name: "empty", body: `{"secrets_store":{}}`, want: kept},
		{name: "null parts", body: `{"secrets_store":{"provider_tokens":null,"custom_secrets":null}}`, want: kept},
		{name: "null", body: `{"secrets_store":null}`, want: map[string]string{"github": "-", "PYPI": "-"}, note: "removed"},
		{name: "misspelt", body: `{"secrets_store":{"tokens":{}}}`, bad: "extra_forbidden", loc: []any{"secrets_store", "tokens"}},
		{name: "new token keeps the others", body: p(`{"gitea":"g1"}`), want: map[string]string{"gitea": `"g1||"`, "github": kept["github"], "gitlab": kept["gitlab"]}},
		{name: "every provider", body: p(`{"github":"1","gitlab":"2","bitbucket":"u:3","enterprise_sso":"4","gitea":"5","forgejo":"6"}`), want: map[string]string{"bitbucket": `"u:3||"`, "enterprise_sso": `"4||"`, "forgejo": `"6||"`}},
		{name: "string keeps host", body: p(`{"gitlab":"t2"}`), want: map[string]string{"gitlab": `"t2|git.corp.example|u1"`}},
		{name: "object", body: p(`{"github":{"token":"t2","host":"gh.corp.example","user_id":"7"}}`), want: map[string]string{"github": `"t2|gh.corp.example|7"`}},
		{name: "null removes", body: p(`{"github":null}`), want: map[string]string{"github": "-", "gitlab": kept["gitlab"]}},
		{name: "null removes nothing", body: p(`{"gitea":null}`), want: map[string]string{"gitea": "-"}},
		{name: "empty clears", body: p(`{"github":""}`), want: map[string]string{"github": "-"}},
		{name: "empty clears, host stays", body: p(`{"gitlab":""}`), want: map[string]string{"gitlab": `"|git.corp.example|u1"`, "provider_tokens_set": `{"github":null}`}},
		{name: "mask keeps", body: p(`{"github":"**********","gitlab":{"token":"**********"}}`), want: kept},
		{name: "mask without token", body: p(`{"gitea":"**********"}`), bad: "value_error", loc: token("gitea", "token")},
		{name: "absent token keeps", body: p(`{"gitlab":{"user_id":"u2"}}`), want: map[string]string{"gitlab": `"glpat|git.corp.example|u2"`}},
		{name: "null token keeps", body: p(`{"gitlab":{"token":null,"host":"GIT.corp.example"}}`), want: map[string]string{"gitlab": `"glpat|GIT.corp.example|u1"`}},
		{name: "host changed", body: p(`{"gitlab":{"host":"evil.example"}}`), want: map[string]string{"gitlab": `"|evil.example|u1"`, "provider_tokens_set": `{"github":null}`}, note: "gitlab was dropped"},
		{name: "host changed, mask", body: p(`{"gitlab":{"token":"**********","host":"git.corp.example:8443"}}`), want: map[string]string{"gitlab": `"|git.corp.example:8443|u1"`}, note: "gitlab was dropped"},
		{name: "host cleared", body: p(`{"gitlab":{"host":null}}`), want: map[string]string{"gitlab": `"||u1"`}, note: "gitlab was dropped"},
		{name: "host weakened", body: p(`{"gitlab":{"host":"http://git.corp.example"}}`), want: map[string]string{"gitlab": `"|http://git.corp.example|u1"`}, note: "dropped"},
		{name: "same host, other words", body: p(`{"gitlab":{"host":"https://git.corp.example:443/"},"github":{"host":"github.com"}}`), want: map[string]string{"gitlab": `"glpat|https://git.corp.example:443/|u1"`, "github": `"ghp-1|github.com|"`}},
		{name: "host and token", body: p(`{"gitlab":{"token":"t9","host":"new.example"}}`), want: map[string]string{"gitlab": `"t9|new.example|u1"`}},
		{name: "host without token", body: p(`{"gitea":{"host":"tea.example"}}`), want: map[string]string{"gitea": `"|tea.example|"`}},
		{name: "bad host", body: p(`{"gitea":{"token":"t","host":"a b"}}`), bad: "value_error", loc: token("gitea", "host")},
		{name: "host with path", body: p(`{"gitea":{"token":"t","host":"h.example/x"}}`), bad: "value_error", loc: token("gitea", "host")},
		{name: "host with user", body: p(`{"gitea":{"token":"t","host":"u:p@h.example"}}`), bad: "value_error", loc: token("gitea", "host")},
		{name: "bad token", body: p(`{"gitea":"a\nb"}`), bad: "value_error", loc: token("gitea", "token")},
		{name: "bad user id", body: p(`{"gitea":{"token":"t","user_id":"a\nb"}}`), bad: "value_error", loc: token("gitea", "user_id")},
		{name: "token of wrong type", body: p(`{"gitea":{"token":5}}`), bad: "string_type", loc: token("gitea", "token")},
		{name: "entry of wrong type", body: p(`{"gitea":5}`), bad: "model_type", loc: token("gitea")},
		{name: "unknown part", body: p(`{"gitea":{"tokn":"t"}}`), bad: "extra_forbidden", loc: token("gitea", "tokn")},
		{name: "unknown provider", body: p(`{"svn":"t"}`), bad: "literal_error", loc: token("svn")},
		{name: "tokens of wrong type", body: p(`[]`), bad: "dict_type", loc: token()},

		{name: "new secret keeps the others", body: c(`{"A_1":"v"}`), want: map[string]string{"A_1": `"v|"`, "NPM_TOKEN": kept["NPM_TOKEN"], "PYPI": kept["PYPI"]}, note: "not masked"},
		{name: "secret object", body: c(`{"A":{"secret":"v\nw","description":"d"}}`), want: map[string]string{"A": `"v\nw|d"`}, note: "not masked"},
		{name: "secret replaced", body: c(`{"PYPI":"p2"}`), want: map[string]string{"PYPI": `"p2|publish"`}, note: "not masked"},
		{name: "secret removed", body: c(`{"PYPI":null}`), want: map[string]string{"PYPI": "-", "NPM_TOKEN": kept["NPM_TOKEN"]}},
		{name: "secret cleared", body: c(`{"PYPI":""}`), want: map[string]string{"PYPI": "-"}},
		{name: "secret masked", body: c(`{"PYPI":"**********","NPM_TOKEN":{"secret":"**********","description":"n"}}`), want: map[string]string{"PYPI": kept["PYPI"], "NPM_TOKEN": `"npm-1|n"`}},
		{name: "description only", body: c(`{"PYPI":{"description":null}}`), want: map[string]string{"PYPI": `"pypi-1|"`}},
		{name: "mask without secret", body: c(`{"NEW":"**********"}`), bad: "value_error", loc: custom("NEW", "secret")},
		{name: "description without secret", body: c(`{"NEW":{"description":"d"}}`), bad: "value_error", loc: custom("NEW", "secret")},
		{name: "name with digit", body: c(`{"1A":"v"}`), bad: "value_error", loc: custom("1A")},
		{name: "name with dash", body: c(`{"A-B":"v"}`), bad: "value_error", loc: custom("A-B")},
		{name: "empty name", body: c(`{"":"v"}`), bad: "value_error", loc: custom("")},
		{name: "NUL", body: c(`{"A":"v\u0000"}`), bad: "value_error", loc: custom("A", "secret")},
		{name: "long", body: c(`{"A":"` + strings.Repeat("v", maxEnvValue+1) + `"}`), bad: "string_too_long", loc: custom("A", "secret")},
		{name: "long description", body: c(`{"A":{"secret":"v","description":"` + strings.Repeat("d", 1001) + `"}}`), bad: "string_too_long", loc: custom("A", "description")},
		{name: "control in description", body: c(`{"A":{"secret":"v","description":"\u0007"}}`), bad: "value_error", loc: custom("A", "description")},
		{name: "secret of wrong type", body: c(`{"A":true}`), bad: "model_type", loc: custom("A")},
	})
	many := make(map[string]*api.CustomSecret)
	for i := range maxCustomSecrets + 1 {
		many[fmt.Sprint("A", i)] = &api.CustomSecret{Secret: api.Some("v")}
	}
	_, _, err := Merge(nil, api.SettingsInput{SecretsStore: api.Some(api.UserSecrets{CustomSecrets: many})})
	wantRefused(t, "many", err, "too_long", "body", "secrets_store", "custom_secrets")
}

func TestMergeMCP(t *testing.T) {
	m := func(v string) string { return `{"mcp_config":` + v + `}` }
	mcp := func(v string) map[string]string { return map[string]string{"mcp": v} }
	at := func(parts ...any) []any { return append([]any{"mcp_config"}, parts...) }
	run(t, []nested{
		{name: "replaces", body: m(`{"sse_servers":[{"url":"https://a"}]}`), want: mcp(`{"sse":[{"url":"https://a"}]}`)},
		{name: "bare url", body: m(`{"sse_servers":["https://a"],"shttp_servers":["http://b"]}`), want: mcp(`{"sse":[{"url":"https://a"}],"shttp":[{"url":"http://b"}]}`)},
		{name: "keys and timeout", body: m(`{"shttp_servers":[{"url":"https://a","api_key":"k","timeout":3600}]}`), want: mcp(`{"shttp":[{"url":"https://a","api_key":"k","timeout":3600}]}`)},
		{name: "null key, null timeout", body: m(`{"shttp_servers":[{"url":"http://sh.example","api_key":null,"timeout":null}]}`), want: mcp(`{"shttp":[{"url":"http://sh.example"}]}`)},
		{name: "mask keeps", body: m(`{"sse_servers":[{"url":"https://sse.example/x","api_key":"**********"}],"shttp_servers":[{"url":"http://sh.example","api_key":"**********"}]}`),
			want: mcp(`{"sse":[{"url":"https://sse.example/x","api_key":"k-sse"}],"shttp":[{"url":"http://sh.example","api_key":"k-sh"}]}`)},
		{name: "mask keeps in the other list", body: m(`{"shttp_servers":[{"url":"https://sse.example/x","api_key":"**********"}]}`), want: mcp(`{"shttp":[{"url":"https://sse.example/x","api_key":"k-sse"}]}`)},
		{name: "mask at another address", body: m(`{"sse_servers":[{"url":"https://evil.example/x","api_key":"**********"}]}`), bad: "value_error", loc: at("sse_servers", 0, "api_key")},
		{name: "ws", body: m(`{"sse_servers":["https://a",{"url":"wss://b"}]}`), bad: "url_scheme", loc: at("sse_servers", 1, "url")},
		{name: "no host", body: m(`{"shttp_servers":[{"url":"https:///x"}]}`), bad: "url_parsing", loc: at("shttp_servers", 0, "url")},
		{name: "empty url", body: m(`{"shttp_servers":[""]}`), bad: "url_parsing", loc: at("shttp_servers", 0, "url")},
		{name: "no url", body: m(`{"shttp_servers":[{}]}`), bad: "missing", loc: at("shttp_servers", 0, "url")},
		{name: "null url", body: m(`{"shttp_servers":[{"url":null}]}`), bad: "string_type", loc: at("shttp_servers", 0, "url")},
		{name: "null entry", body: m(`{"shttp_servers":[null]}`), bad: "dict_type", loc: at("shttp_servers", 0)},
		{name: "twice", body: m(`{"sse_servers":["https://a","https://a"]}`), bad: "value_error", loc: at("sse_servers", 1, "url")},
		{name: "bad key", body: m(`{"sse_servers":[{"url":"https://a","api_key":"a\nb"}]}`), bad: "value_error", loc: at("sse_servers", 0, "api_key")},
		{name: "key of wrong type", body: m(`{"sse_servers":[{"url":"https://a","api_key":5}]}`), bad: "string_type", loc: at("sse_servers", 0, "api_key")},
		{name: "timeout 0", body: m(`{"shttp_servers":[{"url":"https://a","timeout":0}]}`), bad: "greater_than_equal", loc: at("shttp_servers", 0, "timeout")},
		{name: "timeout 3601", body: m(`{"shttp_servers":[{"url":"https://a","timeout":3601}]}`), bad: "less_than_equal", loc: at("shttp_servers", 0, "timeout")},
		{name: "timeout text", body: m(`{"shttp_servers":[{"url":"https://a","timeout":"5"}]}`), bad: "int_type", loc: at("shttp_servers", 0, "timeout")},
		{name: "sse timeout", body: m(`{"sse_servers":[{"url":"https://a","timeout":5}]}`), bad: "extra_forbidden", loc: at("sse_servers", 0, "timeout")},
		{name: "misspelt key", body: m(`{"sse_servers":[{"url":"https://a","apikey":"k"}]}`), bad: "extra_forbidden", loc: at("sse_servers", 0, "apikey")},
		{name: "misspelt list", body: m(`{"sse":[]}`), bad: "extra_forbidden", loc: at("sse")},
		{name: "list of wrong type", body: m(`{"sse_servers":{}}`), bad: "list_type", loc: at("sse_servers")},
		{name: "too many", body: m(`{"sse_servers":[` + strings.TrimSuffix(strings.Repeat(`"https://a",`, 101), ",") + `]}`), bad: "too_long", loc: at()},

		{name: "stdio", body: m(`{"stdio_servers":[{"name":"a-b_1","command":"/bin/x"}]}`), want: mcp(`{"stdio":[{"name":"a-b_1","command":"/bin/x"}]}`)},
		{name: "stdio legacy", body: m(`{"stdio_servers":[{"name":"a","command":"x","args":"-y 'a b' \"c \\\" d\" e\\ f ''","env":"K=V, K2=V=2,"}]}`),
			want: mcp(`{"stdio":[{"name":"a","command":"x","args":["-y","a b","c \" d","e f",""],"env":{"K":"V","K2":"V=2"}}]}`)},
		{name: "stdio null parts", body: m(`{"stdio_servers":[{"name":"a","command":"x","args":null,"env":null}]}`), want: mcp(`{"stdio":[{"name":"a","command":"x"}]}`)},
		{name: "env mask", body: m(`{"stdio_servers":[{"name":"fs","command":"y","env":{"A":"**********","B":"new","C":""}}]}`), want: mcp(`{"stdio":[{"name":"fs","command":"y","env":{"A":"env-a","B":"new","C":""}}]}`)},
		{name: "env mask, other server", body: m(`{"stdio_servers":[{"name":"other","command":"y","env":{"A":"**********"}}]}`), bad: "value_error", loc: at("stdio_servers", 0, "env", "A")},
		{name: "env mask, other name", body: m(`{"stdio_servers":[{"name":"fs","command":"y","env":{"Z":"**********"}}]}`), bad: "value_error", loc: at("stdio_servers", 0, "env", "Z")},
		{name: "env name", body: m(`{"stdio_servers":[{"name":"a","command":"y","env":{"A-B":"v"}}]}`), bad: "value_error", loc: at("stdio_servers", 0, "env", "A-B")},
		{name: "env NUL", body: m(`{"stdio_servers":[{"name":"a","command":"y","env":{"A":"\u0000"}}]}`), bad: "value_error", loc: at("stdio_servers", 0, "env", "A")},
		{name: "env value of wrong type", body: m(`{"stdio_servers":[{"name":"a","command":"y","env":{"A":5}}]}`), bad: "string_type", loc: at("stdio_servers", 0, "env", "A")},
		{name: "env null value", body: m(`{"stdio_servers":[{"name":"a","command":"y","env":{"A":null}}]}`), bad: "string_type", loc: at("stdio_servers", 0, "env", "A")},
		{name: "env text", body: m(`{"stdio_servers":[{"name":"a","command":"y","env":"nope"}]}`), bad: "value_error", loc: at("stdio_servers", 0, "env")},
		{name: "open quote", body: m(`{"stdio_servers":[{"name":"a","command":"y","args":"'x"}]}`), bad: "value_error", loc: at("stdio_servers", 0, "args")},
		{name: "open escape", body: m(`{"stdio_servers":[{"name":"a","command":"y","args":"x\\"}]}`), bad: "value_error", loc: at("stdio_servers", 0, "args")},
		{name: "arg of wrong type", body: m(`{"stdio_servers":[{"name":"a","command":"y","args":["x",5]}]}`), bad: "string_type", loc: at("stdio_servers", 0, "args", 1)},
		{name: "arg NUL", body: m(`{"stdio_servers":[{"name":"a","command":"y","args":["\u0000"]}]}`), bad: "value_error", loc: at("stdio_servers", 0, "args", 0)},
		{name: "name", body: m(`{"stdio_servers":[{"name":"a b","command":"y"}]}`), bad: "value_error", loc: at("stdio_servers", 0, "name")},
		{name: "name twice", body: m(`{"stdio_servers":[{"name":"a","command":"y"},{"name":"a","command":"y"}]}`), bad: "value_error", loc: at("stdio_servers", 1, "name")},
		{name: "command line", body: m(`{"stdio_servers":[{"name":"a","command":"npx -y p"}]}`), bad: "value_error", loc: at("stdio_servers", 0, "command")},
		{name: "no command", body: m(`{"stdio_servers":[{"name":"a"}]}`), bad: "missing", loc: at("stdio_servers", 0, "command")},
		{name: "empty command", body: m(`{"stdio_servers":[{"name":"a","command":""}]}`), bad: "value_error", loc: at("stdio_servers", 0, "command")},
		{name: "stdio as text", body: m(`{"stdio_servers":["npx"]}`), bad: "dict_type", loc: at("stdio_servers", 0)},
	})
}

// A key belongs to the host it was given for.
func TestHostBinding(t *testing.T) {
	tests := []struct {
		from, to string
		same     bool
	}{
		{"https://llm.example/v1", "https://llm.example/v2", true},
		{"https://llm.example/v1", "https://LLM.example:443", true},
		{"https://llm.example", "HTTPS://llm.example/", true},
		{"http://llm.example:80", "http://llm.example", true},
		{"", "", true},
		{"https://llm.example", "https://evil.example", false},
		{"https://llm.example", "http://llm.example", false},
		{"https://llm.example", "https://llm.example:8443", false},
		{"https://llm.example", "https://llm.example.evil.example", false},
		{"https://llm.example", "https://sub.llm.example", false},
		{"https://llm.example", "", false},
		{"", "https://llm.example", false},
	}
	for _, tt := range tests {
		for _, key := range []string{``, `,"llm_api_key":null`, `,"llm_api_key":"**********"`} {
			first := `{"llm_api_key":"sk-old","llm_base_url":"` + tt.from + `"}`
			if tt.from == "" {
				first = `{"llm_api_key":"sk-old"}`
			}
			old, _, err := update(nil, first)
			if err != nil {
				t.Fatal(err)
			}
			got, changes, err := update(&old, `{"llm_base_url":"`+tt.to+`"`+key+`}`)
			if err != nil {
				t.Fatal(err)
			}
			if kept := got.LLMAPIKey.Reveal() == "sk-old"; kept != tt.same || (len(changes.Notes) == 0) != tt.same {
				t.Errorf("from %q to %q%s: key kept: %v, notes %q", tt.from, tt.to, key, kept, changes.Notes)
			}
		}
		old, _, _ := update(nil, `{"llm_api_key":"sk-old","llm_base_url":"`+tt.from+`"}`)
		got, changes, err := update(&old, `{"llm_api_key":"sk-new","llm_base_url":"`+tt.to+`"}`)
		if err != nil || got.LLMAPIKey.Reveal() != "sk-new" || len(changes.Notes) != 0 {
			t.Errorf("from %q to %q with a key: %v, %v", tt.from, tt.to, changes, err)
		}
	}
	// Without a stored key there is nothing to drop and nothing to say.
	old, _, _ := update(nil, `{"llm_base_url":"https://a.example"}`)
	if _, changes, err := update(&old, `{"llm_base_url":"https://b.example"}`); err != nil || len(changes.Notes) != 0 {
		t.Error(changes, err)
	}
}

func TestImages(t *testing.T) {
	sha := "@sha256:" + strings.Repeat("0a", 32)
	for _, s := range []string{
		"debian", "debian:13", "library/debian", "a/b/c:d", "ghcr.io/x/y", "localhost/x", "localhost:5000/x", "host:5000/x:1.2-3_4",
		"debian" + sha, "debian:13" + sha, "x__y/z-w", "a--b", "[::1]:5000/x", "HOST/x", "nikolaik/python-nodejs:python3.12-nodejs22", "127.0.0.1:5000/a",
	} {
		if !validImage(s) {
			t.Errorf("%s is refused", s)
		}
	}
	for _, s := range []string{
		"Debian", "debian:", ":13", "debian:13:14", "a//b", "/a", "a/", "a b", "-a", "a_-b", "a..b", "debian@", "debian@sha256:12", "debian@sha256:" + strings.Repeat("0A", 32),
		"debian@" + strings.Repeat("0", 64), "host:port/x", "https://ghcr.io/x", strings.Repeat("a", 256), strings.Repeat("ab", 32), "a:" + strings.Repeat("t", 129), "x\n", "$(id)",
		"debian" + sha + sha, "host.example/", "_host.example/x",
	} {
		if validImage(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestUnknownFields(t *testing.T) {
	in := parse(t, `{"v1_enabled":true,"language":"en","LLM_API_KEY":"x","condenser_min_size":5,"llm_api_key_set":true,"provider_tokens_set":{}}`)
	if got := in.Unknown(); !slices.Equal(got, []string{"LLM_API_KEY", "condenser_min_size", "v1_enabled"}) || in.LLMAPIKey.Set {
		t.Errorf("%v", got)
	}
	for _, body := range []string{`[]`, `5`, `null`, `"x"`} {
		_, _, err := update(nil, body)
		wantRefused(t, body, err, "dict_type", "body")
	}
}

// An error repeats no value, whatever field it was put into.
func TestErrorsShowNoSecret(t *testing.T) {
	const canary = "Canary-7f3a"
	bodies := []string{
		`{"llm_api_key":"\n%s"}`, `{"llm_api_key":{"x":"%s"}}`, `{"search_api_key":["%s"]}`, `{"sandbox_api_key":"\u0000%s"}`, `{"max_iterations":"%s"}`,
		`{"agent":"%s"}`, `{"email":"%s"}`, `{"llm_base_url":"%s"}`, `{"llm_base_url":"https://u:%s@h"}`, `{"llm_base_url":"https://h:%s"}`, `{"llm_model":"a b %s"}`, `{"confirmation_mode":"%s"}`,
		`{"max_budget_per_task":"%s"}`, `{"language":"%s!"}`, `{"git_user_name":"<%s"}`, `{"sandbox_base_container_image":"%s"}`, `{"email_verified":"%s"}`,
		`{"secrets_store":"%s"}`, `{"secrets_store":{"provider_tokens":{"github":["%s"]}}}`, `{"secrets_store":{"provider_tokens":{"github":"\n%s"}}}`,
		`{"secrets_store":{"provider_tokens":{"github":{"token":"\n%[1]s","host":" %[1]s","user_id":"\n%[1]s"}}}}`, `{"secrets_store":{"provider_tokens":{"svn":"%s"}}}`,
		`{"secrets_store":{"custom_secrets":{"1":"%s"}}}`, `{"secrets_store":{"custom_secrets":{"A":"\u0000%s"}}}`, `{"secrets_store":{"custom_secrets":{"A":["%s"]}}}`,
		`{"mcp_config":"%s"}`, `{"mcp_config":{"sse_servers":["%s"]}}`, `{"mcp_config":{"sse_servers":[{"url":"https://u:%[1]s@a","api_key":"\n%[1]s"}]}}`, `{"mcp_config":{"sse_servers":[{"url":"https://a","api_key":["%s"]}]}}`,
		`{"mcp_config":{"stdio_servers":[{"name":" %[1]s","command":" %[1]s","args":"'%[1]s","env":{"A":"\u0000%[1]s"}}]}}`, `{"mcp_config":{"stdio_servers":[{"name":"a","command":"b","args":["\u0000%[1]s"],"env":"%[1]s"}]}}`,
	}
	for _, b := range bodies {
		_, _, err := update(nil, fmt.Sprintf(b, canary))
		var bad *api.ValidationError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", b, err)
			continue
		}
		for _, d := range bad.Detail {
			if strings.Contains(fmt.Sprint(d), canary) || len(d.Loc) < 2 || d.Loc[0] != "body" {
				t.Errorf("%s: %v", b, d)
			}
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	s, _, err := update(nil, full)
	if err != nil {
		t.Fatal(err)
	}
	before := dump(s)
	c := s.Clone()
	*c.Language, *c.MaxIterations, *c.ConfirmationMode, *c.MaxBudgetPerTask = "x", 1, false, 9
	*c.GitUserEmail, *c.EmailVerified = "x", false
	delete(c.ProviderTokens, "github")
	delete(c.CustomSecrets, "PYPI")
	c.MCP.SSE[0].URL, c.MCP.Stdio[0].Args[0], *c.MCP.SHTTP[0].Timeout = "x", "x", 1
	delete(c.MCP.Stdio[0].Env, "A")
	if diff := cmp.Diff(before, dump(s)); diff != "" {
		t.Error(diff)
	}
}
