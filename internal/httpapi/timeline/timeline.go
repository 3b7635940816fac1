// Package timeline finds out where the time of a conversation went, from its log
// alone: waiting, making a sandbox, asking the model, running tools, asking the
// person. It reads a log once, in order, and holds no more of it than one page.
package timeline

import (
	"slices"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
)

// The kinds of time. Where several overlap, a moment counts for the first: a model call takes as
// long while a sandbox starts, a tool that waits for its sandbox does nothing, and waiting comes
// last.
const (
	modelTime = iota
	sandboxTime
	toolTime
	approvalTime
	queueTime
	kindsOfTime
)

var timeNames = [kindsOfTime]string{"model", "sandbox", "tool", "approval", "queue"}

// maxSpans is how many spans a page has. A turn may be longer than that;
// then the newest count.
const maxSpans = 10_000

// Fold takes the events of a log, in order.
type Fold struct {
	after int64
	limit int
	page  pagePlace

	spans   []*api.TimelineSpan
	turns   []*api.TimelineTurn
	leftOut int
	more    bool

	turn  *api.TimelineTurn // that is under way
	ready bool              // the sandbox is
	// What is under way. Of messages and tools there may be many.
	start, sandbox, model *lasting
	messages              []*lasting
	tools                 map[string]*toolCall

	at     time.Time // of the last event
	going  [kindsOfTime]int
	totals [kindsOfTime]time.Duration
}

// pagePlace says where an event is, seen from the page that is asked for.
type pagePlace int

const (
	beforePage pagePlace = iota
	onPage
	behindPage
)

// lasting is something that goes on.
type lasting struct {
	kind int
	span *api.TimelineSpan // also if it is not on the page
}

// toolCall runs or waits for approval.
type toolCall struct {
	name          string
	number        int64
	run, approval *lasting
}

// New begins a page: the turns after the one with the number after, so many as limit.
func New(after int64, limit int) *Fold {
	t := &Fold{after: after, limit: limit, tools: map[string]*toolCall{}}
	if after == 0 {
		t.page = onPage
	}
	return t
}

// Add takes the next event.
func (t *Fold) Add(e session.Event) {
	t.pass(e.At)
	if t.page == beforePage && e.Number > t.after && (t.turn == nil || t.turn.EventID > t.after) {
		t.page = onPage
	}
	switch p := e.Payload.(type) {
	case session.Created, session.StartRequested:
		if t.start == nil {
			t.start = t.begin(queueTime, "start", e.Number)
		}
	case session.Claimed:
		t.end(&t.start)
		if !t.ready && t.sandbox == nil {
			t.sandbox = t.begin(sandboxTime, "starting", e.Number)
		}
	case session.WorkspaceStep:
		if t.sandbox == nil || t.sandbox.span.Name != p.Step {
			t.end(&t.sandbox)
			t.sandbox = t.begin(sandboxTime, p.Step, e.Number)
		}
	case session.WorkspaceReady:
		t.ready = true
		t.end(&t.sandbox)
	case session.UserSaid:
		t.messages = append(t.messages, t.begin(queueTime, "message", e.Number))
	case session.Withdrawn:
		t.messages = slices.DeleteFunc(t.messages, func(m *lasting) bool {
			gone := slices.Contains(p.Messages, m.span.EventID)
			if gone {
				t.end(&m)
			}
			return gone
		})
	case session.TurnBegan:
		t.takeUp()
		t.beginTurn(e.Number)
	case session.ModelAsked:
		if p.Purpose == "" { // what was said during the turn is shown to the model now
			t.takeUp()
		}
		t.end(&t.model)
		t.model = t.begin(modelTime, p.Model, e.Number)
	case session.ModelAnswered, session.ModelFailed:
		t.end(&t.model)
	case session.ToolCalled, session.ApprovalAsked, session.ApprovalGiven, session.ToolReturned:
		t.addTool(e)
	case session.TurnEnded:
		t.endTurn()
	case session.Paused: // from here on it is the person's time
		t.takeUp()
	case session.Stopped, session.Failed, session.Deleted:
		t.halt()
	}
}

func (t *Fold) addTool(e session.Event) {
	switch p := e.Payload.(type) {
	case session.ToolCalled:
		t.tools[p.ID] = &toolCall{name: p.Name, number: e.Number, run: t.begin(toolTime, p.Name, e.Number)}
	case session.ApprovalAsked:
		if c := t.tools[p.ID]; c != nil { // it does not run before it may
			t.end(&c.run)
			c.approval = t.begin(approvalTime, c.name, e.Number)
		}
	case session.ApprovalGiven:
		if c := t.tools[p.ID]; c != nil {
			if t.end(&c.approval); p.Approved {
				c.run = t.begin(toolTime, c.name, c.number)
			}
		}
	case session.ToolReturned:
		if c := t.tools[p.ID]; c != nil {
			t.end(&c.run)
			t.end(&c.approval)
			delete(t.tools, p.ID)
		}
	}
}

// pass lets the time go by: it counts for what is most worth telling.
func (t *Fold) pass(now time.Time) {
	took := now.Sub(t.at)
	if t.at.IsZero() || took > 0 {
		t.at = now
	}
	for kind, n := range t.going {
		if n > 0 && took > 0 {
			t.totals[kind] += took
			return
		}
	}
}

func (t *Fold) begin(kind int, name string, number int64) *lasting {
	t.going[kind]++
	l := &lasting{kind: kind, span: &api.TimelineSpan{Kind: timeNames[kind], Name: name, StartedAt: t.at, EventID: number}}
	switch t.page {
	case onPage:
		t.spans = append(t.spans, l.span)
		if len(t.spans) >= 2*maxSpans {
			t.cut()
		}
	case behindPage:
		t.more = true
	}
	return l
}

// end ends one thing, if it goes on.
func (t *Fold) end(l **lasting) {
	if *l == nil {
		return
	}
	t.going[(*l).kind]--
	(*l).span.EndedAt = new(t.at)
	*l = nil
}

// takeUp ends the waiting of messages.
func (t *Fold) takeUp() {
	for _, m := range t.messages {
		t.end(&m)
	}
	t.messages = nil
}

// halt ends everything.
func (t *Fold) halt() {
	t.takeUp()
	t.end(&t.start)
	t.end(&t.sandbox)
	t.end(&t.model)
	for _, c := range t.tools {
		t.end(&c.run)
		t.end(&c.approval)
	}
	clear(t.tools)
	t.endTurn()
	t.ready = false
}

func (t *Fold) beginTurn(number int64) {
	t.endTurn() // where a turn was lost, another begins without its end
	t.turn = &api.TimelineTurn{StartedAt: t.at, EventID: number}
	switch t.page {
	case onPage:
		t.turns = append(t.turns, t.turn)
	case behindPage:
		t.more = true
	}
}

func (t *Fold) endTurn() {
	if t.turn == nil {
		return
	}
	t.turn.EndedAt = new(t.at)
	t.turn = nil
	if t.page == onPage && len(t.turns) == t.limit {
		t.page = behindPage
	}
}

// cut keeps the newest spans that took time.
func (t *Fold) cut() {
	kept := t.spans[:0]
	for _, s := range t.spans {
		if s.EndedAt == nil || s.EndedAt.After(s.StartedAt) {
			kept = append(kept, s)
		}
	}
	over := max(0, len(kept)-maxSpans)
	t.leftOut += over
	n := copy(t.spans, kept[over:])
	clear(t.spans[n:])
	t.spans = t.spans[:n]
}

// End is the page. What still goes on is counted up to now.
func (t *Fold) End(now time.Time) api.Timeline {
	t.pass(now)
	t.cut()
	out := api.Timeline{Spans: make([]api.TimelineSpan, 0, len(t.spans)), Turns: make([]api.TimelineTurn, 0, len(t.turns)), HasMore: t.more, SpansLeftOut: t.leftOut,
		Totals: api.TimelineTotals{Queue: t.totals[queueTime].Milliseconds(), Sandbox: t.totals[sandboxTime].Milliseconds(), Model: t.totals[modelTime].Milliseconds(),
			Tool: t.totals[toolTime].Milliseconds(), Approval: t.totals[approvalTime].Milliseconds()}}
	for _, s := range t.spans {
		out.Spans = append(out.Spans, *s)
	}
	for _, n := range t.turns {
		out.Turns = append(out.Turns, *n)
	}
	return out
}
