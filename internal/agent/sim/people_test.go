package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"deckhand/internal/session"
)

// promise is a message that a person sent. Accepted is what they were told.
type promise struct {
	key, text string
	accepted  bool
}

// change is a rule of the session.
type change = func(session.State) ([]session.Payload, error)

// create makes a session. People try again until they are told that it is there.
func (w *world) create(r *rand.Rand) {
	w.mu.Lock()
	id := session.ID(fmt.Sprintf("s%d-%d", w.seed, len(w.ids)))
	w.ids = append(w.ids, id)
	w.mu.Unlock()
	var first *session.UserSaid
	if r.IntN(3) > 0 {
		first = w.message(id, true)
	}
	for range 100 {
		_, err := w.reach(r).sessions.Create(context.Background(), id, session.Created{Owner: "ada"}, first)
		if err == nil || errors.Is(err, session.ErrConflict) {
			if first != nil {
				w.accept(id, first.Key)
			}
			return
		}
		_ = pass(context.Background(), time.Second)
	}
	w.breach("%s cannot be created", id)
}

// message is a new one, known to be on its way.
func (w *world) message(id session.ID, withKey bool) *session.UserSaid {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &promise{text: fmt.Sprintf("<m%d>", len(w.promises[id]))}
	if withKey {
		p.key = "k" + p.text
	}
	w.promises[id] = append(w.promises[id], p)
	return &session.UserSaid{Text: "Please " + p.text, Key: p.key}
}

// accept takes down that a message was confirmed.
func (w *world) accept(id session.ID, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.promises[id] {
		if p.key == key {
			p.accepted = true
		}
	}
}

// reach is the server that a request comes to: nearly always the right one.
func (w *world) reach(r *rand.Rand) *server {
	if peers := w.replicas(); len(peers) > 0 {
		return peers[r.IntN(len(peers))]
	}
	current, older := w.current()
	if len(older) > 0 && r.IntN(3) == 0 {
		return older[r.IntN(len(older))]
	}
	return current
}

// deliver sends a message until it is confirmed or the person gives up. With a
// key it is confirmed also by being known.
func (w *world) deliver(r *rand.Rand, id session.ID, m session.UserSaid) {
	for range 4 {
		_, err := w.reach(r).sessions.Update(context.Background(), id, func(s session.State) ([]session.Payload, error) { return s.Say(m) })
		switch {
		case err == nil && m.Key != "", errors.Is(err, session.ErrDuplicate):
			w.accept(id, m.Key)
			return
		case err == nil, m.Key == "", errors.Is(err, session.ErrDeleted), errors.Is(err, session.ErrNotFound):
			return
		}
		_ = pass(context.Background(), upTo(r, 10*time.Second))
	}
}

// ask makes a change once; what comes of it is the log's business.
func (w *world) ask(r *rand.Rand, id session.ID, c change) {
	_, _ = w.reach(r).sessions.Update(context.Background(), id, c)
}

// act is one thing that people or fate do.
func (w *world) act(r *rand.Rand) {
	w.mu.Lock()
	id := w.ids[len(w.ids)-1-r.IntN(min(w.rules.sessions, len(w.ids)))]
	w.mu.Unlock()
	if _, asked := w.store.state(id).Awaiting(); asked && r.IntN(2) == 0 {
		w.answer(r, id)
		return
	}
	switch n := r.IntN(120); {
	case n >= 100: // the agent is left alone for a while
		_ = pass(context.Background(), upTo(r, 10*time.Minute))
	case n < 25:
		w.deliver(r, id, *w.message(id, true))
	case n < 30:
		w.deliver(r, id, *w.message(id, false))
	case n < 40:
		w.repeat(r, id)
	case n < 48:
		w.fault("person: stop")
		w.ask(r, id, func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	case n < 52:
		w.ask(r, id, session.State.Start)
	case n < 60:
		w.fault("person: pause")
		if n%2 == 0 {
			w.ask(r, id, session.State.Pause)
		} else {
			w.ask(r, id, session.State.PauseNow)
		}
	case n < 66:
		w.ask(r, id, session.State.Resume)
	case n < 70:
		w.mu.Lock()
		w.limit += session.Money(r.Int64N(100e6))
		w.mu.Unlock()
	case n < 71:
		w.fault("person: delete")
		w.ask(r, id, session.State.Delete)
		w.create(r)
	case n < 75:
		w.fault("sandbox lost")
		w.box(id).lose()
	case n < 78 && !w.rules.shared: // a night goes by; servers that share their queues would exchange too many messages
		_ = pass(context.Background(), time.Hour+upTo(r, 8*time.Hour))
	default:
		w.trouble(r, n)
	}
}

// trouble is what happens to servers.
func (w *world) trouble(r *rand.Rand, n int) {
	if w.members != nil {
		w.replicaTrouble(r, n)
		return
	}
	current, older := w.current()
	switch {
	case len(older) > 0 && n < 90:
		w.fault("server: the replaced one dies")
		older[0].crash()
	case n < 92:
		w.fault("server: crash")
		current.crash()
		_ = pass(context.Background(), upTo(r, 5*time.Second)*time.Duration(r.IntN(2)))
		w.boot()
	case n < 95:
		w.fault("server: restart")
		current.stop()
		w.boot()
	default:
		w.fault("server: replaced and not dead")
		w.boot()
	}
}

// repeat delivers a message again, or one message several times at once.
func (w *world) repeat(r *rand.Rand, id session.ID) {
	w.fault("person: message twice")
	w.mu.Lock()
	var known []*promise
	for _, p := range w.promises[id] {
		if p.key != "" {
			known = append(known, p)
		}
	}
	w.mu.Unlock()
	if len(known) > 0 && r.IntN(2) == 0 {
		p := known[r.IntN(len(known))]
		w.deliver(r, id, session.UserSaid{Text: "Please " + p.text, Key: p.key})
		return
	}
	m := w.message(id, true)
	for range 2 + r.IntN(2) {
		again := w.dice("repeat", id)
		w.speaking.Go(func() { w.deliver(again, id, *m) })
	}
}

// answer decides about the call that waits.
func (w *world) answer(r *rand.Rand, id session.ID) {
	g := session.ApprovalGiven{Approved: r.IntN(3) > 0}
	switch r.IntN(4) {
	case 0:
		g.Reason = "Because."
	case 1:
		g.Args = args(w.rules.analyzer, "command", "edited "+word(r, 2))
	case 2:
		for _, e := range w.store.history(id) {
			if a, ok := e.Payload.(session.ApprovalAsked); ok {
				g.Always = a.Pattern
			}
		}
	}
	w.ask(r, id, func(s session.State) ([]session.Payload, error) { return s.Decide(g) })
}
