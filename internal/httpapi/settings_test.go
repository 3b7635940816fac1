package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/oidc"
)

func TestSettingsBeforeTheFirstStore(t *testing.T) {
	r := newRig(t)
	a := r.do("GET", toSettings, "").want(t, 404)
	got := decoded[map[string]string](t, a)
	if got["error"] != "Settings not found" || got["msg_id"] != "CONFIGURATION$SETTINGS_NOT_FOUND" || len(got) != 2 {
		t.Errorf("%s", a.body)
	}
	if a := r.do("POST", toSettings, `{}`).want(t, 200); a.body != `{"message":"Settings stored"}` {
		t.Errorf("%s", a.body)
	}
	r.do("GET", toSettings, "").want(t, 200)
	r.as("bob", "GET", toSettings, "").want(t, 404)
}

func TestIgnoredFields(t *testing.T) {
	r := newRig(t)
	a := r.do("POST", toSettings, `{"language":"de","zeta":"`+canary+`","LLM_API_KEY":"`+canary+`","a":{"b":1}}`).want(t, 200)
	if a.body != `{"message":"Settings stored","ignored_fields":["LLM_API_KEY","a","zeta"]}` {
		t.Errorf("%s", a.body)
	}
	got := decoded[api.Settings](t, r.do("GET", toSettings, ""))
	if got.LLMAPIKeySet || *got.Language != "de" {
		t.Errorf("%+v", got)
	}
}

const fullSettings = `{"language":"pt-BR","agent":"ReadOnlyAgent","max_iterations":7,"security_analyzer":"rules","confirmation_mode":true,"llm_model":"acme/m","llm_api_key":"` + canary + `-a",
"llm_base_url":"https://llm.example/v1","remote_runtime_resource_factor":4,"secrets_store":{"provider_tokens":{"github":"` + canary + `-b","gitlab":{"token":"` + canary + `-c","host":"git.example.org","user_id":"7"}},
"custom_secrets":{"NPM_TOKEN":"` + canary + `-d","DB":{"secret":"` + canary + `-e","description":"the database"}}},"enable_default_condenser":false,"enable_sound_notifications":true,
"enable_proactive_conversation_starters":false,"enable_solvability_analysis":false,"user_consents_to_analytics":true,"sandbox_base_container_image":"debian:13","sandbox_runtime_container_image":"ghcr.io/x/y:1",
"mcp_config":{"sse_servers":[{"url":"https://a.example/sse","api_key":"` + canary + `-f"}],"stdio_servers":[{"name":"fs","command":"npx","args":["-y"],"env":{"KEY":"` + canary + `-g","EMPTY":""}}],
"shttp_servers":[{"url":"https://b.example/mcp","api_key":"` + canary + `-h","timeout":60}]},"search_api_key":"` + canary + `-i","sandbox_api_key":"` + canary + `-j","max_budget_per_task":2.5,"email":"ada@example.org",
"email_verified":true,"git_user_name":"Ada","git_user_email":"ada@example.org"}`

// Sending back what GET gave changes nothing, although GET shows no secret.
func TestSettingsRoundTrip(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, fullSettings).want(t, 200)
	first := r.do("GET", toSettings, "").want(t, 200)
	if strings.Contains(first.body, canary) {
		t.Fatalf("a secret is shown: %s", first.body)
	}
	fields := decoded[map[string]json.RawMessage](t, first)
	for _, name := range contractFields(settingsContract) {
		if _, ok := fields[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	for name, want := range map[string]string{
		"llm_api_key": "null", "search_api_key": "null", "sandbox_api_key": "null", "llm_api_key_set": "true", "search_api_key_set": "true", "sandbox_api_key_set": "true",
		"provider_tokens_set": `{"github":null,"gitlab":"git.example.org"}`, "max_iterations": "7", "max_budget_per_task": "2.5", "enable_default_condenser": "false",
		"secrets_store": `{"provider_tokens":{"github":"**********","gitlab":"**********"},"custom_secrets":{"DB":"**********","NPM_TOKEN":"**********"}}`,
	} {
		if got := canonical(t, fields[name]); got != canonical(t, json.RawMessage(want)) {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	before := r.opened()
	answer := r.do("POST", toSettings, first.body).want(t, 200)
	if answer.body != `{"message":"Settings stored"}` {
		t.Errorf("sending it back was remarked upon: %s", answer.body)
	}
	if second := r.do("GET", toSettings, ""); second.body != first.body {
		t.Errorf("before\n%s\nafter\n%s", first.body, second.body)
	}
	if after := r.opened(); !maps.Equal(before, after) || len(before) != 10 {
		t.Errorf("secrets before %v, after %v", before, after)
	}
	r.logsAreClean()
}

// opened is every secret of ada's, as the agent would use it.
func (r *rig) opened() map[string]string {
	r.t.Helper()
	s, err := r.api.Conversations.Settings.Get(r.t.Context(), "ada")
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]string{"llm": s.LLMAPIKey.Reveal(), "search": s.SearchAPIKey.Reveal(), "sandbox": s.SandboxAPIKey.Reveal()}
	for name, t := range s.ProviderTokens {
		out["token "+name] = t.Token.Reveal() + " " + t.Host + " " + t.UserID
	}
	for name, c := range s.CustomSecrets {
		out["secret "+name] = c.Value.Reveal() + " " + c.Description
	}
	out["sse"], out["stdio"], out["shttp"] = s.MCP.SSE[0].APIKey.Reveal(), s.MCP.Stdio[0].Env["KEY"].Reveal(), s.MCP.SHTTP[0].APIKey.Reveal()
	return out
}

func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func TestOmittedNullAndEmpty(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, fullSettings).want(t, 200)
	read := func() map[string]json.RawMessage {
		return decoded[map[string]json.RawMessage](t, r.do("GET", toSettings, ""))
	}
	all := read()
	r.do("POST", toSettings, `{}`).want(t, 200)
	for name, raw := range read() {
		if string(raw) != string(all[name]) {
			t.Errorf("%s was omitted and changed to %s", name, raw)
		}
	}
	keeps := []string{"llm_api_key", "search_api_key", "sandbox_api_key", "llm_model", "llm_base_url", "user_consents_to_analytics"}
	for _, name := range contractFields(settingsContract) {
		if strings.HasPrefix(name, "enable_") {
			continue // not nullable; the malformed table has them
		}
		r.do("POST", toSettings, `{"`+name+`":null}`).want(t, 200)
		now := read()
		switch {
		case slices.Contains(keeps, name):
			if string(now[name]) != string(all[name]) || string(now["llm_api_key_set"]) != "true" {
				t.Errorf("%s: null does not keep: %s", name, now[name])
			}
		case name == "secrets_store":
			if string(now["provider_tokens_set"]) != "{}" {
				t.Errorf("secrets_store: null does not reset: %s", now["provider_tokens_set"])
			}
		case string(now[name]) != "null":
			t.Errorf("%s: null does not reset: %s", name, now[name])
		}
	}
	for name, set := range map[string]string{"llm_api_key": "llm_api_key_set", "search_api_key": "search_api_key_set", "sandbox_api_key": "sandbox_api_key_set"} {
		r.do("POST", toSettings, `{"`+name+`":""}`).want(t, 200)
		if string(read()[set]) != "false" {
			t.Errorf("%s: an empty string does not clear", name)
		}
	}
}

// A key belongs to the host it was given for.
func TestDroppedKeyIsSaid(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, `{"llm_model":"m","llm_api_key":"`+canary+`","llm_base_url":"https://one.example/v1"}`).want(t, 200)
	same := r.do("POST", toSettings, `{"llm_base_url":"https://ONE.example:443/v2"}`).want(t, 200)
	if strings.Contains(same.body, "notes") {
		t.Errorf("the same host: %s", same.body)
	}
	a := r.do("POST", toSettings, `{"llm_base_url":"https://two.example/v1"}`).want(t, 200, `"notes":[`, "API key was removed", "the host of the base URL changed")
	if strings.Contains(a.body, canary) || decoded[api.Settings](t, r.do("GET", toSettings, "")).LLMAPIKeySet {
		t.Errorf("the key was not dropped: %s", a.body)
	}
	again := r.do("POST", toSettings, `{"llm_base_url":"https://three.example/v1","llm_api_key":"new"}`).want(t, 200)
	if strings.Contains(again.body, "notes") || !decoded[api.Settings](t, r.do("GET", toSettings, "")).LLMAPIKeySet {
		t.Errorf("sent together: %s", again.body)
	}
	r.do("POST", toSettings, `{"secrets_store":{"provider_tokens":{"github":"`+canary+`"}}}`).want(t, 200)
	r.do("POST", toSettings, `{"secrets_store":{"provider_tokens":{"github":{"host":"evil.test"}}}}`).want(t, 200, "token for github was dropped")
	r.logsAreClean()
}

func TestOptions(t *testing.T) {
	r := newRig(t)
	r.do("GET", "/api/options/agents", "").want(t, 200, `["BrowsingAgent","CodeActAgent","ReadOnlyAgent"]`)
	r.do("GET", "/api/options/security-analyzers", "").want(t, 200, `["llm","rules"]`)
	r.do("GET", "/api/options/models", "").want(t, 200, keyless)
	r.do("GET", "/api/options/config", "").want(t, 200, `"APP_MODE":"oss"`)
	for _, agent := range decoded[[]string](t, r.do("GET", "/api/options/agents", "")) {
		r.do("POST", toSettings, `{"agent":"`+agent+`"}`).want(t, 200)
	}
	for _, analyzer := range decoded[[]string](t, r.do("GET", "/api/options/security-analyzers", "")) {
		r.do("POST", toSettings, `{"security_analyzer":"`+analyzer+`"}`).want(t, 200)
	}
}

// What keeps every conversation from starting is said when it is saved, not when one is
// created.
func TestBudgetWithoutAPriceIsSaidAtOnce(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, `{"llm_model":"`+unpriced+`","llm_api_key":"k","max_budget_per_task":5}`).want(t, 200, `"notes":["Conversations cannot start with these settings: A budget per conversation is set`)
	if a := r.do("POST", toSettings, `{"llm_model":"`+priced+`"}`).want(t, 200); strings.Contains(a.body, "notes") {
		t.Error(a.body)
	}
}

// The legacy front end shows errors only, and sends all settings each time: it gets an
// error when it brings a budget and an unpriced model together, and only then.
func TestLegacyFrontEndIsToldOfABudgetWithoutAPrice(t *testing.T) {
	r := newRig(t, withFrontEnd(t, frontEndFolder(t)))
	page := []string{"X-Session-API-Key", "", "Cookie", r.cookie("ada")}
	save := func(model, budget, language string) answer {
		return r.do("POST", toSettings, `{"llm_model":"`+model+`","llm_api_key":"k","max_budget_per_task":`+budget+`,"language":"`+language+`"}`, page...)
	}
	refused := `{"error":"Not saved: A budget per conversation is set, but the price of ` + unpriced + ` is unknown`
	save(unpriced, "5", "en").want(t, 400, refused, api.CodePriceUnknown)
	r.do("GET", toSettings, "").want(t, 404)
	save(unpriced, "null", "en").want(t, 200)
	save(unpriced, "5", "de").want(t, 400, refused)
	if s := decoded[api.Settings](t, r.do("GET", toSettings, "")); s.MaxBudgetPerTask != nil || rest.Deref(s.Language) != "en" {
		t.Errorf("stored although refused: %+v", s)
	}
	save(priced, "5", "en").want(t, 200)
	save(unpriced, "5", "en").want(t, 400, refused)

	r.do("POST", toSettings, `{"llm_model":"`+unpriced+`"}`).want(t, 200, `"notes":["Conversations cannot start`) // a script
	save(unpriced, "5", "de").want(t, 200)
	save(unpriced, "6", "de").want(t, 400, refused)
	save(unpriced, "null", "de").want(t, 200)
}

// The legacy front end shows the message of an error; other clients get the documented shape.
func TestLegacyFrontEndNamesInvalidFields(t *testing.T) {
	r := newRig(t, withFrontEnd(t, frontEndFolder(t)))
	const bad = `{"max_iterations":0,"language":5}`
	shown := r.do("POST", toSettings, bad, "X-Session-API-Key", "", "Cookie", r.cookie("ada")).want(t, 422, `"loc":["body","max_iterations"]`, `"message":"`, `max_iterations: Must be at least 1.`, `language: `, `; `)
	plain := r.do("POST", toSettings, bad).want(t, 422, `"loc":["body","max_iterations"]`)
	if strings.Contains(plain.body, `"message"`) || !strings.HasPrefix(shown.body, strings.TrimSuffix(plain.body, "}")+",") {
		t.Errorf("for the front end: %s\nfor others: %s", shown.body, plain.body)
	}
}

// Fields that cannot be set are reported when they differ from what is stored, and not
// when a client sends back what it was given.
func TestReadOnlySettings(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, `{"llm_api_key":"k","llm_api_key_set":false,"provider_tokens_set":{}}`).want(t, 200)
	for body, want := range map[string]string{
		`{"llm_api_key_set":true,"search_api_key_set":false,"provider_tokens_set":{}}`: `{"message":"Settings stored"}`,
		`{"llm_api_key_set":false}`: `{"message":"Settings stored","ignored_fields":["llm_api_key_set"]}`,
		`{"zeta":1,"provider_tokens_set":{"github":null},"sandbox_api_key_set":"yes","search_api_key_set":null}`: `{"message":"Settings stored","ignored_fields":["provider_tokens_set","sandbox_api_key_set","search_api_key_set","zeta"]}`,
	} {
		if a := r.do("POST", toSettings, body).want(t, 200); a.body != want {
			t.Errorf("%s: %s", body, a.body)
		}
	}
}

// Without sign-on email_verified is stored as sent; with it, it is not the user's to say.
func TestEmailVerified(t *testing.T) {
	alone := newRig(t)
	alone.do("POST", toSettings, `{"email":"ada@example.org","email_verified":true}`).want(t, 200, `{"message":"Settings stored"}`)
	alone.do("GET", toSettings, "").want(t, 200, `"email_verified":true`)
	r := newRig(t, tune{config: func(c *Config) { c.Page.SignOn = &oidc.SignOn{} }})
	r.do("POST", toSettings, `{"email":"ada@example.org","email_verified":true}`).want(t, 200, `"ignored_fields":["email_verified"]`)
	r.do("GET", toSettings, "").want(t, 200, `"email_verified":null`)
	if a := r.do("POST", toSettings, `{"email_verified":null}`).want(t, 200); strings.Contains(a.body, "ignored") {
		t.Error(a.body)
	}

	// An administrator confirms an address, and it is that address which is confirmed.
	confirm := func(r *rig, address string) answer {
		return r.do("PATCH", "/api/users/ada", `{"verified_email":"`+address+`"}`, "X-Session-API-Key", r.keys["admin"])
	}
	confirm(alone, "ada@example.org").want(t, 400, "neither single sign-on nor e-mail")
	r.do("PATCH", "/api/users/ada", `{"verified_email":"ada@example.org"}`).want(t, 403)
	confirm(r, "eve@example.org").want(t, 409, "not the e-mail address")
	confirm(r, "Ada@example.org").want(t, 200)
	r.do("GET", toSettings, "").want(t, 200, `"email_verified":true`)
	r.do("POST", toSettings, `{"email":"other@example.org"}`).want(t, 200)
	r.do("GET", toSettings, "").want(t, 200, `"email_verified":null`)
	r.do("POST", toSettings, `{"email":"ada@example.org"}`).want(t, 200)
	confirm(r, "").want(t, 200)
	r.do("GET", toSettings, "").want(t, 200, `"email_verified":null`)
	r.do("PATCH", "/api/users/bob", `{"verified_email":"bob@example.org"}`, "X-Session-API-Key", r.keys["admin"]).want(t, 409)
	r.as("bob", "GET", toSettings, "").want(t, 404)
}

func TestUnknownQueryParameters(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	if got := r.do("GET", "/api/conversations?limt=5&limit=5&a%20b=1", "").want(t, 200).header.Get("X-Ignored-Parameters"); got != "a+b, limt" {
		t.Errorf("reported %q", got)
	}
	if got := r.do("GET", "/api/conversations?limit=5", "").want(t, 200).header.Get("X-Ignored-Parameters"); got != "" {
		t.Errorf("reported %q", got)
	}
}
