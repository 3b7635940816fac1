package sim

import (
	"cmp"
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// heal ends all trouble, waits for rest, and says something to every session:
// none may be so broken that it does not answer.
func (w *world) heal(r *rand.Rand) {
	_, older := w.current()
	for _, s := range older {
		s.crash()
	}
	w.mu.Lock()
	w.calm = true
	close(w.calmed)
	ids := slices.Clone(w.ids)
	w.mu.Unlock()
	if r.IntN(2) == 0 { // a process that went through all of it must recover as well as a new one
		current, _ := w.current()
		current.crash()
		w.boot()
	}
	w.speaking.Wait() // all users are done
	for _, id := range ids {
		w.rest(id)
	}
	w.mu.Lock()
	w.limit += 1e12
	w.mu.Unlock()
	for _, id := range ids {
		if w.store.state(id).Deleted {
			continue
		}
		m := w.message(id, true)
		w.deliver(r, id, *m)
		w.rest(id)
		if st := w.store.state(id); st.ErrorID != "" || st.Pending() || st.Stopped || st.Failed {
			w.breach("%s: the last message was not answered: error %q (%s), pending %v, status %s", id, st.ErrorID, st.Reason, st.Pending(), st.Status())
		}
	}
}

// patience is after how long a session that still has something to do is stuck:
// no wait in the loop is nearly as long.
const patience = 3 * time.Hour

// rest waits until nothing is to be done for a session, and a moment longer, so
// that its worker has left; questions get a yes.
func (w *world) rest(id session.ID) {
	for waited := time.Duration(0); waited < patience; waited += time.Second {
		_ = pass(context.Background(), time.Second)
		st := w.store.state(id)
		_, asked := st.Awaiting()
		if asked && !st.Paused {
			current, _ := w.current()
			_, _ = current.sessions.Update(context.Background(), id, func(s session.State) ([]session.Payload, error) {
				return s.Decide(session.ApprovalGiven{Approved: true})
			})
		} else if !st.Wants() {
			return
		}
	}
	w.breach("%s: it is stuck after event %d", id, w.store.state(id).Last)
}

// audit compares the log with the books.
func (w *world) audit() {
	w.auditLedger()
	for _, id := range w.ids {
		history := w.store.history(id)
		w.auditMessages(id, history)
		w.auditCalls(id, history)
		w.auditRequests(id, history)
		st := w.store.state(id)
		if paid := w.books.paid[id]; paid > st.Totals.Cost {
			w.breach("%s: %d were paid, and the log says %d", id, paid, st.Totals.Cost)
		}
		folded, err := session.Fold(context.Background(), w.store.Log, session.State{ID: id})
		if err != nil || folded.Last != st.Last {
			w.breach("%s: the log folds to event %d, not %d: %v", id, folded.Last, st.Last, err)
		}
	}
}

// auditLedger compares what the events say was spent with what the ledger says.
func (w *world) auditLedger() {
	var spent, booked session.Money
	for _, id := range w.ids {
		for _, e := range w.store.history(id) {
			switch p := e.Payload.(type) {
			case session.ModelAnswered:
				spent += p.Cost
			case session.ModelFailed:
				spent += p.Cost
			}
		}
	}
	ledger, err := w.store.Spending(context.Background(), "ada", "")
	for _, m := range ledger.Months {
		booked += m.Spent
	}
	if err != nil || booked != spent || ledger.Reserved != 0 {
		w.breach("the events say that %d were spent; the ledger says %d, and %d are reserved: %v", spent, booked, ledger.Reserved, err)
	}
}

// auditMessages looks for every message in the log, once, and in what a model was shown.
func (w *world) auditMessages(id session.ID, history []session.Event) {
	stored := map[string]int{}
	for _, e := range history {
		if said, ok := e.Payload.(session.UserSaid); ok {
			stored[said.Text]++
		}
	}
	shown := func(text string) bool {
		return slices.ContainsFunc(w.books.requests[id], func(r request) bool { return contains(r.messages, text) })
	}
	deleted := w.store.state(id).Deleted
	for _, p := range w.promises[id] {
		n := stored["Please "+p.text]
		switch {
		case n > 1:
			w.breach("%s: message %s is stored %d times", id, p.text, n)
		case n == 0 && p.accepted:
			w.breach("%s: message %s was accepted and is lost", id, p.text)
		case n == 1 && !deleted && !shown(p.text):
			w.breach("%s: message %s was never shown to a model", id, p.text)
		}
	}
}

func contains(messages []llm.Message, text string) bool {
	return slices.ContainsFunc(messages, func(m llm.Message) bool { return strings.Contains(m.Text, text) })
}

// auditCalls looks for the one result of every call, and for what was really done.
func (w *world) auditCalls(id session.ID, history []session.Event) {
	results := map[int64][]session.ToolReturned{}
	for _, e := range history {
		if r, ok := e.Payload.(session.ToolReturned); ok {
			results[r.Cause] = append(results[r.Cause], r)
		}
	}
	for _, e := range history {
		c, ok := e.Payload.(session.ToolCalled)
		if !ok {
			continue
		}
		got := results[e.Number]
		if len(got) != 1 {
			w.breach("%s: call %d has %d results", id, e.Number, len(got))
			continue
		}
		times := w.books.times(id, e.Number, c.ID)
		ours := c.Name == localName || c.Name == remoteName
		switch got[0].Outcome {
		case session.Succeeded:
			if ours && times != 1 {
				w.breach("%s: call %d succeeded, and was made %d times", id, e.Number, times)
			}
		case session.Rejected:
			if times > 0 {
				w.breach("%s: call %d was rejected and made all the same", id, e.Number)
			}
		}
	}
}

// auditRequests follows what the model was shown from call to call: it only
// grows, but for what was condensed, and has everything that was said.
func (w *world) auditRequests(id session.ID, history []session.Event) {
	requests := slices.Clone(w.books.requests[id])
	requests = slices.DeleteFunc(requests, func(r request) bool { return r.purpose != "" })
	slices.SortFunc(requests, func(a, b request) int { return cmp.Compare(a.number, b.number) })
	var condensed []session.Condensed
	var before *request
	at := 0
	for i := range requests {
		r := &requests[i]
		for ; at < len(history) && history[at].Number < r.number; at++ {
			if c, ok := history[at].Payload.(session.Condensed); ok {
				condensed, before = append(condensed, c), nil
			}
		}
		if before != nil && !grew(before.messages, r.messages) {
			w.breach("%s: the request of event %d does not begin as that of event %d", id, r.number, before.number)
		}
		before = r
		for _, e := range history[:at] {
			said, ok := e.Payload.(session.UserSaid)
			if !ok || slices.ContainsFunc(condensed, func(c session.Condensed) bool { return c.From <= e.Number && e.Number <= c.To }) {
				continue
			}
			if text := strings.TrimPrefix(said.Text, "Please "); !contains(r.messages, text) {
				w.breach("%s: the request of event %d is without message %s of event %d", id, r.number, text, e.Number)
			}
		}
	}
}

// grew is true when the second history begins with all of the first.
func grew(a, b []llm.Message) bool {
	return len(a) <= len(b) && reflect.DeepEqual(a, b[:len(a)])
}

// came counts what came of it all.
func (w *world) came() map[string]int {
	out := map[string]int{}
	for _, id := range w.ids {
		for _, e := range w.store.history(id) {
			switch p := e.Payload.(type) {
			case session.ToolReturned:
				out["call: "+string(p.Outcome)]++
			case session.TurnEnded:
				out["turn: "+cmp.Or(p.ErrorID, string(p.State))]++
			case session.Condensed:
				out["history condensed"]++
			case session.ModelFailed:
				if p.Class == "owner_lost" {
					out["call of the last owner settled"]++
				}
			case session.ApprovalGiven:
				if out["approval given"]++; p.Late {
					out["approval late"]++
				}
			case session.Failed:
				out["session failed"]++
			case session.Stopped:
				if strings.Contains(p.Reason, "it was idle") {
					out["idle session closed"]++
				}
			}
		}
	}
	return out
}

// print shows what was stored, to help find the reason.
func (w *world) print() {
	w.t.Logf("rules: %+v", w.rules)
	for _, id := range w.ids {
		for _, e := range w.store.history(id) {
			w.t.Logf("%s %s %4d %s %+v", e.At.Format("15:04:05.000"), id, e.Number, e.Payload.Kind(), e.Payload)
		}
	}
}
