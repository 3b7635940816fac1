package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm/llmtest"
)

// eventSchema is the schema of events in the document that the server publishes.
func (p *person) eventSchema() *jsonschema.Resolved {
	p.t.Helper()
	_, text, _ := p.raw("GET", "/openapi.json", "")
	var doc struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "#/components/schemas/", "#/$defs/")), &doc); err != nil {
		p.t.Fatal(err)
	}
	wanted := map[string]json.RawMessage{}
	for name, s := range doc.Components.Schemas {
		if strings.HasSuffix(name, "Event") {
			wanted[name] = s
		}
	}
	raw, err := json.Marshal(map[string]any{"$ref": "#/$defs/Event", "$defs": wanted})
	if err != nil {
		p.t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		p.t.Fatal(err)
	}
	out, err := schema.Resolve(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// logged reads a conversation in the native format, page by page.
func (p *person) logged(id string) []api.Event {
	p.t.Helper()
	var out []api.Event
	for next, more := int64(0), true; more; {
		page, err := p.client.Events(p.t.Context(), id, url.Values{"start_id": {itoa(next)}, "limit": {"7"}})
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, page.Events...)
		if more = page.HasMore; more {
			next = out[len(out)-1].ID + 1
		}
	}
	return out
}

// plainJSON is a value as JSON in which equal texts are written in the same way.
func plainJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	raw, err = json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Every event of a conversation with commands, approvals, an error and a copy holds to the
// published schema, has no secret in it, and comes the same on a stream.
func nativeEvents(t *testing.T, l *lab) {
	const word = "hunter2-hunter2-hunter2"
	p := l.person(t, "native", func(a llmtest.Asked) llmtest.Reply {
		if strings.HasPrefix(a.Messages[len(a.Messages)-1].Text, "fail") {
			return llmtest.Reply{Status: 400, Message: "cannot do that"}
		}
		return obeys(a)
	}, confirm, `"secrets_store":{"custom_secrets":{"TOKEN":"`+word+`"}}`)
	id := p.begin("$ echo " + word)
	p.waiting(id, 0)
	p.answer(id, `{"decision":"accept"}`)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	last := p.last(id)
	if err := p.client.Say(t.Context(), id, "$ exit 3", ""); err != nil {
		t.Fatal(err)
	}
	p.waiting(id, last)
	last = p.last(id)
	p.answer(id, `{"decision":"reject"}`)
	p.follow(id, last, agentIs("awaiting_user_input"))
	p.ask(id, "fail", "error")
	other := p.fork(id, api.ForkConversation{})

	schema := p.eventSchema()
	seen := map[string]bool{}
	for _, one := range []string{id, other} {
		all := p.logged(one)
		for _, e := range all {
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); err != nil {
				t.Errorf("%s: %v", raw, err)
			}
			if strings.Contains(string(raw), word) {
				t.Errorf("a secret is in %s", raw)
			}
			seen[e.Kind] = true
		}
		var streamed []client.Item
		for it, err := range p.client.Follow(t.Context(), one, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if streamed = append(streamed, it); len(streamed) == len(all) {
				break
			}
		}
		for i, it := range streamed {
			if streamed, paged := plainJSON(t, it.Event), plainJSON(t, all[i]); it.ID != all[i].ID || streamed != paged {
				t.Errorf("the stream has %s, the page %s", streamed, paged)
			}
		}
	}
	if all := p.logged(other); !strings.Contains(string(all[0].Payload), `"forked":{"from":"`+id+`"`) {
		t.Errorf("the copy begins with %s", all[0].Payload)
	}
	for _, kind := range []string{"created", "user_said", "workspace_ready", "briefed", "turn_began", "model_asked", "model_answered", "model_failed", "tool_called", "tool_returned",
		"approval_asked", "approval_given", "state_changed", "turn_ended"} {
		if !seen[kind] {
			t.Errorf("there is no %s among %v", kind, seen)
		}
	}
}
