package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/risk"
	"deckhand/internal/tool"
	legacy "deckhand/internal/v0/form"
)

// This file is all that a new tool needs: what it does, what it declares, and a line
// that registers it.
func init() { tool.Register(halyard) }

// halyard hoists a flag. A red one alarms the harbour. Only one user has it, so that the
// models of other tests are not told of it.
var halyard = tool.Descriptor{
	Name:    "hoist_flag",
	Open:    func(tool.Server) tool.Tool { return halyardTool{} },
	Offered: func(c tool.Conversation) bool { return c.Owner == "bosun" },
	Rate: risk.ByArguments(func(a risk.Arguments) (risk.Rating, string) {
		if flag, _ := a.Text("flag"); flag == "white" {
			return risk.Low, "It only waves."
		}
		return risk.High, "It alarms the harbour."
	}),
	Legacy: &legacy.Form{
		Action: func(w *legacy.Writer, c legacy.Call) {
			w.Call(c, "hoist", "Hoisting a flag.")
			w.Str("colour", c.Given.Text("flag"))
			w.Rated(c)
			w.Shut('}')
		},
		Observe: func(w *legacy.Writer, r legacy.Result) {
			w.Result(r, "hoist", "The flag is up.", r.Output)
			w.Str("colour", r.Given.Text("flag"))
			w.Shut('}')
		},
	},
	Display: tool.Display{Content: tool.Code, Main: "flag", ReadOnly: true, View: func(args json.RawMessage) tool.View {
		return tool.View{Title: "hoist the " + legacy.ParseArguments(args).Text("flag") + " flag", Whole: true}
	}},
}

type halyardTool struct{}

func (halyardTool) Spec() tool.Spec {
	return tool.Spec{Name: halyard.Name, Description: "Hoists a flag.", Schema: []byte(`{"type":"object","properties":{"flag":{"type":"string"}},"required":["flag"]}`)}
}

func (halyardTool) Run(_ context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a struct{ Flag string }
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	return tool.Result{Text: "The " + a.Flag + " flag flies."}, nil
}

// A tool that is registered is offered to models, its rules decide who is asked, and all
// clients show it as it declares, without a change anywhere else.
func TestNewTool(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	p := l.person(t, "bosun", steps(use(halyard.Name, map[string]any{"flag": "white"}), use(halyard.Name, map[string]any{"flag": "red"})),
		confirm, `"security_analyzer":"rules"`)
	id := p.begin("Signal.")
	a := p.waiting(id, 0)
	if a.Tool != halyard.Name || string(a.Arguments) != `{"flag":"red"}` || a.Risk != int(risk.High) || a.Reason != "It alarms the harbour." || a.Pattern != nil {
		t.Errorf("%+v", a)
	}
	_, pending, _ := p.raw("GET", "/api/conversations/"+id+"/approvals", "")
	at := p.last(id)
	p.answer(id, `{"decision":"accept"}`)
	p.follow(id, at, agentIs("awaiting_user_input"))

	events := p.events(id)
	if got := observed(t, events, "hoist"); got != "The red flag flies." {
		t.Errorf("%q", got)
	}
	all := describe(events)
	says(t, all, `"action":"hoist","args":{"colour":"white","thought":"","security_risk":0}`,
		`"action":"hoist","args":{"colour":"red","thought":"","security_risk":2,"confirmation_state":"awaiting_confirmation"}`,
		`"observation":"hoist","content":"The white flag flies.","extras":{"colour":"white"}`)

	const display = `"display":{"content":"code","title":"hoist the red flag","main":"flag","read_only":true}`
	says(t, pending, display)
	for _, kind := range []string{"tool_called", "tool_returned"} {
		_, native, _ := p.raw("GET", "/api/conversations/"+id+"/events?"+url.Values{"format": {"deckhand"}, "include_types": {kind}, "display": {"code"}}.Encode(), "")
		says(t, native, display)
	}

	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(p.key), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command(t, "logs", id, "--server", p.base, "--key-file", key)
	if code != 0 || !strings.Contains(out, " • hoist the white flag\n") || !strings.Contains(out, " • hoist the red flag\n") || !strings.Contains(out, "? It alarms the harbour.") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if has := p.requests()[0].Tools; has[len(has)-1] != halyard.Name {
		t.Errorf("the model was told of %q", has)
	}
}
