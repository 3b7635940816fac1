package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// approvals are what waits for the person.
func (p *person) approvals(id string) api.Approvals {
	p.t.Helper()
	code, text, _ := p.raw("GET", "/api/conversations/"+id+"/approvals", "")
	var out api.Approvals
	if err := json.Unmarshal([]byte(text), &out); err != nil || code != http.StatusOK {
		p.t.Fatalf("%d %s %v", code, text, err)
	}
	return out
}

// waiting is the one call that waits, once it does.
func (p *person) waiting(id string, after int64) api.Approval {
	p.t.Helper()
	p.follow(id, after, agentIs("awaiting_user_confirmation"))
	all := p.approvals(id)
	if len(all.Pending) != 1 {
		p.t.Fatalf("waiting are %+v", all.Pending)
	}
	return all.Pending[0]
}

// decide answers, and gives the status and the body.
func (p *person) decide(id, body string) (int, string) {
	p.t.Helper()
	code, text, _ := p.raw("POST", "/api/conversations/"+id+"/approvals", body)
	return code, text
}

// answer answers in a way that must be accepted.
func (p *person) answer(id, body string) {
	p.t.Helper()
	if code, text := p.decide(id, body); code != http.StatusOK || strings.TrimSpace(text) != `{"success":true}` {
		p.t.Fatalf("%s: %d %s", body, code, text)
	}
}

// last is the number of the newest event.
func (p *person) last(id string) int64 {
	p.t.Helper()
	all := p.events(id)
	return all[len(all)-1].ID
}

// confirm is the setting that makes calls wait; twice is a mind with two of them.
const confirm = `"confirmation_mode":true`

var twice = steps(shell("echo one >> made; cat made"), shell("echo two >> made; cat made"))

// What a person may answer when a call waits, and what becomes of it.
func TestApprovalsOverHTTP(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	for name, f := range map[string]func(*testing.T, *lab){
		"accept":                       acceptCall,
		"reject ends the turn":         rejectCall,
		"reject with a reason goes on": rejectWithReason,
		"changed arguments":            changeArguments,
		"changed arguments that the tool cannot take": changeToNonsense,
		"always":            allowAlways,
		"by the legacy way": answerAsLegacyClients,
		"refusals":          refuseNonsense,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, l)
		})
	}
}

// acceptCall: it runs, once it is allowed and not before.
func acceptCall(t *testing.T, l *lab) {
	p := l.person(t, "accept", twice, confirm)
	id := p.begin("Go.")
	a := p.waiting(id, 0)
	if a.Tool != "execute_bash" || !strings.Contains(string(a.Arguments), "echo one") || a.Risk != -1 || a.Deadline != nil || a.EventID == 0 || a.CallID == "" {
		t.Errorf("%+v", a)
	}
	if got := p.events(id); strings.Contains(kinds(got), "=run") {
		t.Errorf("it ran before it was allowed: %s", describe(got))
	}
	at := p.last(id)
	p.answer(id, `{"call_id":"`+a.CallID+`","decision":"accept"}`)
	next := p.waiting(id, at)
	if next.CallID == a.CallID || !strings.Contains(string(next.Arguments), "echo two") {
		t.Errorf("%+v", next)
	}
	if got := observed(t, p.events(id), "run"); got != "one\n" && got != "one" {
		t.Errorf("%q", got)
	}
	at = p.last(id)
	p.answer(id, `{"decision":"accept"}`) // there is only one it can be about
	p.follow(id, at, agentIs("awaiting_user_input"))
	if got := strings.TrimSpace(observed(t, p.events(id), "run")); got != "one\ntwo" {
		t.Errorf("%q", got)
	}
}

// rejectCall: without a reason there is nothing to go on with.
func rejectCall(t *testing.T, l *lab) {
	p := l.person(t, "reject", twice, confirm)
	id := p.begin("Go.")
	p.waiting(id, 0)
	p.answer(id, `{"decision":"reject"}`)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	got := p.events(id)
	if !strings.Contains(kinds(got), "=user_rejected") || strings.Contains(kinds(got), "=run") || len(p.requests()) != 1 {
		t.Errorf("%s", describe(got))
	}
	if more := p.approvals(id); len(more.Pending) != 0 {
		t.Errorf("%+v", more)
	}
}

// rejectWithReason: the agent learns why, and goes on.
func rejectWithReason(t *testing.T, l *lab) {
	p := l.person(t, "because", func(a llmtest.Asked) llmtest.Reply {
		if got := results(a); len(got) > 0 {
			return llmtest.Reply{Text: "I was told: " + got[0].text}
		}
		return calls(a, shell("make release"))
	}, confirm)
	id := p.begin("Go.")
	p.waiting(id, 0)
	p.answer(id, `{"decision":"reject","reason":"Not on a Friday."}`)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if got := describe(p.events(id)); !strings.Contains(got, "I was told: ") || strings.Count(got, "Not on a Friday.") < 2 {
		t.Errorf("%s", got)
	}
}

// changeArguments: what the person wrote is run, and the model knows.
func changeArguments(t *testing.T, l *lab) {
	p := l.person(t, "changed", steps(shell("echo as the model wrote it")), confirm)
	id := p.begin("Go.")
	p.waiting(id, 0)
	p.answer(id, `{"decision":"accept","arguments":{"command":"echo as the person wrote it"}}`)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if got := observed(t, p.events(id), "run"); !strings.Contains(got, "as the person wrote it") || strings.Contains(got, "as the model") {
		t.Errorf("%q", got)
	}
	all := p.requests()
	if len(all) != 2 || !strings.Contains(string(all[1].Body), "as the person wrote it") {
		t.Errorf("the model does not know what was done")
	}
}

// changeToNonsense: arguments that the tool cannot take are a result to learn from.
func changeToNonsense(t *testing.T, l *lab) {
	p := l.person(t, "misfit", steps(shell("echo never")), confirm)
	id := p.begin("Go.")
	p.waiting(id, 0)
	p.answer(id, `{"decision":"accept","arguments":{"commando":7}}`)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if got := p.events(id); !strings.HasSuffix(kinds(got), "run =error message") || !strings.Contains(observed(t, got, "error"), "command") {
		t.Errorf("%s", describe(got))
	}
}

// allowAlways: what is like the first call does not wait any more, and nothing else.
func allowAlways(t *testing.T, l *lab) {
	p := l.person(t, "always", steps(shell("git status --short one"), shell("git status --short two"), shell("git push --force")), confirm)
	id := p.begin("Go.")
	a := p.waiting(id, 0)
	if a.Pattern == nil {
		t.Fatalf("nothing is proposed: %+v", a)
	}
	at := p.last(id)
	p.answer(id, `{"decision":"always"}`)
	next := p.waiting(id, at) // the second is like the first, the third is not
	if !strings.Contains(string(next.Arguments), "git push") || strings.Count(kinds(p.events(id)), "=run") != 2 {
		t.Errorf("%+v\n%s", next, kinds(p.events(id)))
	}
	if got := p.approvals(id); len(got.Allowed) != 1 || got.Allowed[0] != *a.Pattern {
		t.Errorf("%+v", got)
	}
}

// answerAsLegacyClients do: by the state of the agent.
func answerAsLegacyClients(t *testing.T, l *lab) {
	p := l.person(t, "legacy", twice, confirm)
	id := p.begin("Go.")
	p.waiting(id, 0)
	at := p.last(id)
	p.post("/api/conversations/"+id+"/events", `{"action":"change_agent_state","args":{"agent_state":"user_confirmed"}}`)
	p.waiting(id, at)
	at = p.last(id)
	p.post("/api/conversations/"+id+"/events", `{"action":"change_agent_state","args":{"agent_state":"user_rejected"}}`)
	p.follow(id, at, agentIs("awaiting_user_input"))
	if got := kinds(p.events(id)); strings.Count(got, "=run") != 1 || strings.Count(got, "=user_rejected") != 1 {
		t.Errorf("%s", got)
	}
}

// refuseNonsense: what is no answer leaves the call waiting.
func refuseNonsense(t *testing.T, l *lab) {
	p := l.person(t, "refusals", twice, confirm)
	id := p.begin("Go.")
	p.waiting(id, 0)
	p.refusals(id)
}

// An answer that does not come in time is the one that the operator chose.
func TestApprovalInTime(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]string{"accept": "run =run message", "reject": "run =user_rejected message"} {
		t.Run(choice, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "", "--approval-timeout", "1ms", "--approval-default", choice)
			p := l.person(t, "silent", steps(shell("echo it ran")), `"confirmation_mode":true`)
			id := p.begin("Go.")
			p.follow(id, 0, agentIs("awaiting_user_input"))
			got := p.events(id)
			if !strings.HasSuffix(kinds(got), want) || !slices.ContainsFunc(got, agentIs("awaiting_user_confirmation")) {
				t.Errorf("%s", describe(got))
			}
			if told := strings.Contains(describe(got), "No decision in time."); told != (choice == "reject") {
				t.Errorf("the agent is told so: %t", told)
			}
		})
	}
}

// refusals are answers that are none, while one call waits.
func (p *person) refusals(id string) {
	p.t.Helper()
	other := p.lab.person(p.t, "stranger", nil)
	for _, method := range []string{"GET", "POST"} {
		if code, text, _ := other.raw(method, "/api/conversations/"+id+"/approvals", map[string]string{"POST": `{"decision":"accept"}`}[method]); code != http.StatusNotFound {
			p.t.Errorf("%s by somebody else: %d %s", method, code, text)
		}
		if code, text, _ := p.raw(method, "/api/conversations/unheard-of/approvals", map[string]string{"POST": `{"decision":"accept"}`}[method]); code != http.StatusNotFound {
			p.t.Errorf("%s of none: %d %s", method, code, text)
		}
	}
	for body, field := range map[string]string{
		``:                     "body",
		`[]`:                   "body",
		`{}`:                   "decision",
		`{"decision":"maybe"}`: "decision",
		`{"decision":7}`:       "decision",
		`{"decision":"accept","pattern":"git *"}`:          "pattern",
		`{"decision":"always","pattern":""}`:               "pattern",
		`{"decision":"always","pattern":"fetch"}`:          "pattern",
		`{"decision":"reject","arguments":{"command":""}}`: "arguments",
		`{"decision":"accept","arguments":"ls"}`:           "arguments",
		`{"decision":"accept","until":"tomorrow"}`:         "until",
	} {
		if code, text := p.decide(id, body); code != http.StatusUnprocessableEntity || !strings.Contains(text, `"`+field+`"`) {
			p.t.Errorf("%s: %d %s", body, code, text)
		}
	}
	if code, text := p.decide(id, `{"decision":"accept","call_id":"another"}`); code != http.StatusConflict {
		p.t.Errorf("a call that does not wait: %d %s", code, text)
	}
	if got := p.approvals(id); len(got.Pending) != 1 {
		p.t.Errorf("one of them was taken for an answer: %+v", got)
	}
	p.answer(id, `{"decision":"reject"}`)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if code, text := p.decide(id, `{"decision":"accept"}`); code != http.StatusConflict {
		p.t.Errorf("nothing waits: %d %s", code, text)
	}
}

// toolSite is a tool server at an address, with one tool that says what it was told.
func toolSite(t *testing.T, seen func(http.Header)) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "parrot", Version: "1"}, nil)
	type words struct {
		Words string `json:"words"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "parrot", Description: "Says it again."}, func(_ context.Context, _ *sdk.CallToolRequest, a words) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "The parrot says: " + a.Words}}}, nil, nil
	})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})
	return website(t, func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			seen(r.Header.Clone())
		}
		h.ServeHTTP(w, r)
	})
}

// In confirmation mode without an analyzer everything that does something waits:
// commands, edits, the browser and tools of others. Thinking does not.
func TestConfirmationModeCoversAllTools(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	site := toolSite(t, nil)
	for tool, c := range map[string]struct {
		call  llm.Call
		waits bool
	}{
		"execute_bash":       {shell("touch made"), true},
		"str_replace_editor": {use("str_replace_editor", map[string]any{"command": "create", "path": "/workspace/made", "file_text": "x"}), true},
		"browser":            {use("browser", map[string]any{"code": `goto("http://127.0.0.1:1/")`}), true},
		"fetch":              {use("fetch", map[string]any{"url": "http://127.0.0.1:1/"}), true},
		"parrot":             {use("parrot", map[string]any{"words": "hello"}), true},
		"delegate":           {use("delegate", map[string]any{"agent": "CodeActAgent", "inputs": map[string]any{"task": "Do it for me."}}), true},
		"think":              {use("think", map[string]any{"thought": "Hm."}), false},
		"finish":             {use("finish", map[string]any{"message": "That is all."}), false},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			p := l.person(t, "confirm-"+strings.ReplaceAll(tool, "_", "-"), steps(c.call), `"confirmation_mode":true`, fmt.Sprintf(`"mcp_config":{"shttp_servers":[%q]}`, site))
			id := p.begin("Go.")
			var state string
			p.follow(id, 0, func(it client.LegacyItem) bool {
				for _, s := range []string{"awaiting_user_confirmation", "awaiting_user_input", "finished", "error"} {
					if agentIs(s)(it) && len(p.requests()) > 0 {
						state = s
					}
				}
				return state != ""
			})
			if (state == "awaiting_user_confirmation") != c.waits || state == "error" {
				t.Fatalf("the agent is %s:\n%s", state, describe(p.events(id)))
			}
			if !c.waits {
				return
			}
			if a := p.approvals(id).Pending; len(a) != 1 || a[0].Tool != tool {
				t.Errorf("%+v", a)
			}
			if got := describe(p.events(id)); !strings.Contains(got, `"confirmation_state":"awaiting_confirmation"`) {
				t.Errorf("clients are not told that it waits: %s", got)
			}
		})
	}
}
