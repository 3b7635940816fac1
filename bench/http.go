package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"deckhand/bench/floor"
)

// What is sent. The floor gets the same bytes.
const (
	creationPath = "/api/conversations"
	settingsPath = "/api/settings"
	withMessage  = `{"initial_user_msg":"` + firstMessage + `"}`
	withNothing  = `{}`
	someSettings = `{"llm_model":"scripted/demo","max_iterations":100,"git_user_name":"Maria Example"}`
)

// duel is one request measured on both sides.
type duel struct {
	name       string
	path, body string
	clients    int
	ownUsers   bool     // each client is a user of its own
	loose      bool     // the floor's rows cannot be found again
	lean       bool     // clients that only move bytes, instead of Go's own
	args       []string // for our server
	rounds     int
	during     time.Duration
}

// requests compares the server with the bare handler.
func requests(b *bench) error {
	long, short := pick(b, 3*time.Second, time.Second), pick(b, 1500*time.Millisecond, 500*time.Millisecond)
	many, few := pick(b, 5, 3), pick(b, 3, 1)
	duels := []duel{
		{name: "create with a message", path: creationPath, body: withMessage, clients: callers, rounds: many, during: long},
		{name: "create with a message, against rows without a key", path: creationPath, body: withMessage, clients: callers, rounds: few, during: long, loose: true},
		{name: "create with a message, lean clients", path: creationPath, body: withMessage, clients: callers, rounds: few, during: long, lean: true},
		{name: "create with a message, logging each request", path: creationPath, body: withMessage, clients: callers, rounds: few, during: short, args: []string{"--log-level", "info"}},
		{name: "create with {}", path: creationPath, body: withNothing, clients: callers, rounds: few, during: short},
		{name: "store settings, one user each", path: settingsPath, body: someSettings, clients: callers, ownUsers: true, rounds: few, during: short},
		{name: "create with a message", path: creationPath, body: withMessage, clients: 1, rounds: few, during: short},
		{name: "create with {}", path: creationPath, body: withNothing, clients: 1, rounds: few, during: short},
		{name: "store settings", path: settingsPath, body: someSettings, clients: 1, rounds: few, during: short},
	}
	for i, d := range duels {
		ours, floor, err := b.fight(d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		d.record(b.report, ours, floor, i == 0)
	}
	return sameUser(b)
}

// record makes the lines of a duel; the first of them is the one that counts.
func (d duel) record(r *report, ours, floor rounds, counts bool) {
	if d.clients == 1 {
		r.add("http", d.name+", one at a time, p50", millis, ours.delay(50), floor.delay(50)).
			note("p99 %s, floor %s", figure(ours.delay(99), millis), figure(floor.delay(99), millis))
		return
	}
	l := r.add("http", fmt.Sprintf("%s, %d at once", d.name, d.clients), perSecond, ours.rate(), floor.rate()).pairedBy(paired(ours, floor))
	l.note("p50 %s, p99 %s; floor p50 %s, p99 %s; cpu %s, floor %s", figure(ours.delay(50), millis), figure(ours.delay(99), millis),
		figure(floor.delay(50), millis), figure(floor.delay(99), millis), figure(ours.cpu(), micros), figure(floor.cpu(), micros))
	if counts {
		l.ratioAtLeast(0.7)
		r.add("http", fmt.Sprintf("%s, %d at once, p99", d.name, d.clients), millis, ours.delay(99), floor.delay(99)).atMost(20)
		r.add("http", d.name+", processor time of the server for each", micros, ours.cpu(), floor.cpu()).
			note("including the work of agents at that time")
	}
}

// side is one of the two in a duel, with its connections open.
type side struct {
	name   string
	server *child
	askers []asker
	got    rounds
}

// fight lets both take turns, so that what else the machine does hits both. Who
// is not measured is frozen: the conversations that our server still works on
// must not slow the floor down, which would make us look good.
func (b *bench) fight(d duel) (ours, floor rounds, err error) {
	us, err := b.fresh(d.args...)
	if err != nil {
		return nil, nil, err
	}
	defer us.stop()
	them, err := b.bare(d.loose)
	if err != nil {
		return nil, nil, err
	}
	defer them.stop()
	keys, err := us.keys(d)
	if err != nil {
		return nil, nil, err
	}
	sides := []*side{{name: "ours", server: us}, {name: "floor", server: them}}
	for _, s := range sides {
		if err := s.open(d, keys); err != nil {
			return nil, nil, err
		}
		defer s.close()
	}
	for round := range d.rounds + 1 {
		during := d.during
		if round == 0 {
			during = 300 * time.Millisecond // to warm up
		}
		for i := range sides { // A B, then B A
			s, other := sides[(round+i)%2], sides[(round+i+1)%2]
			got, err := s.play(other, during)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				s.got = append(s.got, got)
			}
		}
		if round > 0 {
			say("%s, %d clients, round %d: ours %s, floor %s", d.name, d.clients, round,
				figure(sides[0].got[round-1].rate(), perSecond), figure(sides[1].got[round-1].rate(), perSecond))
		}
	}
	return sides[0].got, sides[1].got, nil
}

// keys are one per client: the admin's, or of users of their own.
func (c *child) keys(d duel) ([]string, error) {
	keys := make([]string, d.clients)
	for i := range keys {
		keys[i] = c.key
		if !d.ownUsers {
			continue
		}
		answer, err := ask1(c.addr, message("POST", "/api/keys", c.addr, c.key, fmt.Sprintf(`{"user":"client%d"}`, i)))
		var made struct {
			Key string `json:"key"`
		}
		if err == nil {
			err = json.Unmarshal(answer, &made)
		}
		if err == nil {
			err = c.useDemo(made.Key)
		}
		if err != nil {
			return nil, err
		}
		keys[i] = made.Key
	}
	return keys, nil
}

func (s *side) open(d duel, keys []string) error {
	for i := range d.clients {
		key := keys[i]
		if s.server.key == floor.Key {
			key = floor.Key
		}
		a, err := newAsker(d.lean, s.server.addr, d.path, key, d.body)
		if err != nil {
			return err
		}
		s.askers = append(s.askers, a)
	}
	return nil
}

func (s *side) close() {
	for _, a := range s.askers {
		a.close()
	}
}

func (s *side) play(other *side, during time.Duration) (sample, error) {
	other.server.freeze()
	defer other.server.thaw()
	before := s.server.cpu()
	got, err := hammer(len(s.askers), during, func(i int) error { return s.askers[i].ask() })
	got.cpu = s.server.cpu() - before
	return got, err
}

// sameUser stores settings of one user from all clients at once: they exclude
// each other, and all must be stored in the end.
func sameUser(b *bench) error {
	us, err := b.fresh()
	if err != nil {
		return err
	}
	defer us.stop()
	s := &side{name: "ours", server: us}
	d := duel{path: settingsPath, body: someSettings, clients: callers}
	keys, err := us.keys(d)
	if err == nil {
		err = s.open(d, keys)
	}
	defer s.close()
	if err != nil {
		return err
	}
	refused := make([]int, callers)
	got, err := hammer(callers, pick(b, 1500*time.Millisecond, 500*time.Millisecond), func(i int) error {
		err := s.askers[i].ask()
		if err != nil && strings.HasPrefix(err.Error(), "answered ") {
			refused[i]++
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("settings of one user: %w", err)
	}
	sum := 0
	for _, n := range refused {
		sum += n
	}
	b.report.add("http", "store settings, all one user, 64 at once", perSecond, got.rate(), 0).
		require(sum == 0, "none refused").note("%d of %d refused, p99 %s", sum, len(got.delays), figure(rounds{got}.delay(99), millis))
	return nil
}
