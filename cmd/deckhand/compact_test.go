package main

import (
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/llm/llmtest"
)

// A user compacts a conversation and stores custom commands. Other users have no access to either.
func TestCompactAndOwnCommands(t *testing.T) {
	t.Parallel()
	l := newLab(t, forkConfig)
	p := l.person(t, "packer", func(a llmtest.Asked) llmtest.Reply {
		if strings.Contains(a.System, "memory of a software agent") {
			return llmtest.Reply{Text: "SHORT: " + a.System[strings.LastIndex(a.System, "\n")+1:]}
		}
		return obeys(a)
	})
	other := l.person(t, "stranger", obeys)
	id := p.begin("$ echo ONE")
	p.follow(id, 0, agentIs("awaiting_user_input"))

	for what, c := range map[string]struct {
		err  error
		want int
	}{
		"too long":           {p.client.Compact(t.Context(), id, strings.Repeat("x", 4001)), 422},
		"another user":       {other.client.Compact(t.Context(), id, ""), 404},
		"no conversation":    {p.client.Compact(t.Context(), "nothing", ""), 404},
		"reserved name":      {p.client.SetOwnCommand(t.Context(), "compact", "x"), 422},
		"built-in name":      {p.client.SetOwnCommand(t.Context(), "review", "x"), 422},
		"name with a slash":  {p.client.SetOwnCommand(t.Context(), "a b", "x"), 422},
		"reserved, capitals": {p.client.SetOwnCommand(t.Context(), "Compact", "x"), 422},
		"only front matter":  {p.client.SetOwnCommand(t.Context(), "empty", "---\ndescription: x\n---\n"), 422},
		"text too long":      {p.client.SetOwnCommand(t.Context(), "long", strings.Repeat("é", 40_000)), 422},
		"no such command":    {p.client.RunCommand(t.Context(), id, api.RunCommand{Name: "standup"}, ""), 422},
		"nothing to compact": {p.client.Compact(t.Context(), p.begin(""), ""), 409},
	} {
		if got := statusOf(c.err); got != c.want {
			t.Errorf("%s: %d, want %d: %v", what, got, c.want, c.err)
		}
	}

	if err := p.client.Compact(t.Context(), id, "keep the word anchor"); err != nil {
		t.Fatal(err)
	}
	p.box.until("the summary", func() bool {
		for _, e := range p.logged(id) {
			if e.Kind == "condensed" {
				return strings.Contains(string(e.Payload), "SHORT: keep the word anchor")
			}
		}
		return false
	})
	if err := p.client.Compact(t.Context(), id, ""); statusOf(err) != 409 {
		t.Errorf("compacted twice: %v", err)
	}
	p.ask(id, "go on", "awaiting_user_input")
	if s := p.shown(); !strings.Contains(s, "SHORT: keep") || !strings.Contains(s, "echo ONE") {
		t.Errorf("the model is shown %s", s)
	}

	// The user's own commands are listed in each conversation of the user, after the built-in ones.
	if err := p.client.SetOwnCommand(t.Context(), "standup", "---\ndescription: What I did\nargument-hint: [day]\n---\n$ echo since $1"); err != nil {
		t.Fatal(err)
	}
	if err := p.client.SetOwnCommand(t.Context(), "Standup", "x"); statusOf(err) != 422 || !strings.Contains(err.Error(), "/standup") {
		t.Errorf("a name that differs only in case: %v", err)
	}
	if err := other.client.SetOwnCommand(t.Context(), "STANDUP", "x"); err != nil {
		t.Errorf("the name of another user's command: %v", err)
	}
	if err := other.client.DeleteOwnCommand(t.Context(), "STANDUP"); err != nil {
		t.Error(err)
	}
	all, err := p.client.Commands(t.Context(), id)
	if err != nil || len(all) != 3 || all[2] != (api.Command{Name: "standup", Description: "What I did", ArgumentHint: "[day]", Source: "settings"}) || all[1].Source != "builtin" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := p.client.RunCommand(t.Context(), id, api.RunCommand{Name: "standup", Arguments: api.Some("monday")}, "once"); err != nil {
		t.Fatal(err)
	}
	if err := p.client.RunCommand(t.Context(), id, api.RunCommand{Name: "standup", Arguments: api.Some("monday")}, "once"); err != nil {
		t.Errorf("sent again: %v", err)
	}
	p.box.until("the command ran", func() bool {
		return strings.Contains(p.shown(), "since monday\\n") || strings.Contains(p.shown(), "since monday")
	})
	if own, err := other.client.OwnCommands(t.Context()); err != nil || len(own) != 0 {
		t.Errorf("a stranger sees %+v, %v", own, err)
	}
	if err := other.client.DeleteOwnCommand(t.Context(), "standup"); err != nil {
		t.Error(err)
	}
	if own, err := p.client.OwnCommands(t.Context()); err != nil || len(own) != 1 || own[0].Name != "standup" {
		t.Errorf("%+v, %v", own, err)
	}
	if err := p.client.DeleteOwnCommand(t.Context(), "standup"); err != nil {
		t.Error(err)
	}
	if own, err := p.client.OwnCommands(t.Context()); err != nil || len(own) != 0 {
		t.Errorf("%+v, %v", own, err)
	}
}
