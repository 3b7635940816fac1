package agent

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// callNext starts the next call of the model's answer: it stands in the log
// before anything is done.
func (l *Loop) callNext(ctx context.Context, w *worker, st session.State, p Profile) (session.State, error) {
	if err := w.said.advance(ctx, l.Log, st); err != nil { // the call before may have left the workspace
		return st, err
	}
	st, err := l.update(ctx, w, l.calling(w, p))
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// calling is the rule that starts the next call, if there is one, or asks the
// person about it.
func (l *Loop) calling(w *worker, p Profile) func(session.State) ([]session.Payload, error) {
	return func(s session.State) ([]session.Payload, error) {
		if len(s.Announced) == 0 || s.Over != "" || s.Pausing {
			return nil, nil
		}
		rating, ask := l.judge(w, p, s)
		out, err := s.CallNext(w.claim, rating, ask)
		for i, p := range out {
			if c, ok := p.(session.ToolCalled); ok {
				w.called, w.call = s.Last+1+int64(i), c
			}
		}
		return out, err
	}
}

// judge rates the next call, and says what to ask the person about it; nil if
// it needs no answer.
func (l *Loop) judge(w *worker, p Profile, s session.State) (session.Risk, *session.ApprovalAsked) {
	c := s.Announced[0]
	t := find(w.tools, c.Name)
	if t == nil || l.schemas.check(t.Spec(), own(t.Spec(), c.Args)) != nil {
		return session.RiskUnknown, nil // it is not going to be run
	}
	spec, folder := t.Spec(), w.said.folder
	rating, why := rate(p.Analyzer, spec, c, folder)
	// What a model says about its own call does not count against a rule, and a person sees the risk of each question.
	if r, because := tool.RateIn(folder, c.Name, spec.ReadOnly, own(spec, c.Args)); p.Confirm && (session.Risk(r) == session.RiskHigh || rating == session.RiskLow && tool.Unreadable(c.Name, r)) {
		rating, why = session.Risk(r), because
	}
	always, elsewhere := wary(spec, c), tool.Place(folder, c.Name, own(spec, c.Args))
	if always != "" {
		why = always
		if p.Analyzer != "" {
			rating = session.RiskHigh
		}
	}
	if !p.Confirm || spec.Harmless || p.Analyzer != "" && rating == session.RiskLow || always == "" && elsewhere == "" && allowed(s.Allowed, c.Name, own(spec, c.Args)) {
		return rating, nil
	}
	ask := &session.ApprovalAsked{Reason: strings.TrimSpace(why + " " + elsewhere)}
	if always == "" && elsewhere == "" {
		ask.Pattern = tool.Pattern(c.Name, own(spec, c.Args))
	}
	if l.Approval.Within > 0 {
		ask.Deadline, ask.Default = time.Now().Add(l.Approval.Within).UTC().Truncate(time.Microsecond), l.Approval.Accept
	}
	return rating, ask
}

// wary is why a call should be asked about every time, as the tool itself sees it.
func wary(spec tool.Spec, c session.ToolCall) string {
	if spec.Wary == nil {
		return ""
	}
	return spec.Wary(own(spec, c.Args))
}

// rate asks the analyzer.
func rate(analyzer string, spec tool.Spec, c session.ToolCall, folder string) (session.Risk, string) {
	switch analyzer {
	case "rules":
		r, why := tool.RateIn(folder, c.Name, spec.ReadOnly, own(spec, c.Args))
		return session.Risk(r), why
	case "llm":
		var a struct {
			Risk string `json:"security_risk"`
		}
		_ = json.Unmarshal(c.Args, &a)
		if r, ok := ratings[a.Risk]; ok {
			return r, "The model rates this call " + a.Risk + "."
		}
		return session.RiskUnknown, "The model did not rate this call."
	}
	return session.RiskUnknown, ""
}

var ratings = map[string]session.Risk{"LOW": session.RiskLow, "MEDIUM": session.RiskMedium, "HIGH": session.RiskHigh}

// allowed is true for a call that the person allowed once and for all.
func allowed(patterns []string, name string, args json.RawMessage) bool {
	for _, p := range patterns {
		if tool.Matches(p, name, args) {
			return true
		}
	}
	return false
}

// awaitAnswer waits until the person has answered, or for the deadline. Without
// one there is a worker only while the sandbox is being started.
func (l *Loop) awaitAnswer(ctx context.Context, w *worker, st session.State) (session.State, error) {
	open, _ := st.Awaiting()
	if open.Deadline.IsZero() {
		return l.awaitWarm(ctx, w)
	}
	timer := time.NewTimer(time.Until(open.Deadline))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return st, ctx.Err()
	case <-w.news:
		return l.Sessions.Load(ctx, w.id)
	case <-timer.C:
	}
	g := session.ApprovalGiven{ID: open.ID, Approved: open.Default, Late: true}
	if !g.Approved {
		g.Reason = "No decision in time."
	}
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		if now, ok := s.Awaiting(); !ok || now.ID != open.ID || s.Claim != w.claim {
			return nil, nil // decided at the last moment
		}
		return s.Decide(g)
	})
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// endOver ends a turn that is over before all calls of the answer were made.
func (l *Loop) endOver(ctx context.Context, w *worker) (session.State, error) {
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) {
			return s.SkipRest(w.claim, "This call was not made: the turn ended before it.")
		},
		func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(w.claim, session.TurnEnded{UpTo: max(s.Shown, s.Seen), State: s.Over})
		})
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}
