package tasks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/tool"
	"deckhand/internal/tool/tasks"
	"deckhand/internal/tool/tooltest"
)

func TestSpec(t *testing.T) {
	tooltest.Spec(t, tasks.Tool{}.Spec(),
		[]string{`{"command":"view"}`, `{"command":"plan","task_list":[]}`, `{"command":"plan","task_list":[{"id":"1","title":"a","status":"todo","notes":"n"}]}`},
		[]string{`{}`, `{"command":"drop"}`, `{"command":"plan","task_list":[{"id":"1","title":"a","status":"maybe"}]}`, `{"command":"plan","task_list":[{"id":"1","status":"todo"}]}`})
	if s := (tasks.Tool{}).Spec(); !s.Harmless || s.Name != "task_tracker" {
		t.Errorf("got %+v", s)
	}
}

func run(t *testing.T, args string, previous json.RawMessage) tool.Result {
	t.Helper()
	r, err := tasks.Tool{}.Run(t.Context(), nil, tool.Call{Args: json.RawMessage(args), Previous: previous})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPlanAndView(t *testing.T) {
	const none = `{"command":"view","task_list":[]}`
	r := run(t, `{"command":"view"}`, nil)
	if r.Failed || !strings.Contains(r.Text, "no task list") || string(r.Details) != none {
		t.Errorf("got %+v", r)
	}
	r = run(t, `{"command":"plan","task_list":[{"id":"1","title":"find it","status":"done"},{"id":"2","title":"fix\n it","status":"in_progress","notes":"in a.go"},{"id":"3","title":"test it","status":"todo"}]}`, r.Details)
	const list = "[x] 1: find it\n[>] 2: fix it\n    in a.go\n[ ] 3: test it\n1 of 3 done."
	if r.Failed || !strings.HasSuffix(r.Text, list) {
		t.Errorf("got %s", r.Text)
	}
	const kept = `"task_list":[{"id":"1","title":"find it","status":"done","notes":""},{"id":"2","title":"fix\n it","status":"in_progress","notes":"in a.go"},{"id":"3","title":"test it","status":"todo","notes":""}]}`
	if string(r.Details) != `{"command":"plan",`+kept {
		t.Errorf("got %s", r.Details)
	}
	// A view hands the list on, so that the next one finds it too.
	for range 2 {
		if r = run(t, `{"command":"view"}`, r.Details); r.Text != list || string(r.Details) != `{"command":"view",`+kept {
			t.Errorf("got %s, %s", r.Text, r.Details)
		}
	}
	if r = run(t, `{"command":"plan","task_list":[]}`, r.Details); r.Failed || string(r.Details) != `{"command":"plan","task_list":[]}` {
		t.Errorf("got %+v", r)
	}
	if r = run(t, `{"command":"view"}`, json.RawMessage(`{"task_list":7}`)); r.Failed || string(r.Details) != none {
		t.Errorf("a list that cannot be read: %+v", r)
	}
}

func TestMistakes(t *testing.T) {
	var many []string
	for i := range 201 {
		many = append(many, fmt.Sprintf(`{"id":"%d","title":"x","status":"todo"}`, i))
	}
	for args, want := range map[string]string{
		`{`:                                  "not valid JSON",
		`{}`:                                 "no command",
		`{"command":"add"}`:                  `"add"`,
		`{"command":"plan"}`:                 "needs the argument task_list",
		`{"command":"plan","task_list":"x"}`: "must be a list",
		`{"command":"plan","task_list":[{"id":"","title":"a","status":"todo"}]}`:                                         "task 1 has no id",
		`{"command":"plan","task_list":[{"id":"1","title":" ","status":"todo"}]}`:                                        "no title",
		`{"command":"plan","task_list":[{"id":"1","title":"a","status":"later"}]}`:                                       "todo, in_progress or done",
		`{"command":"plan","task_list":[{"id":"1","title":"a"}]}`:                                                        "todo, in_progress or done",
		`{"command":"plan","task_list":[{"id":"1","title":"a","status":"todo"},{"id":"1","title":"b","status":"todo"}]}`: "two tasks",
		`{"command":"plan","task_list":[` + strings.Join(many, ",") + `]}`:                                               "at most 200",
	} {
		if r := run(t, args, nil); !r.Failed || !strings.Contains(r.Text, want) || r.Details != nil {
			t.Errorf("%.80s: got %+v, want %q", args, r, want)
		}
	}
}
