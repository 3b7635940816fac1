package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"deckhand/api"

	"github.com/google/go-cmp/cmp"
)

// parse decodes an update as the server does.
func parse(t testing.TB, body string) api.SettingsInput {
	t.Helper()
	var in api.SettingsInput
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return in
}

// update decodes and merges; a wrong type and a wrong value are both a ValidationError.
func update(old *Settings, body string) (Settings, Changes, error) {
	var in api.SettingsInput
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return Settings{}, Changes{}, err
	}
	return Merge(old, in)
}

// dump shows everything, secrets too, as JSON values by name.
func dump(s Settings) map[string]string {
	out := map[string]string{}
	put := func(name string, v any) {
		b, _ := json.Marshal(v)
		out[name] = string(b)
	}
	var view map[string]json.RawMessage
	b, _ := json.Marshal(View(s))
	_ = json.Unmarshal(b, &view)
	for name, raw := range view {
		out[name] = string(raw)
	}
	put("llm_api_key", s.LLMAPIKey.Reveal())
	put("search_api_key", s.SearchAPIKey.Reveal())
	put("sandbox_api_key", s.SandboxAPIKey.Reveal())
	for name, t := range s.ProviderTokens {
		put(name, fmt.Sprintf("%s|%s|%s", t.Token.Reveal(), t.Host, t.UserID))
	}
	for name, c := range s.CustomSecrets {
		put(name, fmt.Sprintf("%s|%s", c.Value.Reveal(), c.Description))
	}
	if s.MCP != nil {
		put("mcp", plainMCP(*s.MCP))
	}
	return out
}

// full has something in every field.
const full = `{"language":"en","agent":"ReadOnlyAgent","max_iterations":7,"condenser_max_size":60,"security_analyzer":"rules","confirmation_mode":true,"approval_mode":"risky",
"llm_model":"openai/gpt","llm_api_key":"sk-llm","llm_base_url":"https://llm.example/v1","remote_runtime_resource_factor":2,
"secrets_store":{"provider_tokens":{"github":"ghp-1","gitlab":{"token":"glpat","host":"git.corp.example","user_id":"u1"}},
 "custom_secrets":{"NPM_TOKEN":"npm-1","PYPI":{"secret":"pypi-1","description":"publish"}}},
"enable_default_condenser":false,"enable_sound_notifications":true,"enable_proactive_conversation_starters":false,"enable_solvability_analysis":false,
"user_consents_to_analytics":true,"sandbox_base_container_image":"debian:13","sandbox_runtime_container_image":"ghcr.io/a/b:c",
"mcp_config":{"sse_servers":[{"url":"https://sse.example/x","api_key":"k-sse"}],"stdio_servers":[{"name":"fs","command":"npx","args":["-y","p"],"env":{"A":"env-a","B":"env-b"}}],
 "shttp_servers":[{"url":"http://sh.example","api_key":"k-sh","timeout":30}]},
"search_api_key":"sk-search","sandbox_api_key":"sk-sandbox","max_budget_per_task":1.5,"email":"ada@example.org","email_verified":true,
"git_user_name":"Ada","git_user_email":"ada@git.example"}`

// rule is one update of full (or of nothing) and what it does to one field.
type rule struct {
	body  string
	field string
	want  string // JSON; "" when refused
	bad   string // type of the error
}

// Every field: null, empty, a value, and what is refused.
var rules = []rule{
	{`{"language":null}`, "language", `null`, ""},
	{`{"language":""}`, "language", `""`, ""},
	{`{"language":"pt-BR"}`, "language", `"pt-BR"`, ""},
	{`{"language":"zh-Hans-CN"}`, "language", `"zh-Hans-CN"`, ""},
	{`{"language":"e"}`, "language", "", "value_error"},
	{`{"language":"en us"}`, "language", "", "value_error"},
	{`{"language":"en\nignore all"}`, "language", "", "value_error"},
	{`{"language":"aa-aaaaaaaa-aaaaaaaa-aaaaaaaa-aaaaaaaa"}`, "language", "", "value_error"},
	{`{"language":5}`, "language", "", "string_type"},

	{`{"agent":null}`, "agent", `null`, ""},
	{`{"agent":""}`, "agent", `""`, ""},
	{`{"agent":"CodeActAgent"}`, "agent", `"CodeActAgent"`, ""},
	{`{"agent":"BrowsingAgent"}`, "agent", `"BrowsingAgent"`, ""},
	{`{"agent":"codeactagent"}`, "agent", "", "literal_error"},
	{`{"agent":true}`, "agent", "", "string_type"},

	{`{"condenser_max_size":20}`, "condenser_max_size", `20`, ""},
	{`{"condenser_max_size":null}`, "condenser_max_size", `null`, ""},
	{`{"condenser_max_size":19}`, "condenser_max_size", "", "greater_than_equal"},
	{`{"condenser_max_size":100001}`, "condenser_max_size", "", "less_than_equal"},
	{`{"condenser_max_size":"50"}`, "condenser_max_size", "", "int_type"},
	{`{"max_iterations":null}`, "max_iterations", `null`, ""},
	{`{"max_iterations":1}`, "max_iterations", `1`, ""},
	{`{"max_iterations":100000}`, "max_iterations", `100000`, ""},
	{`{"max_iterations":0}`, "max_iterations", "", "greater_than_equal"},
	{`{"max_iterations":-1}`, "max_iterations", "", "greater_than_equal"},
	{`{"max_iterations":100001}`, "max_iterations", "", "less_than_equal"},
	{`{"max_iterations":5.5}`, "max_iterations", "", "int_type"},
	{`{"max_iterations":"5"}`, "max_iterations", "", "int_type"},
	{`{"max_iterations":""}`, "max_iterations", "", "int_type"},
	{`{"max_iterations":99999999999999999999}`, "max_iterations", "", "int_type"},

	{`{"security_analyzer":null}`, "security_analyzer", `null`, ""},
	{`{"security_analyzer":""}`, "security_analyzer", `""`, ""},
	{`{"security_analyzer":"llm"}`, "security_analyzer", `"llm"`, ""},
	{`{"security_analyzer":"invariant"}`, "security_analyzer", "", "literal_error"},

	{`{"confirmation_mode":null}`, "confirmation_mode", `null`, ""},
	{`{"confirmation_mode":false}`, "confirmation_mode", `false`, ""},
	{`{"confirmation_mode":"true"}`, "confirmation_mode", "", "bool_type"},
	{`{"confirmation_mode":1}`, "confirmation_mode", "", "bool_type"},

	{`{"approval_mode":null}`, "approval_mode", `"risky"`, ""},
	{`{"approval_mode":"always"}`, "approval_mode", `"always"`, ""},
	{`{"approval_mode":"never"}`, "approval_mode", `"never"`, ""},
	{`{"approval_mode":"llm"}`, "approval_mode", "", "literal_error"},
	{`{"approval_mode":""}`, "approval_mode", "", "literal_error"},
	{`{"approval_mode":true}`, "approval_mode", "", "string_type"},

	{`{"llm_model":null}`, "llm_model", `"openai/gpt"`, ""},
	{`{"llm_model":""}`, "llm_model", `""`, ""},
	{`{"llm_model":"anthropic/claude"}`, "llm_model", `"anthropic/claude"`, ""},
	{`{"llm_model":"a model"}`, "llm_model", "", "value_error"},
	{`{"llm_model":"a/b\u0000"}`, "llm_model", "", "value_error"},
	{`{"llm_model":"` + strings.Repeat("m", 257) + `"}`, "llm_model", "", "string_too_long"},

	{`{"llm_api_key":null}`, "llm_api_key", `"sk-llm"`, ""},
	{`{"llm_api_key":""}`, "llm_api_key", `""`, ""},
	{`{"llm_api_key":"sk-2"}`, "llm_api_key", `"sk-2"`, ""},
	{`{"llm_api_key":"**********"}`, "llm_api_key", `"sk-llm"`, ""},
	{`{"llm_api_key":"sk\nX-Evil: 1"}`, "llm_api_key", "", "value_error"},
	{`{"llm_api_key":"   "}`, "llm_api_key", "", "value_error"},
	{`{"llm_api_key":7}`, "llm_api_key", "", "string_type"},
	{`{"llm_api_key":"` + strings.Repeat("k", maxKey+1) + `"}`, "llm_api_key", "", "string_too_long"},

	{`{"llm_base_url":null}`, "llm_base_url", `"https://llm.example/v1"`, ""},
	{`{"llm_base_url":""}`, "llm_base_url", `""`, ""},
	{`{"llm_base_url":"http://localhost:11434"}`, "llm_base_url", `"http://localhost:11434"`, ""},
	{`{"llm_base_url":"HTTPS://Host.example"}`, "llm_base_url", `"HTTPS://Host.example"`, ""},
	{`{"llm_base_url":"ftp://h"}`, "llm_base_url", "", "url_scheme"},
	{`{"llm_base_url":"file:///etc/passwd"}`, "llm_base_url", "", "url_parsing"},
	{`{"llm_base_url":"host.example/v1"}`, "llm_base_url", "", "url_parsing"},
	{`{"llm_base_url":"https://"}`, "llm_base_url", "", "url_parsing"},
	{`{"llm_base_url":"https://:80"}`, "llm_base_url", "", "url_parsing"},
	{`{"llm_base_url":"https://h:99999"}`, "llm_base_url", "", "url_parsing"},
	{`{"llm_base_url":"https://h:"}`, "llm_base_url", "", "url_parsing"},
	{`{"llm_base_url":"https://llm.example@evil.example"}`, "llm_base_url", "", "url_parsing"},
	{`{"llm_base_url":"https://h/a b"}`, "llm_base_url", "", "url_parsing"},
	{`{"llm_base_url":"https://h/` + strings.Repeat("x", maxURL) + `"}`, "llm_base_url", "", "string_too_long"},

	{`{"remote_runtime_resource_factor":null}`, "remote_runtime_resource_factor", `null`, ""},
	{`{"remote_runtime_resource_factor":1}`, "remote_runtime_resource_factor", `1`, ""},
	{`{"remote_runtime_resource_factor":8}`, "remote_runtime_resource_factor", `8`, ""},
	{`{"remote_runtime_resource_factor":3}`, "remote_runtime_resource_factor", "", "literal_error"},
	{`{"remote_runtime_resource_factor":0}`, "remote_runtime_resource_factor", "", "literal_error"},

	{`{"enable_default_condenser":true}`, "enable_default_condenser", `true`, ""},
	{`{"enable_default_condenser":null}`, "enable_default_condenser", "", "none_forbidden"},
	{`{"enable_sound_notifications":false}`, "enable_sound_notifications", `false`, ""},
	{`{"enable_sound_notifications":null}`, "enable_sound_notifications", "", "none_forbidden"},
	{`{"enable_proactive_conversation_starters":true}`, "enable_proactive_conversation_starters", `true`, ""},
	{`{"enable_proactive_conversation_starters":null}`, "enable_proactive_conversation_starters", "", "none_forbidden"},
	{`{"enable_solvability_analysis":true}`, "enable_solvability_analysis", `true`, ""},
	{`{"enable_solvability_analysis":null}`, "enable_solvability_analysis", "", "none_forbidden"},
	{`{"enable_solvability_analysis":"yes"}`, "enable_solvability_analysis", "", "bool_type"},

	{`{"user_consents_to_analytics":null}`, "user_consents_to_analytics", `true`, ""},
	{`{"user_consents_to_analytics":false}`, "user_consents_to_analytics", `false`, ""},
	{`{"user_consents_to_analytics":""}`, "user_consents_to_analytics", "", "bool_type"},

	{`{"sandbox_base_container_image":null}`, "sandbox_base_container_image", `null`, ""},
	{`{"sandbox_base_container_image":""}`, "sandbox_base_container_image", `""`, ""},
	{`{"sandbox_base_container_image":"localhost:5000/x/y:1"}`, "sandbox_base_container_image", `"localhost:5000/x/y:1"`, ""},
	{`{"sandbox_base_container_image":"Debian"}`, "sandbox_base_container_image", "", "value_error"},
	{`{"sandbox_runtime_container_image":null}`, "sandbox_runtime_container_image", `null`, ""},
	{`{"sandbox_runtime_container_image":"a/b@sha256:zz"}`, "sandbox_runtime_container_image", "", "value_error"},
	{`{"sandbox_runtime_container_image":"--privileged"}`, "sandbox_runtime_container_image", "", "value_error"},

	{`{"search_api_key":null}`, "search_api_key", `"sk-search"`, ""},
	{`{"search_api_key":""}`, "search_api_key", `""`, ""},
	{`{"search_api_key":"s2"}`, "search_api_key", `"s2"`, ""},
	{`{"search_api_key":"**********"}`, "search_api_key", `"sk-search"`, ""},
	{`{"sandbox_api_key":null}`, "sandbox_api_key", `"sk-sandbox"`, ""},
	{`{"sandbox_api_key":""}`, "sandbox_api_key", `""`, ""},
	{`{"sandbox_api_key":"s2"}`, "sandbox_api_key", `"s2"`, ""},
	{`{"sandbox_api_key":"**********"}`, "sandbox_api_key", `"sk-sandbox"`, ""},

	{`{"max_budget_per_task":null}`, "max_budget_per_task", `null`, ""},
	{`{"max_budget_per_task":0}`, "max_budget_per_task", `0`, ""},
	{`{"max_budget_per_task":12.25}`, "max_budget_per_task", `12.25`, ""},
	{`{"max_budget_per_task":-0.01}`, "max_budget_per_task", "", "greater_than_equal"},
	{`{"max_budget_per_task":1e999}`, "max_budget_per_task", "", "float_type"},
	{`{"max_budget_per_task":"5"}`, "max_budget_per_task", "", "float_type"},

	{`{"email":null}`, "email", `null`, ""},
	{`{"email":""}`, "email", `""`, ""},
	{`{"email":"bob+x@sub.example.org"}`, "email", `"bob+x@sub.example.org"`, ""},
	{`{"email":"bob"}`, "email", "", "value_error"},
	{`{"email":"Bob <bob@example.org>"}`, "email", "", "value_error"},
	{`{"email":"bob@example.org\nBcc: x@y"}`, "email", "", "value_error"},
	{`{"email":"bob@.example.org"}`, "email", "", "value_error"},
	{`{"email":"@example.org"}`, "email", "", "value_error"},
	{`{"email_verified":null}`, "email_verified", `null`, ""},
	{`{"email_verified":false}`, "email_verified", `false`, ""},
	{`{"email_verified":"false"}`, "email_verified", "", "bool_type"},

	{`{"git_user_name":null}`, "git_user_name", `null`, ""},
	{`{"git_user_name":""}`, "git_user_name", `""`, ""},
	{`{"git_user_name":"Ada Lovelace, PhD"}`, "git_user_name", `"Ada Lovelace, PhD"`, ""},
	{`{"git_user_name":"Ada\nEvil"}`, "git_user_name", "", "value_error"},
	{`{"git_user_name":"Ada <x>"}`, "git_user_name", "", "value_error"},
	{`{"git_user_name":" . "}`, "git_user_name", "", "value_error"},
	{`{"git_user_name":"` + strings.Repeat("n", 256) + `"}`, "git_user_name", "", "string_too_long"},
	{`{"git_user_email":null}`, "git_user_email", `null`, ""},
	{`{"git_user_email":"1+ada@users.noreply.example"}`, "git_user_email", `"1+ada@users.noreply.example"`, ""},
	{`{"git_user_email":"a\rb"}`, "git_user_email", "", "value_error"},
	{`{"git_user_email":"<a@b>"}`, "git_user_email", "", "value_error"},

	{`{"mcp_config":null}`, "mcp_config", `null`, ""},
	{`{"mcp_config":{}}`, "mcp", `{}`, ""},
	{`{"mcp_config":{"sse_servers":null}}`, "mcp", `{}`, ""},
	{`{"mcp_config":""}`, "mcp_config", "", "dict_type"},
	{`{"secrets_store":null}`, "secrets_store", `{"provider_tokens":{},"custom_secrets":{}}`, ""},
	{`{"secrets_store":[]}`, "secrets_store", "", "dict_type"},
}

// approval are the mode of approvals and the two fields that it stands for.
var approval = map[string]bool{"approval_mode": true, "confirmation_mode": true, "security_analyzer": true}

func TestMergeFields(t *testing.T) {
	stored, _, err := Merge(nil, parse(t, full))
	if err != nil {
		t.Fatal(err)
	}
	before := dump(stored)
	for _, r := range rules {
		got, _, err := update(&stored, r.body)
		if r.bad != "" {
			wantRefused(t, r.body, err, r.bad, "body", r.field)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", r.body, err)
			continue
		}
		after := dump(got)
		if after[r.field] != r.want {
			t.Errorf("%s: %s is %s, want %s", r.body, r.field, after[r.field], r.want)
		}
		// What is omitted stays. Families of names that change together are looked at elsewhere.
		for name, v := range before {
			family := name == r.field || approval[name] && approval[r.field] || strings.HasPrefix(r.field, "llm_") && strings.HasPrefix(name, "llm_api_key") ||
				strings.HasPrefix(name, "mcp") && strings.HasPrefix(r.field, "mcp") ||
				strings.HasPrefix(name, strings.TrimSuffix(r.field, "_set")) || r.field == "secrets_store"
			if !family && after[name] != v {
				t.Errorf("%s changed %s from %s to %s", r.body, name, v, after[name])
			}
		}
	}
	if diff := cmp.Diff(before, dump(stored)); diff != "" {
		t.Errorf("merging changed the old settings: %s", diff)
	}
}

func wantRefused(t *testing.T, body string, err error, typ string, loc ...any) {
	t.Helper()
	var bad *api.ValidationError
	if !errors.As(err, &bad) || len(bad.Detail) != 1 {
		t.Errorf("%s: %v, want one complaint", body, err)
		return
	}
	d := bad.Detail[0]
	if d.Type != typ || !slices.Equal(d.Loc, loc) || !strings.HasSuffix(d.Msg, ".") {
		t.Errorf("%s: %v %s %q, want %v %s", body, d.Loc, d.Type, d.Msg, loc, typ)
	}
}

// The table must have a row for every field that there is.
func TestRulesCoverEveryField(t *testing.T) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(full), &all); err != nil {
		t.Fatal(err)
	}
	for name := range dump(Defaults()) {
		if strings.HasSuffix(name, "_set") {
			continue
		}
		if _, ok := all[name]; !ok {
			t.Errorf("full has no %s", name)
		}
		null := false
		for _, r := range rules {
			null = null || r.body == `{"`+name+`":null}`
		}
		if !null {
			t.Errorf("there is no row for %s null", name)
		}
	}
	if len(all) != 27 {
		t.Errorf("%d fields, want the 25 of the contract, condenser_max_size and approval_mode", len(all))
	}
}

func TestMergeFirst(t *testing.T) {
	got, changes, err := Merge(nil, parse(t, `{}`))
	if err != nil || len(changes.Notes) != 0 {
		t.Fatal(err, changes)
	}
	if diff := cmp.Diff(dump(Defaults()), dump(got)); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{
		"language": "null", "enable_default_condenser": "true", "enable_sound_notifications": "false",
		"enable_proactive_conversation_starters": "true", "enable_solvability_analysis": "true", "llm_model": "null",
		"mcp_config": "null", "llm_api_key_set": "false", "provider_tokens_set": "{}", "user_consents_to_analytics": "null",
		"secrets_store": `{"provider_tokens":{},"custom_secrets":{}}`,
	}
	d := dump(got)
	for name, v := range want {
		if d[name] != v {
			t.Errorf("%s is %s, want %s", name, d[name], v)
		}
	}
	for _, name := range []string{"llm_api_key", "search_api_key", "sandbox_api_key"} {
		_, _, err := update(nil, `{"`+name+`":"**********"}`)
		wantRefused(t, name, err, "value_error", "body", name)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, _, err := Merge(nil, api.SettingsInput{MaxBudgetPerTask: api.Some(v)})
		wantRefused(t, fmt.Sprint(v), err, "finite_number", "body", "max_budget_per_task")
	}
}

func TestMergeListsEverythingThatIsWrong(t *testing.T) {
	_, _, err := update(nil, `{"max_iterations":0,"agent":"x","email":"y","enable_default_condenser":null,
		"mcp_config":{"sse_servers":["nope",{"url":"ws://h"}]},"secrets_store":{"custom_secrets":{"1A":"v"},"provider_tokens":{"svn":"t"}}}`)
	var bad *api.ValidationError
	if !errors.As(err, &bad) || len(bad.Detail) != 8 {
		t.Errorf("%v", err)
	}
	_, _, err = update(nil, `{"max_iterations":"0","agent":5,"mcp_config":{"sse_servers":[5,{"api_key":"k"}],"x":1},"secrets_store":{"provider_tokens":{"github":7}}}`)
	if !errors.As(err, &bad) || len(bad.Detail) != 6 {
		t.Errorf("%v", err)
	}
}
