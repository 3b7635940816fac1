package httpapi

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

func TestCreateAnswer(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	a := r.do("POST", toCreate, `{"conversation_id":"c1"}`).want(t, 200)
	if a.body != `{"status":"ok","conversation_id":"c1","message":null,"conversation_status":"STARTING"}` {
		t.Errorf("%s", a.body)
	}
	if id := r.create(`{}`); !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) {
		t.Errorf("id %q", id)
	}
	if n := len(said(r.events("c1"))); n != 0 {
		t.Errorf("an empty request said %d things", n)
	}
}

// created is what a request made: the first event and what was said.
func (r *rig) created(body string, header ...string) (session.Created, []session.UserSaid) {
	r.t.Helper()
	events := r.events(r.create(body, header...))
	return events[0].(session.Created), said(events)
}

const (
	aTask       = `"suggested_task":{"git_provider":"gitlab","task_type":"FAILING_CHECKS","repo":"team/task","issue_number":77,"title":"Red"}`
	aMicroagent = `"create_microagent":{"repo":"team/micro","git_provider":"bitbucket","title":"Deploying"}`
	aMessage    = `"initial_user_msg":"Hello there","repository":"team/plain","git_provider":"github","selected_branch":"dev"`
)

func TestPrecedence(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.tokens("ada", "gitlab")
	for _, c := range []struct {
		name, body                            string
		repository, provider, branch, trigger string
		says, never                           string
	}{
		{"message", `{` + aMessage + `}`, "team/plain", "github", "dev", "gui", "Hello there", "team/"},
		{"task over message", `{` + aMessage + `,` + aTask + `}`, "team/plain", "github", "dev", "suggested_task", "!77", "Hello there"},
		{"task over microagent", `{` + aMicroagent + `,` + aTask + `}`, "team/task", "gitlab", "", "suggested_task", "!77", "Deploying"},
		{"task over both", `{` + aMessage + `,` + aMicroagent + `,` + aTask + `}`, "team/plain", "github", "dev", "suggested_task", "!77", "Hello there"},
		{"microagent alone", `{` + aMicroagent + `}`, "team/micro", "bitbucket", "", "microagent_management", "Deploying", "#77"},
		{"microagent with message", `{` + aMessage + `,` + aMicroagent + `}`, "team/plain", "github", "dev", "microagent_management", "Hello there", "Deploying"},
		{"microagent with empty message", `{"initial_user_msg":"",` + aMicroagent + `}`, "team/micro", "bitbucket", "", "microagent_management", "Deploying", "#77"},
		{"microagent keeps the provider", `{"git_provider":"github","create_microagent":{"repo":"team/micro"}}`, "team/micro", "github", "", "microagent_management", "team/micro", "#77"},
		{"task without a repository", `{"initial_user_msg":"Hello there","git_provider":"github",` + aTask + `}`, "team/task", "gitlab", "", "suggested_task", "!77", "Hello there"},
		{"null task", `{` + aMessage + `,"suggested_task":null,"create_microagent":null}`, "team/plain", "github", "dev", "gui", "Hello there", "team/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := *r
			r.t = t
			got, messages := r.created(c.body)
			if got.Repository != c.repository || got.Provider != c.provider || got.Branch != c.branch || got.Trigger != c.trigger || got.Owner != "ada" {
				t.Errorf("%+v", got)
			}
			if len(messages) != 1 || !strings.Contains(messages[0].Text, c.says) || strings.Contains(messages[0].Text, c.never) {
				t.Errorf("said %+v", messages)
			}
		})
	}
}

// A suggested task belongs to its provider: the same name elsewhere is another repository.
func TestTaskOfAProviderThatIsNotConnected(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.tokens("ada", "github")
	r.do("POST", toCreate, `{`+aTask+`}`).want(t, 400, "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", "gitlab, but no token is stored")
	r.tokens("ada", "gitlab")
	r.verify = func(context.Context, settings.Settings, string, string) (string, error) { return "github", nil }
	r.do("POST", toCreate, `{`+aTask+`}`).want(t, 400, "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", "team/task at gitlab")
	if rows := r.rows("ada"); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

func TestTaskTypes(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.tokens("ada", "github")
	seen := map[string]string{}
	types := []string{"MERGE_CONFLICTS", "FAILING_CHECKS", "UNRESOLVED_COMMENTS", "OPEN_ISSUE", "OPEN_PR", "CREATE_MICROAGENT"}
	for _, kind := range types {
		_, messages := r.created(fmt.Sprintf(`{"suggested_task":{"git_provider":"github","task_type":%q,"repo":"team/app","issue_number":4711,"title":"Spinning wheel"}}`, kind))
		if len(messages) != 1 {
			t.Fatalf("%s: %+v", kind, messages)
		}
		text := messages[0].Text
		if other := seen[text]; other != "" {
			t.Errorf("%s says what %s says", kind, other)
		}
		seen[text] = kind
		for _, part := range []string{"team/app", "4711", "Spinning wheel"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not mention %s: %s", kind, part, text)
			}
		}
	}
}

// The agent hears the words of where the repository was found: elsewhere it has
// other tools.
func TestPromptsSpeakOfWhereTheRepositoryIs(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	r.verify = func(context.Context, settings.Settings, string, string) (string, error) { return "gitea", nil }
	for _, body := range []string{
		`{"create_microagent":{"repo":"team/app"}}`,
		`{"create_microagent":{"repo":"team/app","git_provider":"gitlab"}}`,
	} {
		got, messages := r.created(body)
		if len(messages) != 1 || got.Provider != "gitea" || !strings.Contains(messages[0].Text, "create_gitea_pr") || strings.Contains(messages[0].Text, "GitLab") {
			t.Errorf("%s: %+v %+v", body, got, messages)
		}
	}
}

func TestBearerIsAnAPI(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	got, _ := r.created(`{"initial_user_msg":"x"}`, "X-Session-API-Key", "", "Authorization", "Bearer "+r.keys["ada"])
	if got.Trigger != "openhands_api" {
		t.Errorf("%+v", got)
	}
}

// recorded is a trajectory of one message.
const recorded = `[{"id":1,"source":"user","action":"message","args":{"content":"Hello"}}]`

func TestWhatSurvives(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	got, messages := r.created(`{"conversation_instructions":"Be brief","replay_json":"` + strings.ReplaceAll(recorded, `"`, `\"`) + `","initial_user_msg":"Go on","image_urls":["https://h/x.png"]}`)
	if got.Instructions != "Be brief" || got.Replay != recorded {
		t.Errorf("%+v", got)
	}
	// The message comes after the replay, so it waits with it.
	if then := got.Then; len(messages) != 0 || then == nil || then.Text != "Go on" || len(then.Images) != 1 {
		t.Errorf("%+v, and then %+v", messages, then)
	}
	_, only := r.created(`{"image_urls":["https://h/x.png"]}`)
	if len(only) != 1 || len(only[0].Images) != 1 {
		t.Errorf("images alone: %+v", only)
	}
}

// The conversation's own tool servers are in the log, sealed.
func TestToolServersAreSealed(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	body := `{"conversation_id":"sealed","mcp_config":{"sse_servers":[{"url":"https://h/","api_key":"` + canary + `1"}],"stdio_servers":[{"name":"n","command":"c","args":["` + canary + `2"],"env":{"A":"` + canary + `3"}}],"shttp_servers":[{"url":"https://s/","api_key":"` + canary + `4"}]}}`
	r.create(body)
	events := r.events("sealed")
	for _, e := range events {
		b, err := session.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), canary) {
			t.Errorf("in clear: %s", b)
		}
	}
	sealed := events[0].(session.Created).MCP
	if strings.Contains(string(sealed), canary) {
		t.Error("in clear inside the sealed bytes")
	}
	plain, err := r.api.Retries.Seal.Open(t.Context(), "ada", "conversation.sealed.mcp_config", sealed)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 4; n++ {
		if !strings.Contains(string(plain), fmt.Sprint(canary, n)) {
			t.Errorf("secret %d is lost: %s", n, plain)
		}
	}
	if _, err := r.api.Retries.Seal.Open(t.Context(), "bob", "conversation.sealed.mcp_config", sealed); err == nil {
		t.Error("it opens for another user")
	}
	// The body has secrets in it, so it is recognised by a digest.
	r.do("POST", toCreate, body).want(t, 200)
	r.do("POST", toCreate, strings.Replace(body, canary+"3", canary+"5", 1)).want(t, 409)
	r.logsAreClean()
}

func (r *rig) logsAreClean() {
	r.t.Helper()
	if strings.Contains(r.logs.String(), canary) {
		r.t.Error("the log shows a secret")
	}
}

func TestSameIDTwice(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	body := `{"conversation_id":"mine","initial_user_msg":"hello","image_urls":["https://h/x.png"]}`
	first := r.do("POST", toCreate, body).want(t, 200)
	again := r.do("POST", toCreate, body).want(t, 200)
	spelled := r.do("POST", toCreate, ` { "image_urls" : ["https:\/\/h/x.png"], "initial_user_msg":"h\u0065llo" ,"conversation_id":"mine"}`).want(t, 200)
	if first.body != again.body || first.body != spelled.body {
		t.Errorf("%s\n%s\n%s", first.body, again.body, spelled.body)
	}
	taken := []string{`"status":"error"`, api.CodeConversationTaken}
	r.do("POST", toCreate, `{"conversation_id":"mine","initial_user_msg":"other"}`).want(t, 409, taken...)
	r.do("POST", toCreate, `{"conversation_id":"mine"}`).want(t, 409, taken...)
	theirs := r.as("bob", "POST", toCreate, body).want(t, 409, taken...)
	if strings.Contains(theirs.body, "ada") || strings.Contains(theirs.body, "hello") {
		t.Errorf("it tells whose: %s", theirs.body)
	}
	if n := len(said(r.events("mine"))); n != 1 || len(r.rows("ada")) != 1 || len(r.rows("bob")) != 0 {
		t.Errorf("%d messages, %+v", n, r.rows("ada"))
	}
	// What settings say now does not matter for what exists.
	r.do("POST", "/api/settings", `{"llm_model":"`+priced+`"}`).want(t, 200)
	r.do("POST", toCreate, body).want(t, 200)
	// A deleted conversation's id is not given away again.
	r.do("DELETE", toCreate+"/mine", "").want(t, 200, "true")
	r.do("POST", toCreate, body).want(t, 409, taken...)
	r.as("bob", "POST", toCreate, body).want(t, 409, taken...)
}

// A request that lost a race is answered like one that came second.
func TestSameIDAtOnce(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	answers := make(chan answer, 40)
	for i := range 40 {
		user := "ada"
		if i%2 == 1 {
			user = "bob"
		}
		go func() { answers <- r.as(user, "POST", toCreate, `{"conversation_id":"race","initial_user_msg":"hi"}`) }()
	}
	count := map[int]int{}
	for range 40 {
		count[(<-answers).status]++
	}
	if count[200] != 20 || count[409] != 20 || len(r.rows("ada"))+len(r.rows("bob")) != 1 || len(said(r.events("race"))) != 1 {
		t.Errorf("%v, %+v", count, append(r.rows("ada"), r.rows("bob")...))
	}
}

// What keeps a conversation from being created is said with its code, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	unreachable := errors.New("Unable to access repo team/app (github: no public repository with this name, and no token is stored)") //nolint:staticcheck // a sentence for people
	for _, c := range []struct {
		name, settings, body, code, message string
		images                              bool
		verify                              error
	}{
		{name: "no settings", body: `{}`, code: "CONFIGURATION$SETTINGS_NOT_FOUND", message: "Settings not found"},
		{name: "no key", settings: `{"llm_model":"` + priced + `"}`, body: `{}`, code: "STATUS$ERROR_LLM_AUTHENTICATION", message: "API key"},
		{name: "no key for the default model", settings: `{"language":"en"}`, body: `{}`, code: "STATUS$ERROR_LLM_AUTHENTICATION", message: "API key"},
		{name: "base image", settings: `{"llm_model":"` + keyless + `","sandbox_base_container_image":"debian:13"}`, body: `{}`, code: api.CodeSandboxImage, message: "cannot run images"},
		{name: "runtime image", settings: `{"llm_model":"` + keyless + `","sandbox_runtime_container_image":"debian:13"}`, body: `{}`, code: api.CodeSandboxImage, message: "cannot run images"},
		{name: "budget without a price", settings: `{"llm_model":"` + unpriced + `","llm_api_key":"k","max_budget_per_task":5}`, body: `{}`, code: api.CodePriceUnknown, message: "prices"},
		{name: "budget 0 without a price", settings: `{"llm_model":"` + unpriced + `","llm_api_key":"k","max_budget_per_task":0}`, body: `{}`, code: api.CodePriceUnknown, message: "prices"},
		{name: "repository", settings: `{"llm_model":"` + keyless + `"}`, body: `{"repository":"team/app"}`, code: "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", message: "team/app", verify: unreachable},
		{name: "task's repository", settings: `{"llm_model":"` + keyless + `"}`, body: `{` + aTask + `}`, code: "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", message: "Unable to access", verify: unreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.verify = func(context.Context, settings.Settings, string, string) (string, error) { return "", c.verify }
			if c.settings != "" {
				r.do("POST", "/api/settings", c.settings).want(t, 200)
				r.tokens("ada", "gitlab")
			}
			before := r.everything()
			for _, header := range [][]string{nil, {"Idempotency-Key", "k"}} {
				a := r.do("POST", toCreate, c.body, header...).want(t, 400, `"status":"error"`, `"msg_id":"`+c.code+`"`, c.message)
				if c.name == "no settings" && a.body != `{"status":"error","message":"Settings not found","msg_id":"CONFIGURATION$SETTINGS_NOT_FOUND"}` {
					t.Errorf("%s", a.body)
				}
			}
			if after := r.everything(); after != before {
				t.Errorf("it left something behind:\n%s", after)
			}
		})
	}
}

// The other side of each refusal.
func TestAcceptedSettings(t *testing.T) {
	for name, body := range map[string]string{
		"key":               `{"llm_model":"` + priced + `","llm_api_key":"k"}`,
		"own address":       `{"llm_model":"` + priced + `","llm_base_url":"http://127.0.0.1:11434"}`,
		"budget with price": `{"llm_model":"` + priced + `","llm_api_key":"k","max_budget_per_task":5}`,
		"no budget":         `{"llm_model":"` + unpriced + `","llm_api_key":"k"}`,
		"cleared image":     `{"llm_model":"` + keyless + `","sandbox_base_container_image":""}`,
	} {
		r := newRig(t)
		r.do("POST", "/api/settings", body).want(t, 200)
		if a := r.do("POST", toCreate, `{}`); a.status != 200 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	r := newRig(t, tune{rules: func(c *usecase.Config) { c.SandboxImages = true }})
	r.do("POST", "/api/settings", `{"llm_model":"`+keyless+`","sandbox_base_container_image":"debian:13"}`).want(t, 200)
	r.create(`{}`)
	if r.asked.Load() != 0 {
		t.Error("a repository was looked for where none was named")
	}
}

// A stopped conversation is started under the same conditions as a new one.
func TestStart(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{}`)
	r.do("POST", toCreate+"/"+id+"/stop", "").want(t, 200, `"STOPPED"`, "stopped successfully")
	r.do("POST", toCreate+"/"+id+"/stop", "").want(t, 200, `"STOPPED"`, "was not running")
	r.do("POST", "/api/settings", `{"llm_model":"`+priced+`"}`).want(t, 200)
	r.do("POST", toCreate+"/"+id+"/start", `{}`).want(t, 400, api.CodeLLMAuthentication)
	r.settle("ada")
	r.do("POST", toCreate+"/"+id+"/start", `{"providers_set":["github"]}`).want(t, 200, `"STARTING"`)
	r.do("POST", toCreate+"/"+id+"/start", "").want(t, 200, `"STARTING"`)
	r.as("bob", "POST", toCreate+"/"+id+"/start", `{}`).want(t, 404, api.CodeConversationNotFound)
	r.as("bob", "POST", toCreate+"/"+id+"/stop", ``).want(t, 404)
	r.do("DELETE", toCreate+"/"+id, "").want(t, 200)
	for _, verb := range []string{"start", "stop"} {
		r.do("POST", toCreate+"/"+id+"/"+verb, "").want(t, 404, api.CodeConversationNotFound)
	}
	r.do("DELETE", toCreate+"/"+id, "").want(t, 404)
	r.do("GET", toCreate+"/"+id, "").want(t, 404)
	r.do("GET", toCreate+"/"+id+"/events", "").want(t, 404)
	r.do("POST", toCreate+"/"+id+"/message", `{"message":"x"}`).want(t, 404)
}

// Which conversation ids others have cannot be found out by trying many.
func TestTakenIDsCannotBeCounted(t *testing.T) {
	now := time.Now()
	r := newRig(t, tune{gate: access.Options{RatePerSecond: 1e9, Burst: 1 << 30, Now: func() time.Time { return now }}})
	r.settle("ada")
	r.settle("bob")
	r.as("bob", "POST", toCreate, `{"conversation_id":"theirs"}`).want(t, 200)
	r.do("POST", toCreate, `{"conversation_id":"mine"}`).want(t, 200)
	tried := 0
	for ; tried < 1000; tried++ {
		if a := r.do("POST", toCreate, `{"conversation_id":"theirs"}`); a.status != 409 {
			break
		}
	}
	if tried == 0 || tried > 100 {
		t.Errorf("%d ids can be tried", tried)
	}
	taken := r.do("POST", toCreate, `{"conversation_id":"theirs"}`).want(t, 429)
	free := r.do("POST", toCreate, `{"conversation_id":"free"}`).want(t, 429)
	if taken.body != free.body || taken.header.Get("Retry-After") == "" {
		t.Errorf("the answers differ: %s and %s", taken.body, free.body)
	}
	r.do("POST", toCreate, `{"conversation_id":"mine"}`).want(t, 200) // one's own is no guess
	r.do("POST", toCreate, `{}`).want(t, 200)
	r.do("POST", toCreate, `{"initial_user_msg":"x"}`, "Idempotency-Key", "k").want(t, 200)
	r.as("bob", "POST", toCreate, `{"conversation_id":"more"}`).want(t, 200)
	now = now.Add(time.Minute)
	r.do("POST", toCreate, `{"conversation_id":"free"}`).want(t, 200)
}
