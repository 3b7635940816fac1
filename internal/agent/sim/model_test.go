package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// model answers by dice, and shows every request to the books first.
type model struct{ s *server }

// script is what one call is going to give.
type script struct {
	parts []llm.Part
	err   error
	// hangs does not end before all trouble does. free costs nothing, as the provider refused it.
	hangs, free bool
}

// Stream implements llm.Model.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		w, id := m.s.w, session.ID(req.Conversation)
		if err := ctx.Err(); err != nil || m.s.dead.Load() {
			yield(llm.Part{}, err)
			return
		}
		defer m.s.queue.asks()()
		call := w.books.shown(m.s, id, req)
		r := w.dice("model", id)
		s := m.plan(r, id, req)
		if !s.free {
			w.books.charge(id, call, bill(req, s, r))
		}
		if err := pass(ctx, upTo(r, 30*time.Second)); err != nil {
			yield(llm.Part{}, err)
			return
		}
		for _, part := range s.parts {
			if !yield(part, nil) {
				return
			}
			if err := pass(ctx, upTo(r, 2*time.Second)); err != nil {
				yield(llm.Part{}, err)
				return
			}
		}
		if s.hangs {
			select {
			case <-ctx.Done():
				s.err = ctx.Err()
			case <-w.calmed:
				s.err = &llm.Error{Class: llm.ClassNetwork, Message: "nothing came any more", Began: len(s.parts) > 0}
			}
		}
		if s.err != nil {
			yield(llm.Part{}, s.err)
		}
	}
}

// plan decides what the call gives.
func (m *model) plan(r *rand.Rand, id session.ID, req llm.Request) script {
	w := m.s.w
	if len(req.Tools) == 0 { // a summary is asked for
		s := script{parts: []llm.Part{{Text: "In short: " + word(r, 20)}}}
		return m.broken(r, req, s)
	}
	if w.isCalm() {
		return script{parts: []llm.Part{{Text: "All is well again: " + word(r, 4)}, done(req, llm.Message{}, r)}}
	}
	text := llm.Part{Text: "I think " + word(r, 1+r.IntN(60))}
	switch n := r.IntN(10); {
	case n < 3:
		return m.broken(r, req, script{parts: []llm.Part{{Reasoning: "Hm."}, text}})
	case n < 4:
		call := &llm.Call{ID: "c0", Name: "finish", Args: args(w.rules.analyzer, "message", "done "+word(r, 3))}
		return m.broken(r, req, script{parts: []llm.Part{text, {Call: call}}})
	}
	s := script{}
	if r.IntN(2) == 0 {
		s.parts = append(s.parts, text)
	}
	for i := range 1 + r.IntN(3) {
		s.parts = append(s.parts, llm.Part{Call: m.call(r, i)})
	}
	return m.broken(r, req, s)
}

// call is one of the model's calls. Its id comes again in the next answer, as
// with models that count from zero.
func (m *model) call(r *rand.Rand, i int) *llm.Call {
	w := m.s.w
	c := &llm.Call{ID: fmt.Sprintf("c%d", i), Name: []string{localName, remoteName}[r.IntN(2)], Args: args(w.rules.analyzer, "command", "make "+word(r, 2))}
	switch {
	case w.strikes(r, 20):
		w.fault("model: arguments do not fit")
		c.Args = json.RawMessage(`{"command":7}`)
	case w.strikes(r, 10):
		w.fault("model: arguments are no JSON")
		c.Args = json.RawMessage(`"{\"command\":"`)
	case w.strikes(r, 10):
		w.fault("model: no such tool")
		c.Name = "teleport"
	}
	return c
}

// broken is the script, or one of the ways in which it goes wrong.
func (m *model) broken(r *rand.Rand, req llm.Request, s script) script {
	w := m.s.w
	var whole llm.Message
	for _, p := range s.parts {
		whole.Text += p.Text
		if p.Call != nil {
			whole.Calls = append(whole.Calls, *p.Call)
		}
	}
	refused := func(class llm.Class, after time.Duration) script {
		w.fault("model: " + string(class))
		return script{free: true, err: &llm.Error{Class: class, Message: "no", RetryAfter: after}}
	}
	half := s.parts[:r.IntN(len(s.parts)+1)]
	switch {
	case w.strikes(r, 40):
		return refused(llm.ClassRate, upTo(r, 15*time.Minute))
	case w.strikes(r, 40):
		return refused(llm.ClassOverload, 0)
	case w.strikes(r, 30):
		return refused(llm.ClassContext, 0)
	case w.strikes(r, 10):
		return refused(llm.ClassAuth, 0)
	case w.strikes(r, 10):
		return refused(llm.ClassPolicy, 0)
	case w.strikes(r, 15):
		return refused(llm.ClassInternal, 0)
	case w.strikes(r, 15):
		w.fault("model: not reached")
		return script{free: true, err: &llm.Error{Class: llm.ClassNetwork, Message: "no way", Unsent: true}}
	case w.strikes(r, 50):
		w.fault("model: connection lost")
		return script{parts: half, err: &llm.Error{Class: llm.ClassNetwork, Message: "lost", Began: len(half) > 0}}
	case w.strikes(r, 20):
		w.fault("model: ends early")
		return script{parts: half}
	case w.strikes(r, 40):
		w.fault("model: hangs")
		return script{parts: half, hangs: true}
	case w.strikes(r, 20):
		w.fault("model: says nothing")
		return script{parts: []llm.Part{done(req, llm.Message{}, r)}}
	case w.strikes(r, 30):
		w.fault("model: answer cut at its limit")
		s.parts = append(half, done(req, whole, r))
		s.parts[len(half)].Done.Cut = true
		return s
	}
	s.parts = append(s.parts, done(req, whole, r))
	return s
}

// done is the end of an answer, with tokens counted as the provider does.
func done(req llm.Request, answer llm.Message, r *rand.Rand) llm.Part {
	return llm.Part{Done: &llm.Done{Usage: llm.Usage{Input: readTokens(req), Output: written(answer, r)}}}
}

// written are the tokens of an answer: at least those of what can be seen of it.
func written(answer llm.Message, r *rand.Rand) int64 {
	seen := tokens(answer)
	return seen + r.Int64N(max(maxOutput-seen, 0)+1)
}

// readTokens are those of a request, always the same for the same words.
func readTokens(req llm.Request) int64 {
	n := int64(len(req.System)) / 3
	for _, t := range req.Tools {
		n += int64(len(t.Name)+len(t.Description)+len(t.Schema)) / 3
	}
	for _, m := range req.Messages {
		n += tokens(m)
	}
	return n
}

func tokens(m llm.Message) int64 {
	n := 4 + len(m.Text)/3
	for _, c := range m.Calls {
		n += 4 + (len(c.Name)+len(c.Args))/3
	}
	return int64(n)
}

// bill is what the provider takes for a call, whether it is heard to its end or not.
func bill(req llm.Request, s script, r *rand.Rand) session.Money {
	u := llm.Usage{Input: readTokens(req), Output: r.Int64N(maxOutput + 1)}
	for _, p := range s.parts {
		if p.Done != nil {
			u = p.Done.Usage
		}
	}
	return session.Money(math.Ceil(1e3 * (price.Input*float64(u.Input) + price.Output*float64(u.Output))))
}

// args is an object of one argument, and of the model's rating if it is asked for one.
func args(analyzer, name, value string) json.RawMessage {
	object := map[string]string{name: value}
	if analyzer == "llm" && name != "message" {
		object["security_risk"] = []string{"LOW", "HIGH"}[len(value)%2]
	}
	out, _ := json.Marshal(object)
	return out
}

// word is some text of n words that is hardly ever the same twice.
func word(r *rand.Rand, n int) string {
	text := fmt.Sprintf("%x", r.Uint64())
	for range n - 1 {
		text += fmt.Sprintf(" w%d", r.IntN(100))
	}
	return text
}
