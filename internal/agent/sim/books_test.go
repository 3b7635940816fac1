package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"deckhand/internal/llm"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// books are what really happened outside the log: what models were shown, what
// they took for it, and what tools did.
type books struct {
	w *world

	mu       sync.Mutex
	requests map[session.ID][]request
	paid     map[session.ID]session.Money
	done     map[string]int // by session and call
}

// request is what a model was shown in the call that event number is about.
type request struct {
	asked
	messages []llm.Message
}

func newBooks(w *world) *books {
	return &books{w: w, requests: map[session.ID][]request{}, paid: map[session.ID]session.Money{}, done: map[string]int{}}
}

// shown takes down a request.
func (b *books) shown(by *server, id session.ID, req llm.Request) asked {
	b.w.store.mu.Lock()
	call := by.asked[id]
	b.w.store.mu.Unlock()
	if (call.purpose == session.ForSummary) != (len(req.Tools) == 0) {
		b.w.breach("%s: the request of event %d is not what was asked for there", id, call.number)
	}
	if err := wellFormed(req.Messages); err != nil {
		b.w.breach("%s: the request of event %d is not well formed: %v", id, call.number, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.requests[id], func(r request) bool { return r.number == call.number }) {
		b.w.breach("%s: two requests were made for event %d", id, call.number)
	}
	b.requests[id] = append(b.requests[id], request{call, slices.Clone(req.Messages)})
	return call
}

// charge takes down what a call costs.
func (b *books) charge(id session.ID, call asked, cost session.Money) {
	if cost > call.reserved {
		b.w.breach("%s: the call of event %d costs %d, and %d were reserved", id, call.number, cost, call.reserved)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid[id] += cost
	if limit := b.w.budget(); b.paid[id] > limit {
		b.w.breach("%s: %d were paid of a budget of %d", id, b.paid[id], limit)
	}
}

// did takes down that a call is made: once, as it stands in the log, and not
// before the person said yes.
func (b *books) did(by *server, c tool.Call) {
	b.mu.Lock()
	b.done[c.Session+" "+c.ID]++
	again := b.done[c.Session+" "+c.ID] > 1
	b.mu.Unlock()
	if again {
		b.w.breach("%s: call %s was made twice, the second time by server %d", c.Session, c.ID, by.n)
	}
	if err := ordered(b.w.store.history(session.ID(c.Session)), c); err != nil {
		b.w.breach("%s: call %s was made by server %d: %v", c.Session, c.ID, by.n, err)
	}
}

// times is how often a call was made.
func (b *books) times(id session.ID, number int64, call string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done[fmt.Sprintf("%s %d-%s", id, number, call)]
}

// ordered says what is wrong with making this call now.
func ordered(history []session.Event, c tool.Call) error {
	args, found, asked, yes := []byte(nil), false, false, false
	for _, e := range history {
		switch p := e.Payload.(type) {
		case session.ToolCalled:
			if c.ID == fmt.Sprintf("%d-%s", e.Number, p.ID) {
				args, found = p.Args, true
			} else if found {
				return compare(args, c.Args, asked, yes) // what comes now is about the next call
			}
		case session.ApprovalAsked:
			asked = asked || found
		case session.ApprovalGiven:
			yes = yes || found && p.Approved
			if found && p.Args != nil {
				args = p.Args
			}
		}
	}
	if !found {
		return fmt.Errorf("it is not in the log")
	}
	return compare(args, c.Args, asked, yes)
}

func compare(wanted, got []byte, asked, yes bool) error {
	if asked && !yes {
		return fmt.Errorf("it was not approved")
	}
	if !bytes.Contains(wanted, bytes.Trim(got, "{}")) { // the model's rating is taken out
		return fmt.Errorf("its arguments are %s and not %s", got, wanted)
	}
	return nil
}

// wellFormed says what is wrong with a history: providers refuse one in which a
// call has no result directly behind it, or a message is empty.
func wellFormed(messages []llm.Message) error {
	var open []string
	for i, m := range messages {
		if m.Role != llm.ToolResult && len(open) > 0 {
			return fmt.Errorf("message %d comes before the results of %s", i, strings.Join(open, ", "))
		}
		if strings.TrimSpace(m.Text) == "" && len(m.Images) == 0 && len(m.Calls) == 0 {
			return fmt.Errorf("message %d (%s) is empty", i, m.Role)
		}
		switch m.Role {
		case llm.ToolResult:
			at := slices.Index(open, m.Call)
			if at < 0 {
				return fmt.Errorf("message %d is the result of %q, which is not open", i, m.Call)
			}
			open = slices.Delete(open, at, at+1)
		case llm.Assistant:
			if i == 0 {
				return fmt.Errorf("it begins with an answer")
			}
			for _, c := range m.Calls {
				open = append(open, c.ID)
			}
		case llm.User:
		default:
			return fmt.Errorf("message %d is of %q", i, m.Role)
		}
	}
	switch {
	case len(messages) == 0:
		return fmt.Errorf("it is empty")
	case len(open) > 0:
		return fmt.Errorf("it ends before the results of %s", strings.Join(open, ", "))
	case messages[len(messages)-1].Role == llm.Assistant:
		return fmt.Errorf("it ends with an answer")
	}
	return nil
}
