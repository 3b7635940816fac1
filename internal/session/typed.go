package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// TypedCommand is a person's command without a result.
type TypedCommand struct {
	Number  int64
	Command string
}

// typedCall begins the names of commands that people typed.
const typedCall = "typed:"

// Call names the command where tool calls have their id.
func (t TypedCommand) Call() string { return typedCall + strconv.FormatInt(t.Number, 10) }

// IsTyped reports whether call names a command that a person typed.
func IsTyped(call string) bool { return strings.HasPrefix(call, typedCall) }

// maxTyped is how many commands of people may wait for the shell at a time.
const maxTyped = 16

// TypedKey tells a key from a command. It returns C-c, C-d or C-z, or nothing for Enter.
func TypedKey(text string) (key string, ok bool) {
	switch text = strings.TrimSpace(text); strings.ToLower(text) {
	case "c-c", "c-d", "c-z":
		return "C-" + strings.ToLower(text[2:]), true
	case "":
		return "", true
	}
	if strings.Trim(text, CtrlC+" ") == "" {
		return "C-c", true
	}
	return "", false
}

// CtrlC is what a terminal sends for the key.
const CtrlC = "\x03"

// Type records a command that a person runs in the shell. It opens a stopped session.
func (s State) Type(command string) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if len(s.Typed) >= maxTyped {
		return nil, fmt.Errorf("%w: %d commands are already waiting for the shell", ErrRefused, maxTyped)
	}
	if s.Stopped || s.Failed {
		if _, key := TypedKey(command); key {
			return nil, fmt.Errorf("%w: nothing runs in the shell", ErrRefused)
		}
		return []Payload{StartRequested{}, CommandTyped{Command: command}}, nil
	}
	return []Payload{CommandTyped{Command: command}}, nil
}

// TypedEnded records the result of the oldest open command.
func (s State) TypedEnded(claim int64, e CommandEnded) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if !s.typing(e.Cause) {
		return nil, fmt.Errorf("%w: the command has its result", ErrRefused)
	}
	if e.Outcome == Unknown {
		e.Output = lostAfter(s.partial(TypedCommand{Number: e.Cause}.Call()), e.Output)
	}
	return []Payload{e}, nil
}

// typing reports whether the command with this number has no result yet.
func (s State) typing(number int64) bool {
	return slices.ContainsFunc(s.Typed, func(t TypedCommand) bool { return t.Number == number })
}

// Typing reports whether a person's command is open that may be run now: no tool call is under way in the same shell.
func (s State) Typing() bool {
	_, asked := s.Awaiting()
	return len(s.Typed) > 0 && (asked || len(s.Open) == 0)
}

func (s State) applyTyped(e Event) State {
	switch p := e.Payload.(type) {
	case CommandTyped:
		s.Typed = append(slices.Clone(s.Typed), TypedCommand{Number: e.Number, Command: p.Command})
	case CommandEnded:
		s.Typed = slices.DeleteFunc(slices.Clone(s.Typed), func(t TypedCommand) bool { return t.Number == p.Cause })
	}
	return s
}

// unbegun reports whether the log proves that the oldest command was not begun: only an owner that claims after it was typed begins it, and only in a
// sandbox that was recorded as up before. The sandbox of a delegated session is recorded in another log.
func (s State) unbegun(t TypedCommand) bool {
	return t.Number > s.Claim || !s.Up && s.Created.Parent == ""
}

// settleTyped gives the open commands of people a result, so that the session may be closed.
func (s State) settleTyped(why string) []Payload {
	var out []Payload
	for i, t := range s.Typed {
		end := CommandEnded{Cause: t.Number, Command: t.Command, Outcome: Cancelled, Output: interrupted(why, s.partial(t.Call()))}
		switch {
		case why == failed && (i > 0 || s.unbegun(t)):
			end.Output = notBegun
		case why == failed:
			end.Outcome, end.Output = Unknown, lostAfter(s.partial(t.Call()), unreachable)
		}
		out = append(out, end)
	}
	return out
}
