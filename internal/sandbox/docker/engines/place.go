package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
)

const (
	// answerTime is how long an engine may take to answer, and waitTime how long callers wait for it. They do not wait
	// that long for an engine that did not answer before; it takes part again as soon as it has answered.
	answerTime = 10 * time.Second
	waitTime   = 3 * time.Second
	downTime   = 250 * time.Millisecond
)

// errLate means that an engine has not answered yet.
var errLate = errors.New("no answer")

// answer is what an engine answered.
type answer[T any] struct {
	*engine
	value T
	err   error
}

// ask asks all engines at once and returns their answers in order. It also records which of them answer.
func ask[T any](ctx context.Context, s *Set, f func(context.Context, *engine) (T, error)) []answer[T] {
	out := make([]answer[T], len(s.engines))
	got := make([]chan answer[T], len(s.engines))
	for i, e := range s.engines {
		got[i] = make(chan answer[T], 1)
		s.asking.Go(func() {
			limited, cancel := context.WithTimeout(s.ctx, answerTime)
			defer cancel()
			v, err := f(limited, e)
			s.answered(e, err)
			got[i] <- answer[T]{e, v, err}
		})
	}
	begun := time.Now()
	for i, e := range s.engines {
		wait := waitTime
		if e.isDown() {
			wait = downTime
		}
		late := time.NewTimer(time.Until(begun.Add(wait)))
		select {
		case out[i] = <-got[i]:
		case <-ctx.Done():
			out[i] = answer[T]{engine: e, err: ctx.Err()}
		case <-late.C:
			out[i] = answer[T]{engine: e, err: errLate}
			s.answered(e, errLate)
		}
		late.Stop()
	}
	return out
}

func (e *engine) isDown() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.down
}

// answered records whether an engine answers.
func (s *Set) answered(e *engine, err error) {
	if s.ctx.Err() != nil {
		return
	}
	down := err != nil
	e.mu.Lock()
	was := e.down
	e.down = down
	if down {
		e.state.CPUs = 0 // it may be another machine afterwards
	}
	e.mu.Unlock()
	switch {
	case len(s.engines) == 1:
	case down && !was:
		s.log.Warn("a container engine does not answer; new sandboxes are started on others", "engine", e.Address(), "error", err)
	case was && !down:
		s.log.Info("a container engine answers again", "engine", e.Address())
	}
}

// unconfigured says that a sandbox is on an engine that is not configured any more.
type unconfigured struct{ address string }

func (u *unconfigured) Error() string {
	return "the container engine at " + u.address + " is not configured"
}

// find returns the engine of a sandbox: the one in its handle, otherwise the one that has it. It is nil without an error if no engine has it. If
// one of them did not answer, that is an error that names it.
func (s *Set) find(ctx context.Context, h sandbox.Handle) (*engine, error) {
	if err := sandbox.CheckID(h.ID); err != nil {
		return nil, err
	}
	address := docker.EngineOf(h)
	if e := s.named(ctx, address, docker.EngineID(h)); e != nil {
		s.remember(h.ID, place{e, true})
		return e, nil
	}
	s.mu.Lock()
	known := s.places[h.ID]
	s.mu.Unlock()
	if known.engine != nil {
		return known.engine, nil
	}
	if len(s.engines) == 1 && address == "" {
		return s.engines[0], nil
	}
	var silent []string
	var why error
	for _, a := range ask(ctx, s, func(ctx context.Context, e *engine) (bool, error) { return e.Has(ctx, h.ID) }) {
		switch {
		case a.err != nil:
			silent, why = append(silent, a.Address()), errors.Join(why, a.err)
		case a.value:
			s.remember(h.ID, place{a.engine, false})
			return a.engine, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.configured(address) != nil:
		return nil, &sandbox.Unavailable{Cause: &unconfigured{address}, Reason: fmt.Sprintf(
			"The workspace of this conversation is on another container engine than the one that is now at %s. Add --docker-host with an address of that engine, or delete the conversation.", address)}
	case address != "":
		return nil, &sandbox.Unavailable{Cause: &unconfigured{address}, Reason: fmt.Sprintf(
			"The workspace of this conversation is on the container engine at %s, which is not configured. Add --docker-host %s, or delete the conversation.", address, address)}
	case why != nil:
		return nil, &sandbox.Unavailable{Cause: why, Reason: fmt.Sprintf(
			"The workspace of this conversation is on none of the container engines that answer. It may be on %s, which cannot be reached. Start the engine, or remove its --docker-host.", strings.Join(silent, " or "))}
	}
	return nil, nil
}

// named returns the engine with an ID, at whatever address, or nil. Without an ID, or if the one at the address does not say its own, it
// is the one at the address.
func (s *Set) named(ctx context.Context, address, id string) *engine {
	e := s.configured(address)
	if id == "" || e != nil && e.ID() == id {
		return e
	}
	for _, other := range s.engines {
		if other.ID() == id {
			return other
		}
	}
	if e == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	if now, err := e.Identify(limited); err == nil && now != id {
		return nil
	}
	return e
}

// EngineOf implements sandbox.Sharer.
func (s *Set) EngineOf(h sandbox.Handle) string { return docker.EngineID(h) }

// Reached implements sandbox.Sharer.
func (s *Set) Reached(ctx context.Context) (ids []string) {
	for _, a := range ask(ctx, s, func(ctx context.Context, e *engine) (string, error) { return e.Identify(ctx) }) {
		if a.err == nil && a.value != "" {
			ids = append(ids, a.value)
		}
	}
	return ids
}

func (s *Set) remember(id string, p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.sure || s.places[id].engine == nil {
		s.places[id] = p
	}
}

// load is what decides where a new sandbox is started.
type load struct {
	live  []string
	state sandbox.Engine
	image bool
}

// here reports whether an engine is reached by a socket of this machine, so that it may see the same files.
func (e *engine) here() bool { return strings.HasPrefix(e.Address(), "unix:") }

// choose returns the engine that has the fewest live sandboxes for its processors and memory. If images are never pulled, it must have
// the image, and for a sandbox in a folder of this machine it must be here, if one is.
func (s *Set) choose(ctx context.Context, spec sandbox.Spec) (*engine, error) {
	local := spec.Folder != "" && slices.ContainsFunc(s.engines, (*engine).here)
	answers := ask(ctx, s, func(ctx context.Context, e *engine) (l load, err error) {
		if l.state, err = s.stateOf(ctx, e); err != nil {
			return l, err
		}
		if l.image = s.pull != "never"; !l.image {
			l.image, _ = e.HasImage(ctx, spec.Image) // the start returns the reason
		}
		l.live, err = e.Live(ctx)
		return l, err
	})
	var best *engine
	lowest, withImage := math.Inf(1), false
	var why error
	for _, a := range answers {
		if a.err != nil {
			why = errors.Join(why, a.err)
			continue
		}
		if local && !a.here() {
			continue
		}
		n := s.count(a.engine, a.value.live, a.engine.Instance()+"/"+spec.ID)
		full := weigh(n, a.value.state, spec.Limits.OrDefault())
		if a.value.image == withImage && full < lowest || a.value.image && !withImage {
			best, lowest, withImage = a.engine, full, a.value.image
		}
	}
	if best == nil {
		var said *sandbox.Unavailable
		if errors.As(why, &said) && !errors.Is(why, errLate) {
			return nil, why
		}
		return nil, &sandbox.Unavailable{Cause: why, Reason: "None of the container engines of --docker-host answers. Start one of them."}
	}
	return best, nil
}

// count returns the number of sandboxes that run on an engine or are being started there, without the one with this name.
func (s *Set) count(e *engine, live []string, without string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.starting[e])
	for _, id := range live {
		if !s.starting[e][id] {
			n++
		}
	}
	if s.starting[e][without] || slices.Contains(live, without) {
		n--
	}
	return n
}

// weigh returns how full an engine is with one more sandbox: 1 if all sandboxes together may use all that it has.
func weigh(live int, e sandbox.Engine, l sandbox.Limits) float64 {
	room := math.MaxFloat64
	if e.CPUs > 0 {
		room = float64(e.CPUs) / l.CPUs
	}
	if e.Memory > 0 {
		room = min(room, float64(e.Memory)/float64(l.Memory))
	}
	return float64(live+1) / room
}

// stateOf returns what an engine has. It is asked again after it was down.
func (s *Set) stateOf(ctx context.Context, e *engine) (sandbox.Engine, error) {
	e.mu.Lock()
	known := e.state
	e.mu.Unlock()
	if known.CPUs > 0 {
		return known, nil
	}
	known, err := e.State(ctx)
	if err == nil {
		e.mu.Lock()
		e.state = known
		e.mu.Unlock()
	}
	return known, err
}

// List returns the sandboxes of all engines that answer. If a sandbox is on several engines, because one did not answer while it was
// started, the ones where it does not belong are stopped.
func (s *Set) List(ctx context.Context) ([]sandbox.Found, error) {
	if len(s.engines) == 1 {
		return s.engines[0].List(ctx)
	}
	var out []sandbox.Found
	var why error
	answered := 0
	at := map[string]int{}
	for _, a := range ask(ctx, s, func(ctx context.Context, e *engine) ([]sandbox.Found, error) { return e.List(ctx) }) {
		if a.err != nil {
			why = errors.Join(why, a.err)
			continue
		}
		answered++
		for _, f := range a.value {
			i, twice := at[f.Handle.ID]
			if !twice {
				at[f.Handle.ID] = len(out)
				out = append(out, f)
				s.remember(f.Handle.ID, place{a.engine, false})
				continue
			}
			if s.belongs(a.engine, f.Handle.ID) {
				out[i], f = f, out[i]
			}
			s.stopDuplicate(ctx, f)
		}
	}
	if answered == 0 {
		return nil, cmp.Or(ctx.Err(), why)
	}
	return out, nil
}

// belongs reports whether a sandbox is known to be on an engine.
func (s *Set) belongs(e *engine, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[id] == place{e, true}
}

// stopDuplicate stops a sandbox where it does not belong. Its files are kept until the conversation is deleted.
func (s *Set) stopDuplicate(ctx context.Context, f sandbox.Found) {
	s.mu.Lock()
	sure := s.places[f.Handle.ID].sure
	s.mu.Unlock()
	e := s.configured(docker.EngineOf(f.Handle))
	if !f.Running || !sure || e == nil {
		return
	}
	s.log.Warn("a sandbox runs on two container engines and is stopped on one", "sandbox", f.Handle.ID, "engine", e.Address())
	if err := e.Stop(ctx, f.Handle); err != nil {
		s.log.Warn("a sandbox on a second container engine could not be stopped", "sandbox", f.Handle.ID, "engine", e.Address(), "error", err)
	}
}

// Engines implements sandbox.EngineLister.
func (s *Set) Engines(ctx context.Context) []sandbox.Engine {
	out := make([]sandbox.Engine, len(s.engines))
	for i, a := range ask(ctx, s, func(ctx context.Context, e *engine) (sandbox.Engine, error) {
		state, err := e.State(ctx)
		if err != nil {
			return state, err
		}
		live, err := e.Live(ctx)
		state.Sandboxes = len(live)
		return state, err
	}) {
		out[i] = a.value
		out[i].Address = s.engines[i].Address()
		if a.err != nil {
			out[i].Error = a.err.Error()
		}
	}
	return out
}

// Check checks each engine. Sandboxes can be started as long as one of them works.
func (s *Set) Check(ctx context.Context) []sandbox.Finding {
	if len(s.engines) == 1 {
		return s.engines[0].Check(ctx)
	}
	var out []sandbox.Finding
	works := false
	for _, e := range s.engines {
		fatal := false
		for _, f := range e.Check(ctx) {
			fatal = fatal || f.Fatal
			if !strings.Contains(f.What, e.Address()) {
				f.What += " (" + e.Address() + ")"
			}
			out = append(out, f)
		}
		works = works || !fatal
	}
	for i := range out {
		out[i].Fatal = out[i].Fatal && !works
	}
	return out
}
