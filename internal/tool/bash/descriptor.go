package bash

import (
	"encoding/json"
	"fmt"
	"strings"

	"deckhand/internal/risk"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name: Name,
	Open: func(tool.Server) tool.Tool { return Tool{} },
	Rate: risk.ByArguments(rateIn("")),
	RateIn: func(folder string, args json.RawMessage) (risk.Rating, string) {
		return risk.ByArguments(rateIn(folder))(args)
	},
	Patterns: &tool.Patterns{
		Whole:   "A pattern for execute_bash names a command, like execute_bash:git status*; the shell as a whole cannot be allowed.",
		Check:   risk.CheckCommand,
		Propose: func(args json.RawMessage) string { return risk.ProposeCommand(commandLine(args)) },
		Matches: func(pattern string, args json.RawMessage) bool {
			return risk.MatchesCommand(pattern, commandLine(args))
		},
	},
	Legacy: &form.Form{Action: action, Observe: observe, Tells: tellsExit, Partial: true, Actions: map[string]form.Action{
		"run": {Means: []string{"command", "is_input"}, Read: read},
	}},
	Display: tool.Display{Content: tool.Command, Main: "command", View: view},
}

// rateIn rates a command in a folder, or input to what runs.
func rateIn(folder string) func(risk.Arguments) (risk.Rating, string) {
	return func(a risk.Arguments) (risk.Rating, string) {
		text, ok := a.Text("command")
		switch {
		case !ok:
			return risk.Unknown, "The command is missing."
		case a.Yes("is_input"):
			return rateInput(text)
		case strings.TrimSpace(text) == "":
			return risk.Low, "It waits for more output."
		}
		return risk.ShellIn(folder, text)
	}
}

// rateInput rates what is typed into a program that runs. What that program makes of
// a text is not known here.
func rateInput(text string) (risk.Rating, string) {
	switch strings.TrimSpace(text) {
	case "":
		return risk.Low, "It waits for more output, or presses Enter."
	case "C-c", "C-d", "C-z", "C-\\", "q", "y", "n":
		return risk.Low, "It presses a key in the running program."
	}
	return risk.Unknown, "It types into the running program."
}

// commandLine is the command that a call starts, "" if it does something else.
func commandLine(args json.RawMessage) string {
	a, ok := risk.Parse(args)
	if !ok || a.Yes("is_input") {
		return ""
	}
	text, _ := a.Text("command")
	return text
}

func view(raw json.RawMessage) tool.View {
	var a struct {
		Command string `json:"command"`
		IsInput any    `json:"is_input"`
	}
	err := json.Unmarshal(raw, &a)
	return tool.View{Text: a.Command, Input: fmt.Sprint(a.IsInput) == "true", Whole: err == nil}
}

func action(w *form.Writer, c form.Call) {
	command := c.Given.Text("command")
	timeout, limited := c.Given.Number("timeout")
	w.Call(c, "run", "Running command: "+command)
	w.Str("command", command)
	w.Flag("is_input", c.Given.Yes("is_input"))
	w.Str("thought", c.Thought)
	w.Flag("blocking", limited) // with a limit of its own a command is waited for
	w.Flag("is_static", false)
	w.Lit("cwd", "null")
	w.Flag("hidden", false)
	w.Waits(c)
	w.Num("security_risk", int64(c.Risk))
	w.Shut('}')
	if limited {
		w.Float("timeout", timeout)
	}
}

func observe(w *form.Writer, r form.Result) {
	d := form.Details[form.RunDetails](r.Details)
	command := r.Given.Text("command")
	code, pid, message := d.Ended(command, r.Outcome, 0)
	w.Result(r, "run", message, r.Output)
	w.Ran(command, code, pid, d)
}

// tellsExit: a command that ended with a code tells its failure by the code.
func tellsExit(p session.ToolReturned) bool {
	return form.Details[form.RunDetails](p.Details).ExitCode != nil
}

func read(w *form.Writer, a form.Recorded) error {
	if err := a.Copy(w, "command", "command"); err != nil {
		return err
	}
	if a.Args.Yes("is_input") {
		w.Str("is_input", "true")
	}
	return a.Limit(w)
}
