package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"deckhand/api"
	"deckhand/internal/risk"
	"deckhand/internal/session"
)

func getApprovals(d *Door, ctx context.Context, c *call, p one, _ none) (api.Approvals, error) {
	row, err := d.row(ctx, c, p.ID)
	if err != nil {
		return api.Approvals{}, err
	}
	st, err := d.Sessions.Load(ctx, row.ID)
	if err != nil {
		return api.Approvals{}, err
	}
	out := api.Approvals{Pending: []api.Approval{}, Allowed: append([]string{}, st.Allowed...)}
	for _, open := range st.Open {
		if !open.Awaits() {
			continue
		}
		a, err := d.approval(ctx, row.ID, open)
		if err != nil {
			return out, err
		}
		out.Pending = append(out.Pending, a)
	}
	return out, nil
}

// approval reads the call and the question about it, which follow each other in the log.
func (d *Door) approval(ctx context.Context, id session.ID, open session.OpenCall) (api.Approval, error) {
	out := api.Approval{CallID: open.ID, EventID: open.Number, Tool: open.Name, Arguments: json.RawMessage("{}")}
	for e, err := range d.Log.Read(ctx, id, open.Number-1) {
		if err != nil {
			return out, err
		}
		switch p := e.Payload.(type) {
		case session.ToolCalled:
			if out.Risk = int(p.Risk); len(p.Args) > 0 {
				out.Arguments = p.Args
			}
		case session.ApprovalAsked:
			out.Reason, out.Pattern = p.Reason, text(p.Pattern)
			if !p.Deadline.IsZero() {
				answer := "reject"
				if p.Default {
					answer = "accept"
				}
				out.Deadline, out.Default = ptr(p.Deadline.UTC().Format(time.RFC3339Nano)), &answer
			}
			return out, nil
		}
	}
	return out, nil
}

func postApproval(d *Door, ctx context.Context, c *call, p one, b api.Decision) (api.Accepted, error) {
	g := session.ApprovalGiven{ID: b.CallID.Value, Approved: b.Decision != "reject", Reason: b.Reason.Value}
	if args, ok := b.Arguments.Get(); ok {
		if !g.Approved {
			return api.Accepted{}, api.Invalid("value_error", "A call that is rejected has no new arguments.", "arguments")
		}
		var err error
		if g.Args, err = json.Marshal(args); err != nil {
			return api.Accepted{}, err
		}
	}
	if _, given := b.Pattern.Get(); given && b.Decision != "always" {
		return api.Accepted{}, api.Invalid("value_error", `A pattern belongs to the decision "always".`, "pattern")
	}
	if b.Decision == "always" {
		if err := d.always(ctx, c, p.ID, b, &g); err != nil {
			return api.Accepted{}, err
		}
	}
	_, err := d.change(ctx, c, p.ID, func(s session.State) ([]session.Payload, error) { return s.Decide(g) })
	return accepted(err)
}

// always finds the pattern: the given one, or that of the question. A pattern
// that would not allow this very call allows something nobody has seen.
func (d *Door) always(ctx context.Context, c *call, id string, b api.Decision, g *session.ApprovalGiven) error {
	pattern, given := b.Pattern.Get()
	if given {
		if err := risk.CheckPattern(pattern); err != nil {
			return api.Invalid("value_error", err.Error(), "pattern")
		}
	}
	pending, err := getApprovals(d, ctx, c, one{ID: id}, none{})
	if err != nil {
		return err
	}
	for _, a := range pending.Pending {
		if g.ID != "" && a.CallID != g.ID {
			continue
		}
		switch {
		case given && !risk.Matches(pattern, a.Tool, a.Arguments):
			return api.Invalid("value_error", "The pattern does not allow the call that waits; accept it alone, or send a pattern that allows it.", "pattern")
		case given:
			g.Always = pattern
		case a.Pattern != nil:
			g.Always = *a.Pattern
		default:
			return api.Invalid("value_error", "No pattern can be proposed for this call; accept it alone, or send a pattern.", "pattern")
		}
		g.ID = a.CallID
		return nil
	}
	return nil // the rule says so itself: nothing waits
}
