package conversation

import (
	"context"
	"encoding/json"
	"time"

	"deckhand/api"
	"deckhand/internal/native"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// Decision is the answer to a tool call that waits for approval.
type Decision struct {
	// CallID is the call; "" is the one that waits.
	CallID  string
	Approve bool
	// Always approves all calls like this one too. Pattern says which; nil takes the pattern of the question.
	Always  bool
	Pattern *string
	// Reason is told to the agent.
	Reason string
	// Args replace the arguments of an approved call; nil keeps them.
	Args json.RawMessage
}

// Decide approves or rejects a tool call that waits.
func (s *Service) Decide(ctx context.Context, user string, id session.ID, d Decision) error {
	if d.Args != nil && !d.Approve {
		return api.Invalid("value_error", "Arguments can only be changed when the call is accepted.", "arguments")
	}
	if d.Pattern != nil && !d.Always {
		return api.Invalid("value_error", `pattern can only be used with the decision "always".`, "pattern")
	}
	g := session.ApprovalGiven{ID: d.CallID, Approved: d.Approve, Reason: d.Reason, Args: d.Args}
	if d.Always {
		if err := s.always(ctx, user, id, d.Pattern, &g); err != nil {
			return err
		}
	}
	_, err := s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) { return st.Decide(g) })
	return err
}

// always finds the pattern: the given one, or that of the question. A pattern that does not match the call that waits would
// allow something the user has not seen.
func (s *Service) always(ctx context.Context, user string, id session.ID, given *string, g *session.ApprovalGiven) error {
	if given != nil {
		if err := tool.CheckPattern(*given); err != nil {
			return api.Invalid("value_error", err.Error(), "pattern")
		}
	}
	pending, err := s.Approvals(ctx, user, id)
	if err != nil {
		return err
	}
	for _, a := range pending.Pending {
		if g.ID != "" && a.CallID != g.ID {
			continue
		}
		switch {
		case given != nil && !tool.Matches(*given, a.Tool, a.Arguments):
			return api.Invalid("value_error", "pattern does not match the pending call. Accept only this call, or send a pattern that matches it.", "pattern")
		case given != nil:
			g.Always = *given
		case a.Pattern != nil:
			g.Always = *a.Pattern
		default:
			return api.Invalid("value_error", "No pattern can be derived from this call. Accept only this call, or send a pattern.", "pattern")
		}
		g.ID = a.CallID
		return nil
	}
	return nil // nothing waits: the session refuses it
}

// Approvals lists the tool calls that wait and the patterns that are always approved.
func (s *Service) Approvals(ctx context.Context, user string, id session.ID) (api.Approvals, error) {
	if _, err := s.Row(ctx, user, id); err != nil {
		return api.Approvals{}, err
	}
	st, err := s.Sessions.Load(ctx, id)
	if err != nil {
		return api.Approvals{}, err
	}
	out := api.Approvals{Pending: []api.Approval{}, Allowed: append([]string{}, st.Allowed...)}
	for _, open := range st.Open {
		if !open.Awaits() {
			continue
		}
		a, err := s.approval(ctx, id, open)
		if err != nil {
			return out, err
		}
		out.Pending = append(out.Pending, a)
	}
	return out, nil
}

// approval reads the call and the question about it, which follow each other in the log.
func (s *Service) approval(ctx context.Context, id session.ID, open session.OpenCall) (api.Approval, error) {
	out := api.Approval{CallID: open.ID, EventID: open.Number, Tool: open.Name, Arguments: json.RawMessage("{}")}
	for e, err := range s.Log.Read(ctx, id, open.Number-1) {
		if err != nil {
			return out, err
		}
		switch p := e.Payload.(type) {
		case session.ToolCalled:
			out.Display = native.Display(p.Name, p.Args)
			if out.Risk = int(p.Risk); len(p.Args) > 0 {
				out.Arguments = p.Args
			}
		case session.ApprovalAsked:
			if out.Reason = p.Reason; p.Pattern != "" {
				out.Pattern = &p.Pattern
			}
			if !p.Deadline.IsZero() {
				at, answer := p.Deadline.UTC().Format(time.RFC3339Nano), "reject"
				if p.Default {
					answer = "accept"
				}
				out.Deadline, out.Default = &at, &answer
			}
			return out, nil
		}
	}
	return out, nil
}
