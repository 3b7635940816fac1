package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/settings"
)

// The legacy server has thirty-four known defects. Each has a test, here or in
// cmd/deckhand, that shows what this server does instead.

func TestDefect01SettingsPostResetsUnsentFields(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, fullSettings).want(t, 200)
	before := decoded[map[string]json.RawMessage](t, r.do("GET", toSettings, "").want(t, 200))
	r.do("POST", toSettings, `{"language":"de"}`).want(t, 200)
	after := decoded[map[string]json.RawMessage](t, r.do("GET", toSettings, "").want(t, 200))
	if string(after["language"]) != `"de"` || len(before) != len(after) {
		t.Errorf("language %s; %d fields were %d", after["language"], len(after), len(before))
	}
	for name, was := range before {
		if got := after[name]; name != "language" && string(got) != string(was) {
			t.Errorf("%s was %s and is %s", name, was, got)
		}
	}
}

func TestDefect02SandboxAPIKeyDestroyedOnSave(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, `{"sandbox_api_key":"`+canary+`"}`).want(t, 200)
	shown := r.do("GET", toSettings, "").want(t, 200, `"sandbox_api_key":null`, `"sandbox_api_key_set":true`)
	for _, body := range []string{`{"language":"de"}`, `{"sandbox_api_key":null}`, `{"sandbox_api_key":"**********"}`, shown.body} {
		r.do("POST", toSettings, body).want(t, 200)
		s, err := r.api.Conversations.Settings.Get(t.Context(), "ada")
		if err != nil || s.SandboxAPIKey.Reveal() != canary {
			t.Errorf("%s: the key is %q, %v", body, s.SandboxAPIKey.Reveal(), err)
		}
	}
	r.do("POST", toSettings, `{"sandbox_api_key":""}`).want(t, 200)
	r.do("GET", toSettings, "").want(t, 200, `"sandbox_api_key_set":false`)
}

func TestDefect03SecretsStoreSilentlyDropped(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, `{"secrets_store":{"provider_tokens":{"github":"`+canary+`-1"},"custom_secrets":{"NPM_TOKEN":{"secret":"`+canary+`-2","description":"to publish"}}}}`).want(t, 200)
	r.do("GET", toSettings, "").want(t, 200, `"provider_tokens_set":{"github":null}`)
	r.do("GET", toSecrets, "").want(t, 200, `{"name":"NPM_TOKEN","description":"to publish"}`)
	s, err := r.api.Conversations.Settings.Get(t.Context(), "ada")
	if err != nil || s.ProviderTokens["github"].Token.Reveal() != canary+"-1" || s.CustomSecrets["NPM_TOKEN"].Value.Reveal() != canary+"-2" {
		t.Errorf("the values are not what was sent: %v", err)
	}
	// What is not understood is said, not dropped.
	r.do("POST", toSettings, `{"secrets_store":{"tokens":{"github":"x"}}}`).want(t, 422, `"secrets_store"`, "tokens")
}

func TestDefect04MCPAPIKeysReturnedInClear(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSettings, fullSettings).want(t, 200)
	shown := r.do("GET", toSettings, "").want(t, 200, `"api_key":"`+api.Masked+`"`)
	if strings.Contains(shown.body, canary) {
		t.Errorf("a key is shown: %s", shown.body)
	}
	// What is masked stays when it is sent back.
	r.do("POST", toSettings, shown.body).want(t, 200)
	s, err := r.api.Conversations.Settings.Get(t.Context(), "ada")
	if err != nil || s.MCP.SSE[0].APIKey.Reveal() != canary+"-f" || s.MCP.SHTTP[0].APIKey.Reveal() != canary+"-h" || s.MCP.Stdio[0].Env["KEY"].Reveal() != canary+"-g" {
		t.Errorf("a key was lost: %v", err)
	}
}

func TestDefect05UnknownConversationIsNull(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	id := r.create(`{}`)
	want := `{"status":"error","message":"Conversation not found","msg_id":"CONVERSATION$NOT_FOUND"}`
	for _, a := range []answer{r.do("GET", toCreate+"/unknown", ""), r.as("bob", "GET", toCreate+"/"+id, "")} {
		if a.status != http.StatusNotFound || a.body != want {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	r.do("DELETE", toCreate+"/unknown", "").want(t, 404)
}

func TestDefect06StopReturnsOldStatus(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	id := r.create(`{}`)
	r.as("bob", "POST", toCreate+"/"+id+"/stop", "").want(t, 404, "CONVERSATION$NOT_FOUND")
	r.do("POST", toCreate+"/unknown/stop", "").want(t, 404, "CONVERSATION$NOT_FOUND")
	for _, message := range []string{"Conversation stopped successfully", "Conversation was not running"} {
		a := r.do("POST", toCreate+"/"+id+"/stop", "").want(t, 200)
		if got := decoded[api.ConversationResponse](t, a); *got.ConversationStatus != "STOPPED" || *got.Message != message || got.ConversationID != id {
			t.Errorf("%s", a.body)
		}
		r.do("GET", toCreate+"/"+id, "").want(t, 200, `"status":"STOPPED"`)
	}
}

func TestDefect07FiltersAfterPaging(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	for range 5 {
		r.create(`{"repository":"team/wanted"}`)
		for range 4 {
			r.create(`{"repository":"team/other"}`)
		}
	}
	seen, next := map[string]bool{}, ""
	for _, full := range []int{2, 2, 1} {
		page := r.page("selected_repository=team/wanted&conversation_trigger=gui&limit=2&page_id=" + url.QueryEscape(next))
		if len(page.Results) != full {
			t.Fatalf("a page of %d, want %d", len(page.Results), full)
		}
		for _, c := range page.Results {
			seen[c.ConversationID] = *c.SelectedRepository == "team/wanted"
		}
		if last := full == 1; (page.NextPageID == nil) != last {
			t.Fatalf("the page after it is %v", page.NextPageID)
		}
		if page.NextPageID != nil {
			next = *page.NextPageID
		}
	}
	if len(seen) != 5 {
		t.Errorf("%v", seen)
	}
}

func TestDefect08GhostConversationOnMissingSettings(t *testing.T) {
	r := newRig(t)
	ghosts := func(step string) {
		t.Helper()
		if a := r.do("GET", toCreate, "").want(t, 200); a.body != `{"results":[],"next_page_id":null}` {
			t.Errorf("%s: %s", step, a.body)
		}
		r.do("GET", toCreate+"/ghost", "").want(t, 404)
	}
	r.do("POST", toCreate, `{"conversation_id":"ghost"}`).want(t, 400, "CONFIGURATION$SETTINGS_NOT_FOUND")
	ghosts("no settings")
	r.do("POST", toSettings, `{"llm_model":"`+priced+`"}`).want(t, 200)
	r.do("POST", toCreate, `{"conversation_id":"ghost"}`).want(t, 400, "STATUS$ERROR_LLM_AUTHENTICATION")
	ghosts("no key of the model")
	// The id was not used up.
	r.settle("ada")
	r.do("POST", toCreate, `{"conversation_id":"ghost"}`).want(t, 200)
}

func TestDefect09SuggestedTaskDoesNotSetRepository(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.tokens("ada", "github", "gitlab", "bitbucket")
	for _, provider := range []string{"github", "gitlab", "bitbucket"} {
		for _, kind := range []string{"MERGE_CONFLICTS", "FAILING_CHECKS", "UNRESOLVED_COMMENTS", "OPEN_ISSUE", "OPEN_PR", "CREATE_MICROAGENT"} {
			id := r.create(fmt.Sprintf(`{"initial_user_msg":"not this","suggested_task":{"git_provider":%q,"task_type":%q,"repo":"team/app","issue_number":4711,"title":"Spinning wheel"}}`, provider, kind))
			got := decoded[api.Conversation](t, r.do("GET", toCreate+"/"+id, "").want(t, 200))
			if got.SelectedRepository == nil || *got.SelectedRepository != "team/app" || *got.GitProvider != provider || *got.Trigger != "suggested_task" {
				t.Errorf("%s at %s: %+v", kind, provider, got)
			}
			a := r.do("GET", toCreate+"/"+id+"/events", "").want(t, 200, "team/app", "4711", "Spinning wheel")
			if strings.Contains(a.body, "not this") {
				t.Errorf("%s: the message was not replaced", kind)
			}
		}
	}
}

// towards sends every request to one server, whatever host it names.
type towards struct{ base *url.URL }

func (d towards) RoundTrip(req *http.Request) (*http.Response, error) {
	own := req.Clone(req.Context())
	own.URL.Scheme, own.URL.Host = d.base.Scheme, d.base.Host
	return http.DefaultTransport.RoundTrip(own)
}

func TestDefect10RepositoryWithoutToken(t *testing.T) {
	hub := newGitHost(t, "nobody-has-it")
	base, err := url.Parse(hub.base)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	r := newRig(t)
	r.verify = func(ctx context.Context, _ settings.Settings, provider, repository string) (string, error) {
		return gitprovider.Verify(ctx, &http.Client{Transport: towards{base}}, nil, provider, repository, "")
	}
	r.settle("ada") // and no secret at all
	id := r.create(`{"repository":"public/app","git_provider":"github"}`)
	r.do("GET", toCreate+"/"+id, "").want(t, 200, `"selected_repository":"public/app"`, `"git_provider":"github"`)
	r.do("POST", toCreate, `{"repository":"private/app","git_provider":"github"}`).want(t, 400, `"status":"error"`, "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", "no token is stored")
	if n := len(r.rows("ada")); n != 1 {
		t.Errorf("%d conversations", n)
	}
}

func TestDefect11UnvalidatedConversationID(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	for _, id := range []string{"", "../../etc", "a/b", `a\\b`, "..", "a b", "a%2fb", "a\\u0000b", "é", strings.Repeat("a", 101), "a\\nb"} {
		r.do("POST", toCreate, `{"conversation_id":"`+id+`"}`).want(t, 422, `["body","conversation_id"]`)
	}
	if n := len(r.rows("ada")); n != 0 {
		t.Errorf("%d conversations", n)
	}
	for _, id := range []string{"a", "A_b-9", strings.Repeat("a", 100)} {
		r.do("POST", toCreate, `{"conversation_id":"`+id+`"}`).want(t, 200, `"conversation_id":"`+id+`"`)
	}
}

func TestDefect18TimestampsWithoutZone(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	begin := time.Now().Add(-time.Minute)
	id := r.create(`{"initial_user_msg":"hello"}`)
	// recent is a moment of this test, whatever the zone of the machine is.
	recent := func(what, text string) {
		t.Helper()
		if at, err := time.Parse(time.RFC3339Nano, text); err != nil || at.Before(begin) || at.After(time.Now()) {
			t.Errorf("%s: %q, %v", what, text, err)
		}
	}
	events := decoded[struct{ Events []struct{ Timestamp string } }](t, r.do("GET", toCreate+"/"+id+"/events", "").want(t, 200)).Events
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	for _, e := range events {
		recent("an event", e.Timestamp)
	}
	c := decoded[map[string]any](t, r.do("GET", toCreate+"/"+id, "").want(t, 200))
	for _, name := range []string{"created_at", "last_updated_at"} {
		recent(name, c[name].(string))
	}
}

func TestDefect30SecretRoutesWithoutStore(t *testing.T) {
	_, with := newStreet(map[string]*place{"github": knows("11"), "gitlab": knows("22")})
	r := newRig(t, with)
	r.do("PUT", toSecrets+"/NPM", `{"name":"NPM"}`).want(t, 404, "not found")
	r.do("DELETE", toSecrets+"/NPM", "").want(t, 404, "not found")
	r.do("POST", toSecrets, `{"name":"NPM","value":"`+canary+`"}`).want(t, 201)
	for _, provider := range []string{"github", "gitlab"} {
		r.do("POST", toAdd, `{"provider_tokens":{"`+provider+`":{"token":"`+canary+`-`+provider+`"}}}`).want(t, 200)
	}
	r.do("GET", toSettings, "").want(t, 200, `"github"`, `"gitlab"`)
	for _, provider := range []string{"github", "gitlab"} {
		if got := r.storedTokens(t)[provider].Token.Reveal(); got != canary+"-"+provider {
			t.Errorf("%s has the token %q", provider, got)
		}
	}
	r.do("GET", toSecrets, "").want(t, 200, `"NPM"`)
}

func TestDefect33EventFilterUnusable(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	id := r.create(`{"initial_user_msg":"The wheel squeaks"}`)
	r.do("POST", toCreate+"/"+id+"/message", `{"message":"Oil it"}`).want(t, 200)
	r.do("POST", toCreate+"/"+id+"/stop", "").want(t, 200)
	at := toCreate + "/" + id + "/events?"
	for query, want := range map[string]string{
		"": "state message message state", "query=WHEEL": "message", "query=nothing+of+it": "", "include_types=message": "message message", "exclude_types=message": "state state",
		"source=user": "message message", "source=environment": "state state", "start_date=2000-01-01": "state message message state", "end_date=2000-01-01": "",
		"exclude_hidden=true": "state message message state", "source=user&limit=1&reverse=true": "message", "include_types=message&query=oil": "message",
	} {
		var got []string
		page := decoded[struct{ Events []struct{ Action string } }](t, r.do("GET", at+query, "").want(t, 200))
		for _, e := range page.Events {
			if e.Action == "" {
				e.Action = "state"
			}
			got = append(got, e.Action)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	r.do("GET", at+"start_date=yesterday", "").want(t, 422, `["query","start_date"]`)
	// The analyzer's own pages are below the conversation, behind the key, and say
	// that there is none; at the root there is nothing.
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		path := toCreate + "/" + id + "/security/policy"
		r.do(method, path, "").want(t, 404, `"detail":"Security analyzer not initialized"`)
		r.as("bob", method, path, "").want(t, 404, "CONVERSATION$NOT_FOUND")
		r.do(method, path, "", "X-Session-API-Key", "").want(t, 401)
		r.do(method, "/security/policy", "", "X-Session-API-Key", "").want(t, 401)
		r.do(method, "/security/policy", "").want(t, 404)
	}
}
