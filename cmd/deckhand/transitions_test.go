package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"deckhand/client"
	"deckhand/internal/llm/llmtest"
)

// states are those that clients were told of, in order.
func states(items []client.LegacyItem) string {
	var out []string
	for _, it := range items {
		var extras struct {
			State string `json:"agent_state"`
		}
		if it.Event != nil && it.Event.Observation == "agent_state_changed" && json.Unmarshal(it.Event.Extras, &extras) == nil {
			out = append(out, extras.State)
		}
	}
	return strings.Join(out, " ")
}

// a transition is one thing that a client does, and the state it then waits for.
type transition struct{ do, until string }

// wish is a change of state that a client asks for.
func wish(state string) string {
	return "events " + `{"action":"change_agent_state","args":{"agent_state":"` + state + `"}}`
}

const (
	halt   = `events {"action":"change_agent_state","args":{"agent_state":"paused","now":true}}`
	greet  = `message {"message":"Hello?"}`
	closed = "stop "
	opened = "start {}"
)

// The states of the agent, as clients see them: what they do, and all the
// changes that they are told of.
func TestTransitions(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	held := func(a llmtest.Asked) llmtest.Reply { <-a.Gone; return llmtest.Reply{} }
	runs := steps(shell("echo it ran"))
	broken := func(llmtest.Asked) llmtest.Reply {
		return llmtest.Reply{Status: http.StatusUnauthorized, Message: "Who are you?"}
	}
	done := steps(use("finish", map[string]any{"message": "That is all."}))
	for name, c := range map[string]struct {
		think    mind
		settings string
		steps    []transition
		want     string
	}{
		"nothing is said": {hello, "", []transition{{"", "awaiting_user_input"}}, "loading awaiting_user_input"},
		"an answer":       {hello, "", []transition{{"", "awaiting_user_input"}, {greet, "awaiting_user_input"}}, "loading awaiting_user_input running awaiting_user_input"},
		"another message": {hello, "", []transition{{greet, "awaiting_user_input"}, {greet, "awaiting_user_input"}}, "running awaiting_user_input running awaiting_user_input"},
		"done":            {done, "", []transition{{greet, "finished"}, {greet, "finished"}}, "running finished running finished"},
		"paused":          {held, "", []transition{{greet, "running"}, {halt, "paused"}}, "running paused"},
		"paused twice":    {held, "", []transition{{greet, "running"}, {halt, "paused"}, {wish("paused"), ""}, {closed, "stopped"}}, "running paused stopped"},
		"resumed":         {held, "", []transition{{greet, "running"}, {halt, "paused"}, {wish("running"), "running"}}, "running paused running"},
		"stopped":         {held, "", []transition{{greet, "running"}, {wish("stopped"), "stopped"}}, "running stopped"},
		"closed":          {held, "", []transition{{greet, "running"}, {closed, "stopped"}, {closed, ""}, {opened, "awaiting_user_input"}}, "running stopped loading awaiting_user_input"},
		"opened again":    {hello, "", []transition{{greet, "awaiting_user_input"}, {closed, "stopped"}, {greet, "awaiting_user_input"}}, "running awaiting_user_input stopped loading running awaiting_user_input"},
		"confirmed": {runs, confirm, []transition{{greet, "awaiting_user_confirmation"}, {wish("user_confirmed"), "awaiting_user_input"}},
			"running awaiting_user_confirmation user_confirmed running awaiting_user_input"},
		"rejected": {runs, confirm, []transition{{greet, "awaiting_user_confirmation"}, {wish("user_rejected"), "awaiting_user_input"}},
			"running awaiting_user_confirmation user_rejected awaiting_user_input"},
		"rejected with a reason": {runs, confirm, []transition{{greet, "awaiting_user_confirmation"}, {`approvals {"decision":"reject","reason":"Not now."}`, "awaiting_user_input"}},
			"running awaiting_user_confirmation user_rejected running awaiting_user_input"},
		"stopped at a question": {runs, confirm, []transition{{greet, "awaiting_user_confirmation"}, {closed, "stopped"}}, "running awaiting_user_confirmation stopped"},
		"a wrong key":           {broken, "", []transition{{greet, "error"}, {greet, "error"}}, "running error running error"},
		"too many calls":        {runs, `"max_iterations":1`, []transition{{greet, "error"}, {greet, "error"}}, "running error running error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fields := []string{}
			if c.settings != "" {
				fields = append(fields, c.settings)
			}
			p := l.person(t, strings.ReplaceAll(name, " ", "-"), c.think, fields...)
			id := p.begin("")
			if c.steps[0].do != "" {
				p.follow(id, 0, agentIs("awaiting_user_input"))
			}
			for _, s := range c.steps {
				at := p.last(id)
				if s.do != "" {
					path, body, _ := strings.Cut(s.do, " ")
					p.post("/api/conversations/"+id+"/"+path, body)
				} else {
					at = 0
				}
				if s.until != "" {
					p.follow(id, at, agentIs(s.until))
				}
			}
			if got := states(p.events(id)); got != c.want && got != "loading awaiting_user_input "+c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("wishes that are none", func(t *testing.T) {
		p := l.person(t, "wishful", hello)
		id := p.idle()
		before := p.last(id)
		for state, code := range map[string]int{"loading": 422, "finished": 422, "error": 422, "rate_limited": 422, "awaiting_user_input": 422, "awaiting_user_confirmation": 422,
			"rejected": 422, "nonsense": 422, "": 422, "user_confirmed": 409, "user_rejected": 409} {
			path, body, _ := strings.Cut(wish(state), " ")
			if got, text, _ := p.raw("POST", "/api/conversations/"+id+"/"+path, body); got != code {
				t.Errorf("%q: %d %s", state, got, text)
			}
		}
		if now := p.last(id); now != before {
			t.Errorf("something came of it: %s", describe(p.events(id)))
		}
	})
}

// A conversation has a name from the start, gets one from the first message, and
// keeps the one that a person gave it.
func TestTitles(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	p := l.person(t, "namer", hello)
	title := func(id string) string {
		t.Helper()
		c, err := p.client.Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return c.Title
	}
	// told is the name that a client is told of, who follows from the start.
	told := func(id string) (name string) {
		p.follow(id, 0, func(it client.LegacyItem) bool {
			if it.Status != nil && it.Status.ConversationTitle != "" {
				name = it.Status.ConversationTitle
			}
			return name != ""
		})
		return name
	}
	id := p.idle()
	if got, want := title(id), "Conversation "+id[:5]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.ask(id, "Tie   the knots\nof the big sail.", "awaiting_user_input")
	if name := told(id); name != "Tie the knots" || title(id) != name {
		t.Errorf("clients are told %q, and it is %q", name, title(id))
	}
	long := p.begin(strings.Repeat("a long word ", 20))
	p.follow(long, 0, agentIs("awaiting_user_input"))
	if name := told(long); len([]rune(name)) > 50 || !strings.HasPrefix(name, "a long word a long") {
		t.Errorf("%q", name)
	}
	mine := p.idle()
	if err := p.client.Rename(t.Context(), mine, "  Mine  "); err != nil {
		t.Fatal(err)
	}
	p.ask(mine, "Tie the knots.", "awaiting_user_input")
	if name := told(mine); name != "Mine" || title(mine) != "Mine" {
		t.Errorf("clients are told %q, and it is %q", name, title(mine))
	}
	if code, text, _ := p.raw("PATCH", "/api/conversations/"+mine, `{"title":"   "}`); code != http.StatusUnprocessableEntity || title(mine) != "Mine" {
		t.Errorf("%d %s", code, text)
	}
}
