package httpapi

import (
	"slices"
	"strings"
	"testing"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// choosing lets a conversation go on with models of acme and the built-in one.
var choosing = tune{rules: func(c *usecase.Config) {
	c.Models.Other = func(_ settings.Settings, model string) string {
		if !strings.HasPrefix(model, "acme/") && model != keyless {
			return model + " is at another provider."
		}
		return ""
	}
}}

func overridden(events []session.Payload) []session.Overridden {
	var out []session.Overridden
	for _, p := range events {
		if o, ok := p.(session.Overridden); ok {
			out = append(out, o)
		}
	}
	return out
}

// Model and budget are chosen one by one, survive, and are given back to the settings.
func TestOverrides(t *testing.T) {
	r := newRig(t, choosing)
	r.settle("ada", "bob")
	id := r.create(`{}`)
	path := "/api/conversations/" + id + "/overrides"
	for _, c := range []struct {
		body string
		want string
	}{
		{`{}`, `{"llm_model":null,"max_budget_per_task":null,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"llm_model":"acme/priced"}`, `{"llm_model":"acme/priced","max_budget_per_task":null,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"max_budget_per_task":2.5}`, `{"llm_model":"acme/priced","max_budget_per_task":2.5,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"llm_model":"scripted/demo"}`, `{"llm_model":"scripted/demo","max_budget_per_task":2.5,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"llm_model":"scripted/demo","max_budget_per_task":2.5}`, `{"llm_model":"scripted/demo","max_budget_per_task":2.5,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"max_budget_per_task":0}`, `{"llm_model":"scripted/demo","max_budget_per_task":0,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"llm_model":null,"max_budget_per_task":1e30}`, `{"llm_model":null,"max_budget_per_task":9000000000,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"llm_model":null,"max_budget_per_task":null}`, `{"llm_model":null,"max_budget_per_task":null,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"llm_model":"acme/unpriced"}`, `{"llm_model":"acme/unpriced","max_budget_per_task":null,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"llm_model":"","reasoning_effort":"high"}`, `{"llm_model":null,"max_budget_per_task":null,"reasoning_effort":"high","plan_mode":false,"approval":null}`},
		{`{"reasoning_effort":null}`, `{"llm_model":null,"max_budget_per_task":null,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"plan_mode":true}`, `{"llm_model":null,"max_budget_per_task":null,"reasoning_effort":null,"plan_mode":true,"approval":null}`},
		{`{"llm_model":"scripted/demo"}`, `{"llm_model":"scripted/demo","max_budget_per_task":null,"reasoning_effort":null,"plan_mode":true,"approval":null}`},
		{`{"plan_mode":false,"llm_model":null}`, `{"llm_model":null,"max_budget_per_task":null,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
		{`{"approval":"always"}`, `{"llm_model":null,"max_budget_per_task":null,"reasoning_effort":null,"plan_mode":false,"approval":"always"}`},
		{`{"approval":null}`, `{"llm_model":null,"max_budget_per_task":null,"reasoning_effort":null,"plan_mode":false,"approval":null}`},
	} {
		for _, a := range []answer{r.do("PUT", path, c.body), r.do("GET", path, "")} {
			if a.want(t, 200); strings.TrimSpace(a.body) != c.want {
				t.Errorf("%s: %s, want %s", c.body, a.body, c.want)
			}
		}
	}
	if n := len(overridden(r.events(id))); n != 14 { // what changes nothing is not recorded
		t.Errorf("%d changes are recorded", n)
	}
	r.as("bob", "PUT", path, `{}`).want(t, 404)
	r.as("bob", "GET", path, "").want(t, 404)
}

// What could not be kept is refused in a sentence, and nothing changes.
func TestOverridesThatCannotBe(t *testing.T) {
	r := newRig(t, choosing)
	r.settle("ada")
	id := r.create(`{}`)
	path := "/api/conversations/" + id + "/overrides"
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{`{"llm_model":"other/model"}`, 400, "other/model is at another provider."},
		{`{"llm_model":"acme/unpriced","max_budget_per_task":1}`, 400, "price of acme/unpriced is unknown"},
		{`{"max_budget_per_task":-1}`, 422, "max_budget_per_task"},
		{`{"llm_model":7}`, 422, "llm_model"},
		{`{"reasoning_effort":"extreme"}`, 422, "reasoning_effort"},
		{`{"reasoning_effort":""}`, 422, "reasoning_effort"},
	} {
		r.do("PUT", path, c.body).want(t, c.status, c.says)
	}
	r.do("PUT", path, `{"llm_model":"acme/unpriced"}`).want(t, 200)
	r.do("PUT", path, `{"max_budget_per_task":1}`).want(t, 400, api.CodePriceUnknown)
	if got := overridden(r.events(id)); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// A limit of the server's needs a price too.
func TestOverridesUnderALimit(t *testing.T) {
	r := newRig(t, choosing, tune{config: func(c *Config) { c.Account.Usage.Limit = 1e9 }})
	r.settle("ada")
	id := r.create(`{}`)
	r.do("PUT", "/api/conversations/"+id+"/overrides", `{"llm_model":"acme/unpriced"}`).want(t, 400, api.CodePriceUnknown)
}

// A conversation that its budget stopped goes on with a larger one, and only then.
func TestOverridesGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		body, settings string
		goesOn         bool
	}{
		"more":         {`{"max_budget_per_task":2}`, `{}`, true},
		"not enough":   {`{"max_budget_per_task":1}`, `{}`, false},
		"no limit":     {`{"max_budget_per_task":null}`, `{}`, true},
		"the settings": {`{"max_budget_per_task":null}`, `{"max_budget_per_task":1}`, false},
		"the same":     {`{"max_budget_per_task":0.5}`, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, choosing)
			r.settle("ada")
			id := session.ID(r.create(`{"initial_user_msg":"go"}`))
			r.do("POST", "/api/settings", c.settings).want(t, 200)
			path := "/api/conversations/" + string(id) + "/overrides"
			r.do("PUT", path, `{"max_budget_per_task":0.5}`).want(t, 200)
			for _, rule := range []func(session.State) ([]session.Payload, error){
				func(s session.State) ([]session.Payload, error) { return s.Take("loop") },
				func(s session.State) ([]session.Payload, error) {
					return s.Prepared(s.Claim, session.WorkspaceReady{})
				},
				func(s session.State) ([]session.Payload, error) { return s.BeginTurn(s.Claim) },
				func(s session.State) ([]session.Payload, error) {
					return s.AskModel(s.Claim, session.ModelAsked{Call: "m", Reserved: 1e9}, nil)
				},
				func(s session.State) ([]session.Payload, error) {
					return s.AskFailed(s.Claim, "m", "network", "gone", 1e9, false)
				},
				func(s session.State) ([]session.Payload, error) {
					return s.EndTurn(s.Claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentError, ErrorID: api.CodeBudget})
				},
			} {
				if _, err := r.sessions.Update(t.Context(), id, rule); err != nil {
					t.Fatal(err)
				}
			}
			r.do("PUT", path, c.body).want(t, 200)
			resumed := slices.ContainsFunc(r.events(string(id)), func(p session.Payload) bool { return p.Kind() == session.KindResumed })
			if resumed != c.goesOn {
				t.Errorf("it goes on: %v", resumed)
			}
		})
	}
}
