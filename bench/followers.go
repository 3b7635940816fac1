package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// crowd is how many follow one conversation.
const crowd = 1000

// followers lets many follow one conversation of the real server.
func followers(b *bench) error {
	idle, err := idleConnections(b)
	if err != nil {
		return err
	}
	say("%d idle connections cost %s each", crowd, figure(idle, kilobytes))
	us, err := b.fresh()
	if err != nil {
		return err
	}
	defer us.stop()
	talk, err := us.converse()
	if err != nil {
		return err
	}
	defer talk.link.close()
	empty := us.rss(b.ctx)
	readers, err := talk.gather(crowd)
	defer func() {
		for _, r := range readers {
			r.in.link.close()
		}
	}()
	if err != nil {
		return err
	}
	before := us.rss(b.ctx)
	begin := time.Now()
	var wait sync.WaitGroup
	for _, r := range readers {
		wait.Go(r.read)
	}
	for range pick(b, 100, 20) {
		if err := talk.say(); err != nil {
			return err
		}
	}
	want, err := talk.all()
	if err != nil {
		return err
	}
	// Whoever has not the last event by then does not get it.
	deadline := time.Now().Add(20 * time.Second)
	for _, r := range readers {
		r.until(want[len(want)-1], deadline)
	}
	wait.Wait()
	after := us.rss(b.ctx)
	took := last(readers).Sub(begin)
	wrong, delivered := 0, 0
	for _, r := range readers {
		delivered += len(r.got)
		if !slices.Equal(r.got, want) {
			wrong++
		}
	}
	say("%d frames reached %d followers", delivered, crowd)
	b.report.add("followers", "followers that got not every event exactly once and in order", count, float64(wrong), 0).
		atMost(0).note("%d events to each of %d", len(want), crowd)
	b.report.add("followers", "events delivered, to all together", perSecond, float64(delivered)/took.Seconds(), 0)
	b.report.add("followers", "memory per follower, against an idle connection", kilobytes, (before-empty)*1024/crowd, idle)
	b.report.add("followers", "memory per follower after the events", kilobytes, (after-empty)*1024/crowd, idle)
	return nil
}

// idleConnections is the memory of a connection that asked something once, in kB.
func idleConnections(b *bench) (float64, error) {
	us, err := b.fresh()
	if err != nil {
		return 0, err
	}
	defer us.stop()
	before := us.rss(b.ctx)
	health := message("GET", "/health", us.addr, "", "")
	for range crowd {
		l, err := dial(us.addr)
		if err != nil {
			return 0, err
		}
		defer l.close()
		if _, err := l.ask(health); err != nil {
			return 0, err
		}
	}
	return (us.rss(b.ctx) - before) * 1024 / crowd, nil
}

// talk is a conversation that many follow.
type talk struct {
	server *child
	link   *link
	path   string
}

// converse makes a conversation and waits until its agent waits too.
func (c *child) converse() (*talk, error) {
	t, err := c.create()
	if err == nil {
		_, err = t.settled()
	}
	return t, err
}

// create makes a conversation with a first message.
func (c *child) create() (*talk, error) {
	l, err := dial(c.addr)
	if err != nil {
		return nil, err
	}
	answer, err := l.ask(message("POST", creationPath, c.addr, c.key, withMessage))
	var made struct {
		ID string `json:"conversation_id"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &made)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return &talk{server: c, link: l, path: creationPath + "/" + made.ID}, nil
}

// say sends one more message.
func (t *talk) say() error {
	_, err := t.link.ask(message("POST", t.path+"/message", t.server.addr, t.server.key, `{"message":"And now?"}`))
	return err
}

// settled waits until the agent has answered everything, and returns the number
// of the last event.
func (t *talk) settled() (int64, error) {
	request := message("GET", t.path, t.server.addr, t.server.key, "")
	var before int64
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 400 {
		answer, err := t.link.ask(request)
		if err != nil {
			return 0, err
		}
		var now struct {
			Agent string `json:"agent_state"`
			Last  int64  `json:"last_event_id"`
		}
		if err := json.Unmarshal(answer, &now); err != nil {
			return 0, err
		}
		// Twice the same: between two turns it looks the same for a moment.
		if now.Agent == "awaiting_user_input" && now.Last == before {
			return now.Last, nil
		}
		before = now.Last
		<-tick.C
	}
	return 0, errors.New("the agent did not finish")
}

// all is the numbers that a follower must have seen, as a new one sees them now.
func (t *talk) all() ([]int64, error) {
	end, err := t.settled()
	if err != nil {
		return nil, err
	}
	s, err := follow(t.server.addr, t.path+"/events/stream", t.server.key, 0)
	if err != nil {
		return nil, err
	}
	defer s.link.close()
	var want []int64
	_ = s.link.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		n, err := s.next()
		if err != nil {
			return nil, fmt.Errorf("reading the conversation up to event %d: %w", end, err)
		}
		want = append(want, n)
		// The last of all may be one that readers have no word for: then nothing
		// more comes, and a short silence is the end.
		_ = s.link.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if n >= end-1 {
			_ = s.link.conn.SetReadDeadline(time.Now().Add(time.Second))
		}
		if n >= end {
			return want, nil
		}
	}
}

// reader is one follower and what it got.
type reader struct {
	in  *stream
	got []int64
	at  time.Time // when the last came

	mu     sync.Mutex
	seen   int64
	target int64
}

func (t *talk) gather(n int) ([]*reader, error) {
	var out []*reader
	for range n {
		s, err := follow(t.server.addr, t.path+"/events/stream", t.server.key, 0)
		if err != nil {
			return out, err
		}
		out = append(out, &reader{in: s})
	}
	return out, nil
}

// read takes frames until the target is known and reached, or time is over.
func (r *reader) read() {
	for {
		n, err := r.in.next()
		if err != nil {
			return
		}
		r.got, r.at = append(r.got, n), time.Now()
		r.mu.Lock()
		r.seen = n
		done := r.target > 0 && n >= r.target
		r.mu.Unlock()
		if done {
			return
		}
	}
}

// until tells the reader what the last event is.
func (r *reader) until(target int64, deadline time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	if r.seen >= target {
		deadline = time.Now().Add(100 * time.Millisecond) // long enough to notice one too many
	}
	_ = r.in.link.conn.SetReadDeadline(deadline)
}

func last(readers []*reader) time.Time {
	var at time.Time
	for _, r := range readers {
		if r.at.After(at) {
			at = r.at
		}
	}
	return at
}
