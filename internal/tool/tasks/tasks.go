// Package tasks is the tool with which a model keeps a list of what it has to
// do. The list lives in the results of its calls: each holds all of it.
package tasks

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"deckhand/internal/tool"
)

//go:embed tasks.md
var description string

//go:embed schema.json
var schema []byte

// Tool implements tool.Tool.
type Tool struct{}

// Name is the tool's.
const Name = "task_tracker"

// maxTasks keeps a list one that can be worked off, and each result small.
const maxTasks = 200

// Spec implements tool.Tool.
func (Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, Harmless: true}
}

type args struct {
	Command string  `json:"command"`
	List    *[]task `json:"task_list"`
}

type task struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
	Notes  string `json:"notes"`
}

// marks are the statuses, and how the text shows them.
var marks = map[string]string{"todo": "[ ]", "in_progress": "[>]", "done": "[x]"}

// details are kept with the result, under the names that clients know.
type details struct {
	Command string `json:"command"`
	List    []task `json:"task_list"`
}

// Run implements tool.Tool.
func (Tool) Run(_ context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	var text string
	var list []task
	switch a.Command {
	case "view":
		list = previous(call.Previous)
		if text = "There is no task list yet. Use the command plan to make one."; len(list) > 0 {
			text = show(list)
		}
	case "plan":
		if a.List == nil {
			return tool.Failf("The command plan needs the argument task_list: all tasks, with those that are done. An empty list clears it."), nil
		}
		if list = *a.List; len(list) == 0 {
			text = "The task list is empty now."
			break
		}
		if err := check(list); err != nil {
			return tool.Failf("The task list was not changed: %v.", err), nil
		}
		text = "The task list was updated.\n" + show(list)
	default:
		return tool.Failf("There is no command %.40q. The commands are view and plan.", a.Command), nil
	}
	if list == nil {
		list = []task{}
	}
	d, err := json.Marshal(details{a.Command, list})
	return tool.Result{Text: text, Details: d}, err
}

// previous is the list as the last result has it. One that cannot be read is none.
func previous(raw json.RawMessage) []task {
	var d details
	if len(raw) == 0 || json.Unmarshal(raw, &d) != nil {
		return nil
	}
	return d.List
}

func check(list []task) error {
	if len(list) > maxTasks {
		return fmt.Errorf("it has %d tasks, and at most %d are allowed", len(list), maxTasks)
	}
	seen := map[string]bool{}
	for i, t := range list {
		switch {
		case t.ID == "":
			return fmt.Errorf("task %d has no id", i+1)
		case seen[t.ID]:
			return fmt.Errorf("two tasks have the id %.40q", t.ID)
		case strings.TrimSpace(t.Title) == "":
			return fmt.Errorf("task %.40q has no title", t.ID)
		case marks[t.Status] == "":
			return fmt.Errorf("task %.40q has the status %.40q; it must be todo, in_progress or done", t.ID, t.Status)
		}
		seen[t.ID] = true
	}
	return nil
}

// show lists the tasks, one on a line with its notes below.
func show(list []task) string {
	var b strings.Builder
	done := 0
	for _, t := range list {
		if t.Status == "done" {
			done++
		}
		fmt.Fprintf(&b, "%s %s: %s\n", marks[t.Status], t.ID, line(t.Title))
		if t.Notes != "" {
			fmt.Fprintf(&b, "    %s\n", line(t.Notes))
		}
	}
	fmt.Fprintf(&b, "%d of %d done.", done, len(list))
	return b.String()
}

func line(s string) string { return strings.Join(strings.Fields(s), " ") }
