package llmtest

import (
	"errors"
	"fmt"

	"deckhand/internal/llm"
)

// WellFormed checks what providers require: every call has exactly one result before the next
// message, no result is without its call, the user speaks first, and no message is empty. The
// server checks every request with it.
func WellFormed(a Asked) error {
	if len(a.Messages) == 0 {
		return errors.New("there are no messages")
	}
	if first := a.Messages[0].Role; first != llm.User {
		return fmt.Errorf("the first message is of role %q, wanted %q", first, llm.User)
	}
	open := map[string]bool{}
	for i, m := range a.Messages {
		if m.Role == llm.ToolResult {
			if !open[m.Call] {
				return fmt.Errorf("message %d is a result of the call %q, which is not open", i, m.Call)
			}
			delete(open, m.Call)
			continue
		}
		for id := range open {
			return fmt.Errorf("the call %q has no result before message %d", id, i)
		}
		if m.Text == "" && len(m.Images) == 0 && len(m.Calls) == 0 {
			return fmt.Errorf("message %d of role %q is empty", i, m.Role)
		}
		for _, c := range m.Calls {
			switch {
			case m.Role != llm.Assistant:
				return fmt.Errorf("message %d of role %q has the call %q", i, m.Role, c.ID)
			case c.ID == "" || c.Name == "":
				return fmt.Errorf("message %d has a call without an id or a name", i)
			case open[c.ID]:
				return fmt.Errorf("message %d has two calls %q", i, c.ID)
			}
			open[c.ID] = true
		}
	}
	for id := range open {
		return fmt.Errorf("the call %q has no result", id)
	}
	return nil
}
