package main

import (
	"strings"
	"testing"

	"deckhand/api"
)

// The demo model shows what an agent does, on a real repository: a command, an edit, approvals, the
// change and a commit.
func TestDemoTour(t *testing.T) {
	t.Parallel()
	needLocal(t)
	b := serve(t, "", "--sandbox", "local")
	p := &person{box: b}
	t.Cleanup(p.dropAll)
	if _, err := b.client.StoreSettings(t.Context(), api.SettingsInput{LLMModel: api.Some("scripted/demo"), ConfirmationMode: api.Some(true)}); err != nil {
		t.Fatal(err)
	}
	id := b.create("Show me a demo")
	at := int64(0)
	asked := []string{}
	for range 6 {
		a := p.waiting(id, at)
		asked = append(asked, a.Tool)
		at = p.last(id)
		p.answer(id, `{"call_id":"`+a.CallID+`","decision":"accept"}`)
	}
	b.follow(id, at, agentIs("awaiting_user_input"))
	if got := strings.Join(asked, " "); got != "execute_bash str_replace_editor execute_bash execute_bash execute_bash execute_bash" {
		t.Errorf("it asked about %s", got)
	}
	var said strings.Builder
	for _, it := range p.events(id) {
		if it.Event.Observation == "run" {
			said.WriteString(it.Event.Content + "\n")
		}
	}
	holds(t, said.String(), "failed: 2 + 3 = -1", "ok: 2 + 3 = 5", "-  echo $(($1 - $2))", "+  echo $(($1 + $2))", "Add numbers in total", "Add total")
}
