package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"deckhand/api"
	"deckhand/internal/cli"
)

// command is a slash command.
type command struct {
	name, argument, about string
	// agent is true if it needs an open session.
	agent bool
}

// commands are the built-in commands. Other commands come from Options.Expand.
var commands = []command{
	{name: "help", about: "show commands and keys"},
	{name: "new", about: "start a new session with the next message"},
	{name: "resume", argument: "[ID]", about: "open another session"},
	{name: "model", argument: "[NAME]", about: "show or change the model of this session", agent: true},
	{name: "diff", argument: "[FILE]", about: "list changed files, or show the diff of one", agent: true},
	{name: "status", about: "show the session, its cost and context"},
	{name: "title", argument: "TEXT", about: "rename this session", agent: true},
	{name: "pause", about: "pause the agent after the current step", agent: true},
	{name: "continue", about: "continue a paused agent", agent: true},
	{name: "stop", about: "stop the agent until the next message", agent: true},
	{name: "quit", about: "quit; the session is kept"},
}

const keysHelp = `Keys
  Enter               send; queued while the agent is working
  Alt-Enter, Ctrl-J   new line; also a backslash at the end of a line
  @                   mention a file; Tab completes
  Up, Down            earlier prompts
  Esc                 interrupt the current step
  Ctrl-C              clear the prompt, or pause after this step;
                      twice: interrupt the step; when idle: quit
  Ctrl-D              quit
Answer a question about a call with the letter in brackets and Enter.
Calls marked HIGH RISK need the whole word yes.`

// helpText returns the list of commands and keys.
func helpText() string {
	var b strings.Builder
	b.WriteString("Commands\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-18s  %s\n", strings.TrimSpace("/"+c.name+" "+c.argument), c.about)
	}
	return b.String() + keysHelp
}

// isCommand splits a line that is a command. A path such as /etc/hosts is not a command.
func isCommand(line string) (name, arguments string, ok bool) {
	rest, ok := strings.CutPrefix(line, "/")
	if !ok || strings.Contains(line, "\n") {
		return "", "", false
	}
	name, arguments, _ = strings.Cut(rest, " ")
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' && (r < '0' || r > '9') }) {
		return "", "", false
	}
	return name, strings.TrimSpace(arguments), true
}

// aliases are alternative names of commands.
var aliases = map[string]string{"exit": "quit", "q": "quit", "clear": "new", "rename": "title", "sessions": "resume"}

// findCommand finds a command by its name.
func findCommand(name string) (command, bool) {
	if other, ok := aliases[name]; ok {
		name = other
	}
	if i := slices.IndexFunc(commands, func(c command) bool { return c.name == name }); i >= 0 {
		return commands[i], true
	}
	return command{}, false
}

// unknown suggests commands that the user may have meant.
func unknown(name string) string {
	names := make([]string, len(commands))
	for i, c := range commands {
		names[i] = c.name
	}
	text := "unknown command /" + name
	if near := rank(names, name[:min(2, len(name))]); len(near) > 0 {
		text += "; did you mean /" + near[0] + "?"
	}
	return text + " Type /help for all commands"
}

// do runs a command that needs no screen. It returns the text to show.
func (s *conversation) do(ctx context.Context, c command, arguments string) (notice string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.agent && s.id == "" {
		return "", fmt.Errorf("/%s needs a session; send a message first", c.name)
	}
	switch c.name {
	case "help":
		return helpText(), nil
	case "status":
		return s.describe(), nil
	case "model":
		return s.setModel(ctx, arguments)
	case "diff":
		return "", s.changes(ctx, arguments)
	case "title":
		if arguments == "" {
			return "", cli.Usagef("/title needs a text")
		}
		if err := s.Client.Rename(ctx, s.id, arguments); err != nil {
			return "", cli.Plainly(err)
		}
		s.title = arguments
		return "renamed to " + arguments, nil
	case "pause":
		return "", s.want(ctx, s.id, "paused")
	case "continue":
		return "", s.want(ctx, s.id, "running")
	case "stop":
		return "", s.want(ctx, s.id, "stopped")
	}
	return "", nil
}

// describe returns a short description of the session.
func (s *conversation) describe() string {
	lines := []string{"model: " + s.modelName(), "approvals: " + s.mode, "cost: " + s.costText(), "context: " + s.contextText()}
	if s.id != "" {
		lines = append([]string{"session: " + s.id + " " + s.title}, lines...)
	}
	if s.Folder != "" && s.Elsewhere == "" {
		lines = append(lines, "folder: "+cli.Short(s.Folder))
	}
	return strings.Join(lines, "\n")
}

// setModel shows or changes the model of the session.
func (s *conversation) setModel(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "model: " + s.modelName() + "; change it with /model provider/model", nil
	}
	if _, err := s.Client.SetOverrides(ctx, s.id, api.OverrideModel(name)); err != nil {
		return "", cli.Plainly(err)
	}
	s.model, s.Model, s.Window, s.Used = name, "", 0, 0
	return "", nil // the event of the change is shown
}

// changes shows the changes in the workspace.
func (s *conversation) changes(ctx context.Context, file string) error {
	if file = strings.TrimPrefix(file, "@"); file != "" {
		d, err := s.Client.Diff(ctx, s.id, file)
		if err == nil {
			s.Display.Diff(udiff.Unified("a/"+file, "b/"+file, text(d.Original), text(d.Modified)))
		}
		return cli.Plainly(err)
	}
	all, err := s.Client.Changes(ctx, s.id)
	if err != nil {
		return cli.Plainly(err)
	}
	if len(all) == 0 {
		s.Notice("no changes")
		return nil
	}
	slices.SortFunc(all, func(a, b api.GitChange) int { return strings.Compare(a.Path, b.Path) })
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s %s\n", c.Status, c.Path)
	}
	s.Notice(strings.TrimSpace(b.String()))
	return nil
}

// modelName returns the model of the last call, or the selected one.
func (s *conversation) modelName() string {
	switch {
	case s.Model != "":
		return s.Model
	case s.model != "":
		return s.model
	}
	return "default model"
}

func (s *conversation) costText() string { return fmt.Sprintf("$%.2f", s.Cost.Dollars()) }

// contextText returns how full the model's context window is.
func (s *conversation) contextText() string {
	if s.Window <= 0 {
		return fmt.Sprintf("%dk tokens", (s.Used+500)/1000)
	}
	return fmt.Sprintf("%d%% of %dk", s.Used*100/s.Window, s.Window/1000)
}
