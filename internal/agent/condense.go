package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"deckhand/internal/agent/history"
	"deckhand/internal/clip"
	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// When the history is shortened, and to what.
const (
	// crowdedAt is how full the context window may get.
	crowdedAt = 0.85
	// keepShare is how much of the window the latest messages may take up after it.
	keepShare = 0.3
	// keepFirst is how many messages from the beginning are kept as they are.
	keepFirst = 1
	// unknownKeep is how many bytes are kept if the window is unknown.
	unknownKeep = 64 << 10
	// maxCondensed is how often in a row it is tried without an answer between.
	maxCondensed = 10
	// bytesPerToken is what a token has of text, more or less.
	bytesPerToken = 4
)

// crowded is true when the next request comes near the end of the window, or has more
// messages than the user wants.
func (t *transcript) crowded(p Profile, offered int) bool {
	return (t.long(p) || t.full(p, offered)) && t.canCondense()
}

// full reports whether the next request nearly fills the context window.
func (t *transcript) full(p Profile, offered int) bool {
	if p.Info.Window == 0 {
		return false
	}
	tokens := t.counted + t.since/bytesPerToken
	if t.counted == 0 || t.model != p.ModelName {
		tokens = (t.size + int64(len(p.System)+offered)) / bytesPerToken
	}
	room := p.Info.Window - answerLimit(p.Info)
	return float64(tokens) > crowdedAt*float64(max(room, p.Info.Window/2))
}

// long is true when the history has more messages than the user wants.
func (t *transcript) long(p Profile) bool {
	return p.MaxMessages > 0 && len(t.messages) > p.MaxMessages
}

// latest is how many bytes the latest n messages have.
func (t *transcript) latest(n int) (size int64) {
	for _, m := range t.messages[max(0, len(t.messages)-n):] {
		size += weight(m)
	}
	return size
}

// middle is what of the messages may be replaced by a summary so that at most
// keep bytes of the latest are left: from after the first ones up to the next
// place where the history can be cut. Empty if nothing can be.
func (t *transcript) middle(keep int64) (from, to int) {
	cut, n := t.cuts(), len(t.messages)
	for from = min(keepFirst, n); from < n && !cut[from]; from++ {
	}
	if from == n {
		return n, n
	}
	latest := n - 1
	for size := weight(t.messages[latest]); latest > from; latest-- {
		if size += weight(t.messages[latest-1]); size > keep {
			break
		}
	}
	for to = latest; to < n && !cut[to]; to++ {
	}
	if to == n { // there is no such place behind it, but there may be one before
		for to = latest; !cut[to]; to-- {
		}
	}
	return from, to
}

// cuts says before which messages the history can be cut: where no call is
// separated from its result, and where all that stands before is older than all
// that follows. It is not around a message that was said during an answer and
// stands behind it.
func (t *transcript) cuts() []bool {
	at := make([]bool, len(t.messages))
	newest := make([]int64, len(t.messages)+1) // of what stands before each
	for i, m := range t.messages {
		newest[i+1] = max(newest[i], m.number)
	}
	oldest := int64(math.MaxInt64)
	for i, m := range slices.Backward(t.messages) {
		oldest = min(oldest, m.number)
		at[i] = m.Role != llm.ToolResult && newest[i] < oldest
	}
	return at
}

// oldest is the number of the oldest of some messages.
func oldest(of []entry) int64 {
	return slices.MinFunc(of, func(a, b entry) int { return cmp.Compare(a.number, b.number) }).number
}

// canCondense is true when there is something between the first and the latest message.
func (t *transcript) canCondense() bool {
	if t.asking || len(t.open) > 0 {
		return false
	}
	from, to := t.middle(0)
	return to-from >= 2 || to-from == 1 && !t.messages[from].summary
}

// condense replaces the middle of the history by a summary: the model's own, or,
// if it cannot give one, a plain list of what was said and done.
func (l *Loop) condense(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if err := t.advance(ctx, l.Log, st); err != nil {
		return st, err
	}
	keep := int64(unknownKeep)
	if p.Info.Window > 0 {
		keep = int64(keepShare * float64(p.Info.Window) * bytesPerToken)
	}
	// If most of it could be kept not much would be gained, and if it did not help
	// last time less must be kept.
	keep = min(keep, t.size/2) >> w.condensed
	if t.long(p) {
		keep = min(keep, t.latest(p.MaxMessages/2))
	}
	from, to := t.middle(keep)
	if to <= from {
		from, to = t.middle(0)
	}
	if to <= from && t.cutLargest() {
		w.condensed++
		return l.Sessions.Load(ctx, w.id)
	}
	if to <= from {
		return l.endTurn(ctx, w, t, ErrorID(llm.ClassContext), "The messages of this conversation do not fit into the model's context window, and nothing can be omitted. Choose a model with a larger context window.")
	}
	w.condensed++
	event := session.Condensed{From: oldest(t.messages[from:to]), To: oldest(t.messages[to:]) - 1}
	if !p.Condense {
		event.Summary = digest(t.messages[from:to], history.PlainLimit)
		return l.condensed(ctx, w, event)
	}
	return l.summarise(ctx, w, p.with(p.Small), p, t.messages[from:to], event, nil)
}

// compact condenses the history at the user's request: everything except the first and the latest message.
func (l *Loop) compact(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if err := t.advance(ctx, l.Log, st); err != nil {
		return st, err
	}
	if !t.canCondense() {
		return l.uncompacted(ctx, w, "There is nothing to compact yet.")
	}
	w.condensed++
	from, to := t.middle(0)
	event := session.Condensed{From: oldest(t.messages[from:to]), To: oldest(t.messages[to:]) - 1}
	return l.summarise(ctx, w, p.with(p.Small), p, t.messages[from:to], event, st.Compact)
}

// uncompacted records a notice with the reason why the history was not compacted.
func (l *Loop) uncompacted(ctx context.Context, w *worker, why string, rules ...func(session.State) ([]session.Payload, error)) (session.State, error) {
	st, err := l.update(ctx, w, append(rules, func(s session.State) ([]session.Payload, error) {
		if s.Claim != w.claim {
			return nil, session.ErrNotOwner
		}
		return []session.Payload{session.Noted{ID: session.NoteCompactFailed, Message: "The conversation was not compacted: " + why, Error: true}}, nil
	})...)
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// Compactable reports whether there is something to condense in the conversation.
func (l *Loop) Compactable(ctx context.Context, st session.State) (bool, error) {
	t := newTranscript(st.ID)
	err := t.advance(ctx, l.Log, st)
	t.close(st.Last) // calls in progress will have results by then
	return t.canCondense(), err
}

// summarise asks a model for the summary, with money reserved as for any call. If it is not the conversation's and fails,
// that one is asked. If that fails, a digest is the summary, unless the user asked for one.
func (l *Loop) summarise(ctx context.Context, w *worker, p, main Profile, old []entry, event session.Condensed, asked *session.CompactAsked) (session.State, error) {
	limit := 200 << 10
	if p.Info.Window > 0 {
		limit = int(p.Info.Window) * bytesPerToken / 2
	}
	req := llm.Request{Model: p.ModelName, System: history.Prompt(asked), MaxOutput: min(answerLimit(p.Info), 4096), Conversation: string(w.id),
		Messages: []llm.Message{{Role: llm.User, Text: digest(old, limit>>(w.condensed-1))}}}
	worst := cost(llm.Price{Input: max(p.Info.Price.Input, p.Info.Price.CacheWrite), Output: p.Info.Price.Output},
		llm.Usage{Input: int64(len(req.System)+len(req.Messages[0].Text)) + 1000, Output: req.MaxOutput})
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		if s.Claim == w.claim && s.Overrides != w.chosen.Own {
			return nil, errGrew
		}
		return s.AskModel(w.claim, session.ModelAsked{Call: fmt.Sprintf("m%d", s.Last+1), Model: p.ModelName, Reserved: worst, Purpose: session.ForSummary}, p.Budget)
	})
	if errors.Is(err, errGrew) { // another model may have another window
		w.condensed--
		return l.Sessions.Load(ctx, w.id)
	}
	var over *session.BudgetError
	if errors.As(err, &over) && asked != nil {
		return l.uncompacted(ctx, w, over.Error())
	}
	if errors.As(err, &over) { // there is no money for a summary; there may be for going on
		event.Summary = digest(old, history.PlainLimit)
		return l.condensed(ctx, w, event)
	}
	if err != nil {
		return l.left(ctx, w, err)
	}
	call := st.Ask.Call
	a, err := func() (answer, error) {
		ctx, stop := l.while(ctx, w, func(st session.State) bool { return st.Ask != nil && st.Ask.Call == call })
		defer stop()
		return l.hear(ctx, p.Model, req, func([]byte) {})
	}()
	switch {
	case err != nil && ctx.Err() != nil:
		return st, err
	case errors.Is(err, errLeft):
		return l.left(ctx, w, err)
	case err != nil:
		e := failure(err)
		event.Summary = digest(old, history.PlainLimit)
		failed := func(s session.State) ([]session.Payload, error) {
			return s.AskFailed(w.claim, call, string(e.Class), p.mask(e.Message), spent(e, s.Reserved), false)
		}
		switch {
		case p.ModelName != main.ModelName:
			if _, err = l.update(ctx, w, failed); err == nil {
				return l.summarise(ctx, w, main, main, old, event, asked)
			}
		case asked != nil:
			return l.uncompacted(ctx, w, p.mask(e.Message), failed)
		default:
			st, err = l.update(ctx, w, failed, condensing(w, event))
		}
	default:
		event.Summary = p.mask(strings.TrimSpace(a.text))
		if event.Summary == "" {
			event.Summary = digest(old, history.PlainLimit)
		}
		answered := session.ModelAnswered{Call: call, Text: event.Summary, Purpose: session.ForSummary, Cost: cost(p.Info.Price, a.done.Usage), Usage: session.Usage(a.done.Usage)}
		st, err = l.update(ctx, w, func(s session.State) ([]session.Payload, error) { return s.Answered(w.claim, answered) }, condensing(w, event))
	}
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

func (l *Loop) condensed(ctx context.Context, w *worker, event session.Condensed) (session.State, error) {
	st, err := l.update(ctx, w, condensing(w, event))
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

func condensing(w *worker, event session.Condensed) func(session.State) ([]session.Payload, error) {
	return func(s session.State) ([]session.Payload, error) {
		if s.Claim != w.claim {
			return nil, session.ErrNotOwner
		}
		event.Summary = history.WithRequests(event.Summary, s.Requests)
		return []session.Payload{event}, nil
	}
}

// digest writes messages down one after the other in at most limit bytes, more or less.
func digest(old []entry, limit int) string {
	list := make([]history.Message, len(old))
	for i := range old {
		list[i] = history.Message{Message: &old[i].Message, Summary: old[i].summary}
	}
	return history.Digest(list, limit)
}

// smallText is what is never cut.
const smallText = 2000

// largest is the size of the longest result.
func (t *transcript) largest() int {
	n := 0
	for _, m := range t.messages {
		if m.Role == llm.ToolResult {
			n = max(n, len(m.Text))
		}
	}
	return n
}

// canCut is true when a single result is so long that less of it would do.
func (t *transcript) canCut() bool { return t.largest() > smallText }

// cutLargest takes the middle out of results that are too long by themselves:
// where nothing can be left out as a whole, half of the longest is better than
// no answer. What people said is not cut. It is not recorded; who reads the log anew meets the same limit and does the same.
func (t *transcript) cutLargest() bool {
	limit, cut := max(t.largest()/2, smallText), false
	for i := range t.messages {
		m := &t.messages[i]
		if m.Role != llm.ToolResult || len(m.Text) <= limit {
			continue
		}
		before := len(m.Text)
		m.Text, cut = clip.Middle(m.Text, limit), true
		t.shown[i].Text = m.Text
		t.written = &llm.Written{}
		t.size -= int64(before - len(m.Text))
	}
	if cut {
		t.counted = 0 // what the provider counted is not what it is shown next
	}
	return cut
}
