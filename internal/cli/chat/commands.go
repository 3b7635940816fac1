package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/cli/custom"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/terminal"
)

// list returns a text that lists the commands that send a prompt.
func (s *conversation) list(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := s.prompts.List(ctx, id)
	if err != nil {
		return "", cli.Plainly(err)
	}
	var b strings.Builder
	b.WriteString("Commands that send a prompt\n")
	for _, c := range all {
		about := terminal.Inline(c.Description)
		if c.File != nil {
			about += " (" + terminal.Inline(*c.File) + ")"
		}
		fmt.Fprintf(&b, "  %-18s  %s\n", terminal.Inline(strings.TrimSpace("/"+c.Name+" "+c.ArgumentHint)), about)
	}
	return b.String() + "Add your own in .deckhand/commands/NAME.md, or in the web page under Settings, Commands.", nil
}

// expand sends the prompt of a command. It reports false if there is none.
func (s *conversation) expand(ctx context.Context, id, name, arguments, key string, plan bool) (opened *api.Conversation, found bool, err error) {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, found, sent, err := s.prompts.Expand(wait, id, name, arguments, key)
	if err != nil || !found || sent {
		return nil, found, cli.Plainly(err)
	}
	opened, err = s.say(ctx, id, text, key, plan)
	return opened, true, err
}

// restoring is the timeout of a restore, which may write many files.
const restoring = 5 * time.Minute

// restore undoes the last turn and returns its messages, or redoes the last undone turn. notice says what could not be restored.
// own says what to do with files that the user changed too; ask is set if that is needed.
func (s *conversation) restore(ctx context.Context, id, command, own string) (text, notice string, ask *api.RestoreConflict, err error) {
	ctx, cancel := context.WithTimeout(ctx, restoring)
	defer cancel()
	if err = custom.CheckOwn(own); err != nil {
		return "", "", nil, err
	}
	if command == "undo" {
		text, notice, err = s.prompts.Undo(ctx, id, own)
	} else {
		notice, err = s.prompts.Redo(ctx, id, own)
	}
	if ask = custom.Conflict(err); ask != nil {
		return "", "", ask, nil
	}
	return text, notice, nil, cli.Plainly(err)
}

// do runs a command that needs no screen. It returns the text to show.
func (s *conversation) do(ctx context.Context, c prompt.Command, arguments string) (notice string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.Agent && s.id == "" {
		return "", fmt.Errorf("/%s needs a session; send a message first", c.Name)
	}
	switch c.Name {
	case "help":
		width := 0
		if s.Display.Width != nil {
			width = s.Display.Width()
		}
		return prompt.Help(width), nil
	case "status":
		return s.describe(), nil
	case "commands":
		return s.list(ctx, s.id)
	case "compact":
		if err := s.Client.Compact(ctx, s.id, arguments); err != nil {
			return "", cli.Plainly(err)
		}
		s.Compacting, s.Since = true, time.Now()
		return "", nil // the event is shown
	case "model":
		return s.setModel(ctx, arguments)
	case "diff":
		return "", s.prompts.Changes(ctx, s.Display, s.id, arguments)
	case "queue": // line by line, a message is sent when the agent has replied to the one before
		return s.queued(), nil
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
	lines := []string{"model: " + s.modelName(), "approvals: " + s.modeText(), "cost: " + s.costText(), "context: " + s.contextText()}
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
	if !strings.Contains(name, "/") {
		return "", s.noModel(ctx, name)
	}
	if _, err := s.Client.SetOverrides(ctx, s.id, api.OverrideModel(name)); err != nil {
		return "", cli.Plainly(err)
	}
	s.model, s.Model, s.Window, s.Used = name, "", 0, 0
	return "", nil // the event of the change is shown
}

// noModel returns an error for a name without a provider, with the model that the user may have meant.
func (s *conversation) noModel(ctx context.Context, name string) error {
	text := fmt.Sprintf("%q is not a model: use provider/model", name)
	if found, err := s.Client.SearchModels(ctx, name, "", false); err == nil && len(found.Models) > 0 {
		text += ", such as " + found.Models[0].ID
	}
	return errors.New(text)
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

// modeText returns "plan mode", or when the agent asks for approval.
func (s *conversation) modeText() string {
	if s.plan {
		return "plan mode"
	}
	return s.mode
}

// costText returns the cost. Without a known price, tokens are counted but no cost is.
func (s *conversation) costText() string {
	if s.Cost == 0 && s.Used > 0 && !strings.HasPrefix(s.modelName(), "scripted/") {
		return "cost unknown"
	}
	return fmt.Sprintf("$%.2f", s.Cost.Dollars())
}

// contextText returns how full the model's context window is.
func (s *conversation) contextText() string {
	if s.Window <= 0 {
		return fmt.Sprintf("%dk tokens", (s.Used+500)/1000)
	}
	return fmt.Sprintf("%d%% of %dk", s.Used*100/s.Window, s.Window/1000)
}
