package main

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/api"
	"deckhand/internal/llm/llmtest"
)

// effectConfig are the models whose window and price matter.
const effectConfig = `
models:
  openai/dear: {window: 100000, max_output: 1000, input: 0, output: 100}
  openai/crowded: {window: 20000, max_output: 1000}
  openai/uncondensed: {window: 20000, max_output: 1000}
`

// effects show what each field of the settings does, through the API alone.
var effects = map[string]func(*testing.T, *lab){
	"language":                               effectOfLanguage,
	"agent":                                  effectOfAgent,
	"max_iterations":                         effectOfMaxIterations,
	"security_analyzer":                      effectOfAnalyzer,
	"confirmation_mode":                      effectOfConfirmation,
	"approval_mode":                          effectOfApprovalMode,
	"llm_model":                              effectOfModel,
	"llm_api_key":                            effectOfModelKey,
	"llm_base_url":                           effectOfModelAddress,
	"remote_runtime_resource_factor":         effectOfResources,
	"secrets_store":                          effectOfSecrets,
	"enable_default_condenser":               effectOfCondenser,
	"condenser_max_size":                     effectOfCondenserSize,
	"enable_sound_notifications":             kept("enable_sound_notifications", func(s api.Settings) bool { return s.EnableSoundNotifications }),
	"enable_proactive_conversation_starters": effectOfStarters,
	"enable_solvability_analysis":            effectOfSolvability,
	"user_consents_to_analytics":             effectOfConsent,
	"sandbox_base_container_image":           refusedImage("sandbox_base_container_image"),
	"sandbox_runtime_container_image":        refusedImage("sandbox_runtime_container_image"),
	"mcp_config":                             effectOfToolServers,
	"search_api_key":                         effectOfSearchKey,
	"sandbox_api_key":                        effectOfSandboxKey,
	"max_budget_per_task":                    effectOfBudget,
	"email":                                  effectOfEmail,
	"email_verified":                         kept("email_verified", func(s api.Settings) bool { return s.EmailVerified != nil && *s.EmailVerified }),
	"git_user_name":                          effectOfGitName,
	"git_user_email":                         effectOfGitEmail,
}

// Every field of the settings has an effect, and a test that shows it.
func TestSettingsTakeEffect(t *testing.T) {
	t.Parallel()
	l := newLab(t, effectConfig)
	fields := reflect.TypeFor[api.SettingsInput]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		f := effects[name]
		if f == nil {
			t.Errorf("nobody shows what %s does", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, l)
		})
	}
}

// hello is a mind that answers at once.
func hello(llmtest.Asked) llmtest.Reply { return llmtest.Reply{Text: "Hello."} }

// first is what the model was shown for a first message.
func (p *person) first() llmtest.Asked {
	p.t.Helper()
	before := len(p.requests())
	id := p.begin("Hello?")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	return p.requests()[before]
}

func effectOfLanguage(t *testing.T, l *lab) {
	p := l.person(t, "polyglot", hello, `"language":"pt-BR"`)
	if got := p.first().System; !strings.Contains(got, "language with the tag pt-BR") {
		t.Errorf("the model is told\n%s", got)
	}
	p.set(`"language":""`)
	if got := p.first().System; strings.Contains(got, "language with the tag") {
		t.Errorf("without a language the model is told\n%s", got)
	}
}

func effectOfAgent(t *testing.T, l *lab) {
	for name, want := range map[string][]string{
		"CodeActAgent":  {"execute_bash", "think", "finish", "browser", "task_tracker", "str_replace_editor", "grep", "glob", "fetch", "skill", "delegate"},
		"ReadOnlyAgent": {"think", "finish", "task_tracker", "str_replace_editor", "grep", "glob", "fetch", "skill"},
		"BrowsingAgent": {"think", "finish", "browser", "fetch"},
	} {
		p := l.person(t, strings.ToLower(name), steps(
			shell("echo it runs"),
			use("str_replace_editor", map[string]any{"command": "create", "path": "/workspace/made", "file_text": "x"})), `"agent":"`+name+`"`)
		id := p.begin("Go.")
		p.follow(id, 0, agentIs("awaiting_user_input"))
		a := p.requests()
		if !slices.Equal(a[0].Tools, want) {
			t.Errorf("%s has the tools %v, want %v", name, a[0].Tools, want)
		}
		all := p.events(id)
		ran := strings.Contains(kinds(all), "=run") && strings.Contains(describe(all), `"content":"it runs`)
		if all := name == "CodeActAgent"; ran != all {
			t.Errorf("%s runs commands: %t", name, ran)
		}
		if edits := strings.Contains(kinds(all), "=edit"); edits && name != "CodeActAgent" {
			t.Errorf("%s writes files", name)
		}
		if name == "ReadOnlyAgent" && strings.Contains(string(a[0].Body), `"undo_edit"`) {
			t.Errorf("%s is offered edits", name)
		}
	}
}

func effectOfModel(t *testing.T, l *lab) {
	p := l.person(t, "chooser", hello)
	if a := p.first(); a.Model != "chooser" || a.Wire != llmtest.Chat {
		t.Errorf("asked for %s over %s", a.Model, a.Wire)
	}
	l.mind("chosen/later", hello)
	p.set(`"llm_model":"openai/chosen/later"`)
	p.name = "chosen/later"
	if a := p.first(); a.Model != "chosen/later" {
		t.Errorf("asked for %s", a.Model)
	}
	p.set(`"llm_model":"anthropic/chosen/later","llm_base_url":"` + l.model.URL + `"`)
	if a := p.first(); a.Wire != llmtest.Anthropic {
		t.Errorf("asked over %s", a.Wire)
	}
}

func effectOfModelKey(t *testing.T, l *lab) {
	p := l.person(t, "keyholder", hello)
	if got := p.first().Header.Get("Authorization"); got != "Bearer sk-of-keyholder" {
		t.Errorf("the key is %q", got)
	}
	if s := p.settings(); !s.LLMAPIKeySet || s.LLMAPIKey != nil {
		t.Errorf("%v %v", s.LLMAPIKeySet, s.LLMAPIKey)
	}
	p.set(`"llm_api_key":"sk-another"`)
	if got := p.first().Header.Get("Authorization"); got != "Bearer sk-another" {
		t.Errorf("the new key is %q", got)
	}
	p.set(`"llm_api_key":"","llm_base_url":"","llm_model":"anthropic/claude-sonnet-4-5"`)
	if _, err := p.client.Create(t.Context(), api.CreateConversation{}); codeOf(err) != api.CodeLLMAuthentication || statusOf(err) != http.StatusBadRequest {
		t.Errorf("without a key: %v", err)
	}
}

func effectOfModelAddress(t *testing.T, l *lab) {
	p := l.person(t, "traveller", hello)
	var mu sync.Mutex
	var keys []string
	elsewhere := llmtest.New(t, func(a llmtest.Asked) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, a.Header.Get("Authorization"))
		return llmtest.Reply{Text: "I am elsewhere."}
	})
	p.set(`"llm_base_url":"` + strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1) + `/some/where/v1"`)
	if s := p.settings(); s.LLMAPIKeySet {
		t.Error("the key went along to another host")
	}
	id := p.begin("Hello?")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if got := describe(p.events(id)); !strings.Contains(got, "I am elsewhere.") || len(p.requests()) != 0 {
		t.Errorf("%s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(keys) != 1 || strings.Contains(keys[0], "sk-of-traveller") {
		t.Errorf("it was shown %q", keys)
	}
}

// kept is a switch whose effect is somewhere else, in the page or at the git
// providers: here it is stored for one user, and for no other.
func kept(field string, read func(api.Settings) bool) func(*testing.T, *lab) {
	return func(t *testing.T, l *lab) {
		p, other := l.person(t, "switch-"+strings.ReplaceAll(field, "_", "-"), nil), l.person(t, "other-"+strings.ReplaceAll(field, "_", "-"), nil)
		before := read(other.settings())
		for _, on := range []bool{true, false, true} {
			p.set(fmt.Sprintf("%q:%t", field, on))
			if read(p.settings()) != on || read(other.settings()) != before {
				t.Errorf("%t is not kept, or for others too", on)
			}
		}
	}
}

func refusedImage(field string) func(*testing.T, *lab) {
	return func(t *testing.T, l *lab) {
		p := l.person(t, strings.ReplaceAll(field, "_", "-"), hello, `"`+field+`":"debian:bookworm"`)
		_, err := p.client.Create(t.Context(), api.CreateConversation{InitialUserMsg: api.Some("Hello?")})
		if statusOf(err) != http.StatusBadRequest || codeOf(err) != api.CodeSandboxImage || !strings.Contains(err.Error(), "base image and the runtime image") {
			t.Errorf("%v", err)
		}
		if page, err := p.client.Conversations(t.Context(), nil); err != nil || len(page.Results) != 0 {
			t.Errorf("something was made: %+v %v", page, err)
		}
		p.set(`"` + field + `":""`)
		p.first()
	}
}

func effectOfToolServers(t *testing.T, l *lab) {
	var mu sync.Mutex
	keys := map[string]bool{}
	site := toolSite(t, func(h http.Header) {
		mu.Lock()
		defer mu.Unlock()
		keys[h.Get("Authorization")] = true
	})
	p := l.person(t, "toolmaker", steps(use("parrot", map[string]any{"words": "land ahoy"})),
		fmt.Sprintf(`"mcp_config":{"shttp_servers":[{"url":%q,"api_key":"sk-of-the-parrot"}]}`, site))
	if m := p.settings().MCPConfig; m == nil || len(m.SHTTPServers) != 1 || m.SHTTPServers[0].APIKey == nil || *m.SHTTPServers[0].APIKey != api.Masked {
		t.Errorf("%+v", m)
	}
	id := p.begin("Go.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if all := p.requests(); !slices.Contains(all[0].Tools, "parrot") || !strings.Contains(results(all[1])[0].text, "The parrot says: land ahoy") {
		t.Errorf("%v %v", all[0].Tools, results(all[1]))
	}
	if got := p.events(id); !strings.Contains(kinds(got), "call_tool_mcp =mcp") {
		t.Errorf("%s", kinds(got))
	}
	mu.Lock()
	if len(keys) != 1 || !keys["Bearer sk-of-the-parrot"] {
		t.Errorf("the server was shown %v", keys)
	}
	mu.Unlock()
	if text := describe(p.events(id)); strings.Contains(text, "sk-of-the-parrot") {
		t.Errorf("the key is in the log: %s", text)
	}
	p.set(`"agent":"ReadOnlyAgent"`)
	if got := p.first().Tools; slices.Contains(got, "parrot") {
		t.Errorf("an agent that only reads has %v", got)
	}
}

func effectOfSearchKey(t *testing.T, l *lab) {
	p := l.person(t, "searcher", steps(use("web_search", map[string]any{"query": "how to tie a bowline"})))
	if got := p.first().Tools; slices.Contains(got, "web_search") {
		t.Errorf("without a key there is a search among %v", got)
	}
	p.set(`"search_api_key":"tvly-of-searcher"`)
	if s := p.settings(); !s.SearchAPIKeySet || s.SearchAPIKey != nil {
		t.Errorf("%v %v", s.SearchAPIKeySet, s.SearchAPIKey)
	}
	id := p.begin("Go.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	all := p.requests()
	if got := results(all[len(all)-1]); len(got) != 1 || !strings.Contains(got[0].text, "All about knots.") {
		t.Errorf("%v", got)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.searched) != 1 || !strings.HasPrefix(l.searched[0], "/search Bearer tvly-of-searcher ") || !strings.Contains(l.searched[0], "how to tie a bowline") {
		t.Errorf("the engine was asked %q", l.searched)
	}
}

func effectOfSandboxKey(t *testing.T, l *lab) {
	p := l.person(t, "remote", shellEnvironment, `"sandbox_api_key":"sk-of-the-sandbox"`)
	if s := p.settings(); !s.SandboxAPIKeySet || s.SandboxAPIKey != nil {
		t.Errorf("%v %v", s.SandboxAPIKeySet, s.SandboxAPIKey)
	}
	id := p.begin("Go.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if got := observed(t, p.events(id), "run"); strings.Contains(got, "sk-of-the-sandbox") || !strings.Contains(got, "PATH=") {
		t.Errorf("inside: %s", got)
	}
}

// shellEnvironment looks at what a command sees of its surroundings.
var shellEnvironment = steps(shell("env"))

func effectOfEmail(t *testing.T, l *lab) {
	p := l.person(t, "writer", nil, `"email":"writer@example.org"`)
	if s := p.settings(); s.Email == nil || *s.Email != "writer@example.org" {
		t.Errorf("%v", s.Email)
	}
	if code, text, _ := p.raw("POST", "/api/settings", `{"email":"nobody"}`); code != http.StatusUnprocessableEntity || !strings.Contains(text, `"email"`) {
		t.Errorf("%d %s", code, text)
	}
}
