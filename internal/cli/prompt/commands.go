package prompt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Command is a built-in slash command.
type Command struct {
	Name, Argument, About string
	// Agent is true if it needs an open session.
	Agent bool
}

// Commands are the built-in commands. The others are prompts: see package custom.
var Commands = []Command{
	{Name: "help", About: "show commands and keys"},
	{Name: "new", Argument: "[TASK]", About: "start a new session, with the next message"},
	{Name: "resume", Argument: "[ID]", About: "open another session"},
	{Name: "plan", Argument: "[TASK]", About: "turn plan mode on or off; approve or edit a plan"},
	{Name: "undo", About: "undo the last turn: its files and messages", Agent: true},
	{Name: "redo", About: "redo the turn that was undone", Agent: true},
	{Name: "compact", Argument: "[HINTS]", About: "replace the history with a summary", Agent: true},
	{Name: "model", Argument: "[NAME]", About: "show or change the model of this session", Agent: true},
	{Name: "diff", Argument: "[FILE]", About: "list changed files, or show the diff of one", Agent: true},
	{Name: "status", About: "show the session, its cost and context"},
	{Name: "title", Argument: "TEXT", About: "rename this session", Agent: true},
	{Name: "pause", About: "pause the agent after the current step", Agent: true},
	{Name: "continue", About: "continue a paused agent", Agent: true},
	{Name: "queue", Argument: "[ACTION]", About: "list queued messages; edit, delete or send one now", Agent: true},
	{Name: "stop", About: "stop the agent until the next message", Agent: true},
	{Name: "commands", About: "list commands that send a prompt"},
	{Name: "quit", About: "quit; the session is kept"},
}

// keys are the keys and their actions.
var keys = [][2]string{
	{"Enter", "send; queued while the agent is working"},
	{"Alt-Enter, Ctrl-J", "new line; also a backslash at the end of a line"},
	{"@", "mention a file; Tab completes"},
	{"Up, Down", "earlier prompts; Up edits the last queued message"},
	{"Esc", "interrupt the current step"},
	{"Ctrl-C", "clear the prompt, or pause after this step;"},
	{"", "twice: interrupt the step; when idle: quit"},
	{"Ctrl-D", "quit"},
}

const questionsHelp = `Answer a question about a call with the letter in brackets and Enter.
Calls marked HIGH RISK need the whole word yes.`

// Help returns the list of commands and keys, for a terminal of this width; 0 is no limit.
func Help(width int) string {
	var b strings.Builder
	row := func(name, about string) {
		switch {
		case width == 0 || width >= 76:
			fmt.Fprintf(&b, "  %-18s  %s\n", name, about)
		case name == "":
			fmt.Fprintf(&b, "    %s\n", about)
		default:
			fmt.Fprintf(&b, "%s\n    %s\n", name, about)
		}
	}
	b.WriteString("Commands\n")
	for _, c := range Commands {
		row(strings.TrimSpace("/"+c.Name+" "+c.Argument), c.About)
	}
	b.WriteString("Keys\n")
	for _, k := range keys {
		row(k[0], k[1])
	}
	return b.String() + questionsHelp
}

// IsCommand splits a line that is a command. A path such as /etc/hosts is not a command.
func IsCommand(line string) (name, arguments string, ok bool) {
	found := commandForm.FindStringSubmatch(line)
	if found == nil {
		return "", "", false
	}
	return found[1], strings.TrimSpace(found[2]), true
}

// Known reports whether a line is one of the Commands.
func Known(line string) bool {
	name, _, _ := IsCommand(line)
	_, known := Find(name)
	return known
}

var commandForm = regexp.MustCompile(`^/([A-Za-z0-9][A-Za-z0-9_.:-]*)(?:\s+((?s).*))?$`)

// aliases are alternative names of commands.
var aliases = map[string]string{"exit": "quit", "q": "quit", "clear": "new", "rename": "title", "sessions": "resume"}

// Find finds a command by its name.
func Find(name string) (Command, bool) {
	if other, ok := aliases[name]; ok {
		name = other
	}
	if i := slices.IndexFunc(Commands, func(c Command) bool { return c.Name == name }); i >= 0 {
		return Commands[i], true
	}
	return Command{}, false
}

// Unknown suggests commands that the user may have meant.
func Unknown(name string) string {
	names := []string{"review", "init"}
	for _, c := range Commands {
		names = append(names, c.Name)
	}
	text := "unknown command /" + name
	if near := Nearest(names, name); near != "" {
		return text + "; did you mean /" + near + "? Type /help for all commands"
	}
	return text + "; type /help for all commands"
}
