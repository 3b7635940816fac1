package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
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
	us, metrics, err := b.measurable()
	if err != nil {
		return err
	}
	defer us.stop()
	talk, err := us.converse()
	if err != nil {
		return err
	}
	defer talk.link.close()
	empty, err := us.footprint(b, metrics)
	if err != nil {
		return err
	}
	readers, err := talk.gather(crowd)
	defer func() {
		for _, r := range readers {
			r.in.link.close()
		}
	}()
	if err != nil {
		return err
	}
	quiet, err := us.footprint(b, metrics)
	if err != nil {
		return err
	}
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
	// A follower without the last event by then counts as failed.
	deadline := time.Now().Add(20 * time.Second)
	for _, r := range readers {
		r.until(want[len(want)-1], deadline)
	}
	wait.Wait()
	after, _ := us.footprint(b, metrics)
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
	quiet, after = quiet.each(empty), after.each(empty)
	b.report.add("followers", "memory in use per follower, against an idle connection", kilobytes, quiet.used, idle.used).
		atMost(20).ratioAtMost(1).note("heap and stacks after a collection")
	b.report.add("followers", "memory in use per follower after the events", kilobytes, after.used, idle.used).atMost(20)
	b.report.add("followers", "resident memory per follower, garbage included", kilobytes, quiet.resident, idle.resident)
	return nil
}

// idleConnections is the memory of a connection that asked something once.
func idleConnections(b *bench) (footprint, error) {
	us, metrics, err := b.measurable()
	if err != nil {
		return footprint{}, err
	}
	defer us.stop()
	before, _ := us.footprint(b, metrics)
	health := message("GET", "/health", us.addr, "", "")
	for range crowd {
		l, err := dial(us.addr)
		if err != nil {
			return footprint{}, err
		}
		defer l.close()
		if _, err := l.ask(health); err != nil {
			return footprint{}, err
		}
	}
	after, err := us.footprint(b, metrics)
	return after.each(before), err
}

// footprint is the memory of a server in kB: resident, with the garbage that happens
// to be there, and used after a collection, which does not depend on when it is measured.
type footprint struct{ resident, used float64 }

// each is what one of the crowd added.
func (f footprint) each(before footprint) footprint {
	return footprint{(f.resident - before.resident) / crowd, (f.used - before.used) / crowd}
}

// startOver is when a server has given back the memory that its start took.
const startOver = 5 * time.Second

// measurable starts a server that can be asked for its footprint.
func (b *bench) measurable() (us *child, metrics string, err error) {
	if metrics, err = freeAddr(); err != nil {
		return nil, "", err
	}
	us, err = b.fresh("--log-level", "warn", "--metrics-addr", metrics)
	time.Sleep(startOver)
	return us, metrics, err
}

func (c *child) footprint(b *bench, metrics string) (footprint, error) {
	f := footprint{resident: c.rss(b.ctx) * 1024}
	res, err := http.Get("http://" + metrics + "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return f, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	for _, m := range heapTotals.FindAllSubmatch(text, -1) {
		bytes, _ := strconv.ParseFloat(string(m[1]), 64)
		f.used += bytes / 1024
	}
	return f, err
}

var heapTotals = regexp.MustCompile(`(?m)^# (?:HeapAlloc|Stack) = (\d+)`)

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
