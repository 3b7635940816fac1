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

	"deckhand/bench/history"
	"deckhand/bench/report"
	"deckhand/internal/load"
)

// crowd is how many follow one conversation.
func (b *bench) crowd() int { return pick(b, 10_000, 1000) }

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
	defer us.Stop()
	talk, err := converse(us)
	if err != nil {
		return err
	}
	defer talk.Close()
	empty, err := footprintOf(b, us, metrics)
	if err != nil {
		return err
	}
	readers, err := talk.gather(b.crowd())
	defer func() {
		for _, r := range readers {
			r.in.Close()
		}
	}()
	if err != nil {
		return err
	}
	quiet, err := footprintOf(b, us, metrics)
	if err != nil {
		return err
	}
	begin := time.Now()
	var wait sync.WaitGroup
	for _, r := range readers {
		wait.Go(r.read)
	}
	for range 20 {
		if _, err := load.Patient(func() ([]byte, error) { return nil, talk.Say() }); err != nil {
			return err
		}
	}
	want, err := talk.all()
	if err != nil {
		return err
	}
	// A follower without the last event by then counts as failed.
	deadline := time.Now().Add(time.Minute)
	for _, r := range readers {
		r.until(want[len(want)-1], deadline)
	}
	wait.Wait()
	after, _ := footprintOf(b, us, metrics)
	took := last(readers).Sub(begin)
	wrong, delivered := 0, 0
	for _, r := range readers {
		delivered += len(r.got)
		if !slices.Equal(r.got, want) {
			wrong++
		}
	}
	say("%d frames reached %d followers", delivered, b.crowd())
	b.report.Add("followers", "followers that got not every event exactly once and in order", report.Count, float64(wrong), 0).
		AtMost(0).Comment("%d events to each of %d", len(want), b.crowd())
	b.report.Add("followers", "events delivered, to all together", report.PerSecond, float64(delivered)/took.Seconds(), 0).AtLeast(100_000)
	quiet, after = quiet.each(b, empty), after.each(b, empty)
	b.report.Add("followers", "memory in use per follower, against an idle connection", report.Kilobytes, quiet.used, idle.used).
		AtMost(20).RatioAtMost(1).Comment("heap and stacks after a collection")
	b.report.Add("followers", "memory in use per follower after the events", report.Kilobytes, after.used, idle.used).AtMost(20)
	b.report.Add("followers", "resident memory per follower, garbage included", report.Kilobytes, quiet.resident, idle.resident).AtMost(20)
	return nil
}

// idleConnections is the memory of a connection that asked something once.
func idleConnections(b *bench) (footprint, error) {
	us, metrics, err := b.measurable()
	if err != nil {
		return footprint{}, err
	}
	defer us.Stop()
	before, _ := footprintOf(b, us, metrics)
	health := load.Message("GET", "/health", us.Addr, "", "")
	for range b.crowd() {
		l, err := load.Dial(us.Addr)
		if err != nil {
			return footprint{}, err
		}
		defer l.Close()
		if _, err := l.Ask(health); err != nil {
			return footprint{}, err
		}
	}
	after, err := footprintOf(b, us, metrics)
	return after.each(b, before), err
}

// footprint is the memory of a server in kB: resident, with the garbage that happens
// to be there, and used after a collection, which does not depend on when it is measured.
type footprint struct{ resident, used float64 }

// each is what one of the crowd added.
func (f footprint) each(b *bench, before footprint) footprint {
	n := float64(b.crowd())
	return footprint{(f.resident - before.resident) / n, (f.used - before.used) / n}
}

// startOver is when a server has given back the memory that its start took.
const startOver = 5 * time.Second

// measurable starts a server that can be asked for its footprint.
func (b *bench) measurable() (us *load.Server, metrics string, err error) {
	if metrics, err = load.FreeAddr(); err != nil {
		return nil, "", err
	}
	us, _, err = b.fresh("--metrics-addr", metrics)
	time.Sleep(startOver)
	return us, metrics, err
}

func footprintOf(b *bench, us *load.Server, metrics string) (footprint, error) {
	f := footprint{resident: us.RSS(b.ctx) * 1024}
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
	*load.Talk
	keys []string // of its owner, for as many requests as one user may make
}

// converse makes a conversation of the admin and waits until its agent waits too.
func converse(us *load.Server) (*talk, error) {
	keys, err := us.AdminKeys()
	if err != nil {
		return nil, err
	}
	made, err := load.Create(us.Addr, keys[1], history.FirstMessage)
	if err != nil {
		return nil, err
	}
	t := &talk{made, keys}
	_, err = t.settled()
	return t, err
}

// follow opens a follower from the first event on. Many at once have to wait for the limit.
func (t *talk) follow(n int) (*load.Stream, error) {
	var s *load.Stream
	_, err := load.Patient(func() (_ []byte, err error) {
		s, err = load.Follow(t.Addr, t.Path+"/events/stream", t.keys[n%len(t.keys)], 0)
		return nil, err
	})
	return s, err
}

// settled waits until the agent has answered everything, and returns the number
// of the last event.
func (t *talk) settled() (int64, error) {
	var before int64
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 400 {
		answer, err := load.Patient(t.Get)
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
	s, err := t.follow(0)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var want []int64
	s.Until(time.Now().Add(time.Minute))
	for {
		n, err := s.Next()
		if err != nil {
			return nil, fmt.Errorf("reading the conversation up to event %d: %w", end, err)
		}
		want = append(want, n)
		// The last of all may be one that readers have no word for: then nothing
		// more comes, and a short silence is the end.
		s.Until(time.Now().Add(time.Minute))
		if n >= end-1 {
			s.Until(time.Now().Add(time.Second))
		}
		if n >= end {
			return want, nil
		}
	}
}

// reader is one follower and what it got.
type reader struct {
	in  *load.Stream
	got []int64
	at  time.Time // when the last came

	mu     sync.Mutex
	seen   int64
	target int64
}

func (t *talk) gather(n int) ([]*reader, error) {
	var out []*reader
	for i := range n {
		s, err := t.follow(i)
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
		n, err := r.in.Next()
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
	r.in.Until(deadline)
}

func last(readers []*reader) time.Time {
	return slices.MaxFunc(readers, func(a, b *reader) int { return a.at.Compare(b.at) }).at
}
