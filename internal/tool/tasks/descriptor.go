package tasks

import (
	"encoding/json"
	"fmt"

	"deckhand/internal/risk"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name: Name,
	Open: func(tool.Server) tool.Tool { return Tool{} },
	Rate: risk.Fixed(risk.Low, "It only thinks, plans or ends the turn."),
	Legacy: &form.Form{Action: action, Observe: observe, Actions: map[string]form.Action{
		"task_tracking": {Means: []string{"command", "task_list"}, Read: read},
	}},
	Display: tool.Display{Content: tool.Checklist, ReadOnly: true, View: view},
}

func view(raw json.RawMessage) tool.View {
	var a struct {
		Command string `json:"command"`
		List    []task `json:"task_list"`
	}
	_ = json.Unmarshal(raw, &a)
	v := tool.View{Title: "tasks"}
	if a.Command != "plan" || len(a.List) == 0 {
		v.More = a.Command
		return v
	}
	for _, t := range a.List {
		v.Items = append(v.Items, tool.Item{Title: t.Title, Done: t.Status == "done", Active: t.Status == "in_progress"})
	}
	return v
}

func action(w *form.Writer, c form.Call) {
	list := parse(c.Given["task_list"])
	w.Call(c, "task_tracking", message(c.Given.Text("command"), len(list)))
	w.Str("command", c.Given.Text("command"))
	write(w, list)
	w.Str("thought", c.Thought)
	w.Shut('}')
}

func message(command string, n int) string {
	switch {
	case n == 1:
		return "Managing 1 task item."
	case n > 1:
		return fmt.Sprintf("Managing %d task items.", n)
	case command == "plan":
		return "Clearing the task list."
	default:
		return "Looking at the task list."
	}
}

func observe(w *form.Writer, r form.Result) {
	list := form.Details[form.TaskDetails](r.Details).TaskList
	if form.KindOf(list) != '[' {
		list = r.Given["task_list"]
	}
	w.Result(r, "task_tracking", r.Output, r.Output)
	w.Str("command", r.Given.Text("command"))
	write(w, parse(list))
	w.Shut('}')
}

func parse(raw json.RawMessage) []form.Arguments { return form.Details[[]form.Arguments](raw) }

// write gives each task all four fields, for clients read them without asking.
func write(w *form.Writer, list []form.Arguments) {
	w.Open("task_list", '[')
	for _, t := range list {
		w.Open("", '{')
		w.Str("id", t.Text("id"))
		w.Str("title", t.Text("title"))
		w.Str("status", t.Text("status"))
		w.Str("notes", t.Text("notes"))
		w.Shut('}')
	}
	w.Shut(']')
}

func read(w *form.Writer, a form.Recorded) error {
	err := a.Copy(w, "command", "command")
	if form.KindOf(a.Args["task_list"]) == '[' {
		w.Raw("task_list", a.Args["task_list"])
	}
	return err
}
