package takeover

import (
	"fmt"
	"slices"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// converter converts stored events, one after the other. The result must be a well-formed
// history for the model: each call with one result, before the next answer.
type converter struct {
	zone   *time.Location
	latest time.Time // what is later than this cannot be true
	events []session.Event
	// first is how many events stand before those that are converted.
	first int
	at    time.Time // of the last event
	// numbers are ours by the ids of the legacy server, ids is the way back in order.
	numbers map[int64]int64
	ids     []int64
	// open are the calls that have no result yet, answer is what made them, and since
	// the number of that event.
	open   []pending
	answer string
	since  int64
	// steps are the stretches from an answer with calls to the last of its results.
	steps [][2]int64
	// used are the ids of all calls so far.
	used map[string]bool

	instructions string
	spent        session.Totals
}

// pending is a call without a result.
type pending struct {
	id     string // ours
	theirs string
	name   string
	action int64 // the number of its action, 0 if there was none
}

func newConverter(first int, zone *time.Location, now time.Time) *converter {
	return &converter{zone: zone, latest: now.Add(24 * time.Hour), first: first, numbers: map[int64]int64{}, used: map[string]bool{}}
}

// next is the number that the next event will have.
func (c *converter) next() int64 { return int64(c.first+len(c.events)) + 1 }

func (c *converter) push(p session.Imported) {
	c.events = append(c.events, session.Event{At: c.at, Payload: p})
}

// add converts one event.
func (c *converter) add(id int64, p v0.Past) error {
	c.clock(p.At)
	if p.Kind == "null" { // it says that nothing happened
		return nil
	}
	if p.Instructions != "" {
		c.instructions = p.Instructions
	}
	if p.Spent != nil {
		c.spent = *p.Spent
	}
	out := session.Imported{Event: p.Event, Cause: c.numbers[p.Cause]}
	switch {
	case p.Said != nil:
		out.Said = p.Said
	case p.Words != "":
		c.settle()
		out.Answered = &session.ModelAnswered{Text: p.Words}
	case p.Made != nil:
		out.Answered = c.call(*p.Made)
	case p.Forgets != nil:
		out.Condensed = c.forget(*p.Forgets)
	case p.Result != nil || p.Note != "":
		c.result(&out, p)
	}
	if p.Kind == "condensation" {
		event, err := v0.Renumber(p.Event, func(id int64) (int64, bool) { n, ok := c.numbers[id]; return n, ok })
		if err != nil {
			return err
		}
		out.Event = event
	}
	c.numbers[id], c.ids = c.next(), append(c.ids, id)
	c.push(out)
	return nil
}

// call announces an answer with all its calls at the first of them.
func (c *converter) call(m v0.PastCall) *session.ModelAnswered {
	if m.ID != "" && m.Answer == c.answer {
		for i := range c.open {
			if c.open[i].theirs == m.ID {
				c.open[i].action = c.next()
				return nil
			}
		}
	}
	c.settle()
	number := c.next()
	a := &session.ModelAnswered{Text: m.Text}
	for i, t := range m.Calls {
		theirs := t.ID
		if t.ID == "" || c.used[t.ID] {
			t.ID = fmt.Sprintf("taken-%d-%d", number, i)
		}
		c.used[t.ID] = true
		p := pending{id: t.ID, theirs: theirs, name: t.Name}
		if theirs == m.ID {
			p.action = number
		}
		c.open = append(c.open, p)
		a.ToolCalls = append(a.ToolCalls, t)
	}
	c.answer, c.since = m.Answer, number
	return a
}

// result gives an observation to the call that it answers, or keeps it as a note.
func (c *converter) result(out *session.Imported, p v0.Past) {
	if r := p.Result; r != nil {
		i := slices.IndexFunc(c.open, func(o pending) bool {
			return r.ID != "" && o.theirs == r.ID || o.action > 0 && o.action == out.Cause
		})
		if i >= 0 {
			o := c.open[i]
			r.ID, r.Name, r.Cause = o.id, o.name, o.action
			out.Returned = r
			c.close(i, c.next())
			return
		}
	}
	if p.Note != "" {
		out.Told = &session.Nudged{Rule: "imported", Text: p.Note}
	}
}

func (c *converter) close(i int, number int64) {
	if c.open = slices.Delete(c.open, i, i+1); len(c.open) == 0 {
		c.steps = append(c.steps, [2]int64{c.since, number})
	}
}

// settle gives each open call a result that says that its result is unknown.
func (c *converter) settle() {
	for len(c.open) > 0 {
		o := c.open[0]
		event, text := v0.Lost()
		if o.action == 0 {
			event = nil // clients never heard of the call
		}
		number := c.next()
		c.push(session.Imported{Event: event, Cause: o.action,
			Returned: &session.ToolReturned{ID: o.id, Name: o.name, Cause: o.action, Outcome: session.Unknown, Output: text}})
		c.close(0, number)
	}
}

// forget is a condensation in our numbers; nil if what it leaves out cannot be said in
// one stretch. The model then sees more than it did, and nothing wrong.
func (c *converter) forget(f v0.Condensed) *session.Condensed {
	from, to := f.From, f.To
	if len(f.IDs) > 0 {
		from, to = slices.Min(f.IDs), slices.Max(f.IDs)
	}
	i, _ := slices.BinarySearch(c.ids, from)
	j, found := slices.BinarySearch(c.ids, to)
	if found {
		j++
	}
	if i >= j || len(f.IDs) > 0 && j-i > len(f.IDs) {
		return nil
	}
	out := session.Condensed{From: c.numbers[c.ids[i]], To: c.numbers[c.ids[j-1]], Summary: f.Summary}
	for _, s := range c.steps {
		if s[0] < out.From && out.From <= s[1] {
			out.From = s[1] + 1
		}
		if s[0] <= out.To && out.To < s[1] {
			out.To = s[0] - 1
		}
	}
	if len(c.open) > 0 {
		out.To = min(out.To, c.since-1)
	}
	if out.From > out.To {
		return nil
	}
	if out.Summary == "" {
		out.Summary = "No summary was made of it."
	}
	return &out
}

// clock reads a timestamp. History does not go backwards, and does not come from the future.
func (c *converter) clock(text string) {
	t, ok := moment(text, c.zone)
	if ok && t.After(c.at) && t.Before(c.latest) {
		c.at = t
	}
}

// layouts are how times are written without a zone.
var layouts = []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"}

// moment reads a time, with a zone or in the given one.
func moment(text string, zone *time.Location) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	for i := 0; err != nil && i < len(layouts); i++ {
		t, err = time.ParseInLocation(layouts[i], text, zone)
	}
	if err != nil || t.Year() < 2000 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t.UTC().Truncate(time.Microsecond), true
}
