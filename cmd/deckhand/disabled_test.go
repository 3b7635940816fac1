package main

import (
	"fmt"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm/llmtest"
)

// A user is disabled while agents work: they stop, with their sandboxes, before the request is answered, and begin nothing
// until the user is enabled and continues. Agents of others go on.
func TestDisabledUserStopsAgents(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	busy := func(a llmtest.Asked) llmtest.Reply {
		last := a.Messages[len(a.Messages)-1].Text
		if strings.Contains(last, "stop now") {
			return llmtest.Reply{Text: "Stopped."}
		}
		return calls(a, shell(fmt.Sprintf("sleep 0.05; echo step %d", len(a.Messages))))
	}
	bob, carol := l.person(t, "bob", busy), l.person(t, "carol", busy)
	waits := bob.begin("Hello.")
	works, other := bob.begin("Work."), carol.begin("Work.")
	for _, p := range []*person{bob, carol} {
		id := map[*person]string{bob: works, carol: other}[p]
		p.follow(id, 0, stepped)
	}
	for _, by := range []string{"api", "command"} {
		disable, enable := l.switches(t, by)
		disable("bob")
		n := len(bob.requests())
		at := carol.last(other)
		for range 3 { // others go on
			carol.follow(other, at, stepped)
			at = carol.last(other)
		}
		if more := len(bob.requests()); more > n+1 { // one may have been on its way
			t.Errorf("%s: the model was asked %d more times", by, more-n)
		}
		enable("bob")
		for _, id := range []string{waits, works} {
			c, err := bob.client.Conversation(t.Context(), id)
			if err != nil || c.Status != "STOPPED" {
				t.Errorf("%s: %s is %s, %v", by, id, c.Status, err)
			}
		}
		if by == "api" {
			at := bob.last(works)
			if err := bob.client.Say(t.Context(), works, "Go on.", ""); err != nil {
				t.Fatal(err)
			}
			bob.follow(works, at, stepped)
		}
	}
	at := carol.last(other)
	if err := carol.client.Say(t.Context(), other, "stop now", ""); err != nil {
		t.Fatal(err)
	}
	carol.follow(other, at, agentIs("awaiting_user_input"))
}

// stepped is the result of a command.
func stepped(it client.LegacyItem) bool { return it.Event != nil && it.Event.Observation == "run" }

// switches are the two ways to disable and enable a user.
func (l *lab) switches(t *testing.T, by string) (disable, enable func(string)) {
	t.Helper()
	change := func(to bool) func(string) {
		return func(name string) {
			t.Helper()
			var err error
			if by == "api" {
				_, err = l.client.PatchUser(t.Context(), name, api.PatchUser{Disabled: api.Some(to)})
			} else {
				var out []byte
				if out, err = process("user", map[bool]string{true: "disable", false: "enable"}[to], name, "--data-dir", l.dir).CombinedOutput(); err != nil {
					t.Log(string(out))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return change(true), change(false)
}
