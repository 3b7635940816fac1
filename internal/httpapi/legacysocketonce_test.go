package httpapi

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/httpapi/legacy"
	"deckhand/internal/session"
)

// Events come while clients are cut off at any place and come back, by the last
// event they saw or by what Socket.IO remembers: each client is told every event
// once and in order.
func TestSocketEveryEventOnce(t *testing.T) {
	const total = 300
	r := newSocketRig(t)
	for seed, how := range []string{"latest_event_id", "recovery"} {
		for _, transport := range []string{"websocket", "polling"} {
			t.Run(how+" over "+transport, func(t *testing.T) {
				r := *r
				r.t = t
				id := r.create(`{"initial_user_msg":"0"}`)
				r.take(id)
				written := make(chan error, 1)
				go func() {
					var err error
					for n := 1; n <= total && err == nil; n++ {
						_, err = r.sessions.Update(t.Context(), session.ID(id), func(s session.State) ([]session.Payload, error) {
							return s.Say(session.UserSaid{Text: fmt.Sprint(n)})
						})
					}
					written <- err
				}()
				random := rand.New(rand.NewPCG(7, uint64(seed)))
				var seen []string
				latest, auth := "-1", map[string]string{}
				for cuts := 0; len(seen) < total+1; cuts++ {
					c := r.joined(join{user: "ada", transport: transport, query: q(id, "latest_event_id", latest), auth: auth})
					if len(auth) > 0 && c.pid != auth["pid"] {
						t.Fatal("it was not recovered")
					}
					stay := 1 + random.IntN(12)
					if cuts >= 50 {
						stay = total
					}
					for ; stay > 0 && len(seen) < total+1; stay-- {
						e := c.until(func(e heard) bool { return e.Action == "message" })
						seen = append(seen, e[len(e)-1].Args.Content)
						if how == "latest_event_id" {
							latest = fmt.Sprint(e[len(e)-1].ID)
						}
					}
					if how == "recovery" {
						c.settled()
						auth = map[string]string{"pid": c.pid, "offset": c.offset}
					}
					c.quit()
				}
				if err := <-written; err != nil {
					t.Fatal(err)
				}
				for n, text := range seen {
					if text != fmt.Sprint(n) {
						t.Fatalf("message %d is %s", n, text)
					}
				}
			})
		}
	}
}

// settled takes the offset of the event that was read last; they travel together.
func (c *legacyClient) settled() {
	c.r.t.Helper()
	at, ok := strings.CutPrefix(c.packet(), `42["offset","`)
	if !ok {
		c.r.t.Fatal("an event without an offset")
	}
	c.offset = strings.TrimSuffix(at, `"]`)
}

func TestSocketRecovery(t *testing.T) {
	r := newSocketRig(t)
	id := r.history()
	c := r.joined(join{user: "ada", query: q(id)})
	c.untilID(9)
	c.settled()
	pid, offset := c.pid, c.offset
	c.quit()
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("for the test") }) // 13 and on

	other, alike := r.create(`{}`), r.history()
	for name, k := range map[string]struct {
		id, offset, latest string
		recovered          bool
		first              int64
	}{
		"as it was":              {id, offset, "-1", true, 12},
		"with a newer event":     {id, offset, "12", true, 13},
		"another conversation's": {alike, offset, "-1", false, 2},
		"beyond the end":         {other, other + ":99", "-1", false, 1},
		"never told one":         {other, "", "-1", false, 1},
		"nonsense":               {other, "7", "-1", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			c := r.joined(join{user: "ada", query: q(k.id, "latest_event_id", k.latest), auth: map[string]string{"pid": pid, "offset": k.offset}})
			if recovered := c.pid == pid; recovered != k.recovered {
				t.Errorf("recovered: %t", recovered)
			}
			events := c.until(func(e heard) bool { return e.ID >= 0 })
			if e := events[len(events)-1]; e.ID < k.first || e.Extras.State == "" && e.ID != k.first {
				t.Errorf("it goes on with %s", e.whole)
			}
		})
	}
	if row, err := r.log.Row(t.Context(), session.ID(id)); err != nil || row.Status != session.Halted {
		t.Errorf("a client that came back started the conversation again: %v %v", row.Status, err)
	}
}

// A client that was sent away because the conversation was stopped does not come back
// by itself. When it does come back, it misses nothing, and the conversation is started.
func TestSocketRecoveryAfterStop(t *testing.T) {
	r := newSocketRig(t)
	for _, transport := range []string{"websocket", "polling"} {
		t.Run(transport, func(t *testing.T) {
			r := *r
			r.t = t
			id := r.history()
			c := r.joined(join{user: "ada", transport: transport, query: q(id)})
			c.untilID(12)
			c.settled()
			back := map[string]string{"pid": c.pid, "offset": c.offset}
			r.do("POST", "/api/conversations/"+id+"/stop", "").want(t, 200)
			c.untilState(session.AgentStopped)
			c.settled()
			c.settled() // as one that is sent away
			sentAway := map[string]string{"pid": c.pid, "offset": c.offset}
			c.left()

			// One that lost its connection starts nothing; told to leave, it does not hang on.
			lost := r.joined(join{user: "ada", transport: transport, query: q(id), auth: back})
			lost.untilState(session.AgentStopped)
			r.do("POST", "/api/conversations/"+id+"/stop", "").want(t, 200, "was not running")
			lost.left()

			c = r.joined(join{user: "ada", transport: transport, query: q(id), auth: sentAway})
			if c.pid != sentAway["pid"] {
				t.Error("it was not recovered")
			}
			if events := c.untilState(session.AgentLoading); len(events) != 1 {
				t.Errorf("%d events, want just the new state", len(events))
			}
		})
	}
}

// A stop reaches those too who have nothing left to read.
func TestSocketStopWithNothingNew(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("for the test") })
	row, err := r.log.Row(t.Context(), session.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	c := r.joined(join{user: "ada", query: q(id), auth: map[string]string{"pid": "p", "offset": legacy.Offset(session.ID(id), row.Last)}})
	for connected := 0; connected == 0; { // it follows
		connected = decoded[api.Conversation](t, r.do("GET", "/api/conversations/"+id, "")).NumConnections
	}
	r.do("POST", "/api/conversations/"+id+"/stop", "").want(t, 200, "was not running")
	c.left()
}

// A client that does not read costs what its buffers hold, whatever is written
// meanwhile, and has missed nothing when it reads again.
func TestSlowSocket(t *testing.T) {
	const size = 64 << 10
	events := 400 // which are 50 MB, as they say everything twice
	if raced {
		events = 100
	}
	r := newSocketRig(t)
	id := r.create(`{}`)
	r.say(id, "0")
	text := strings.Repeat("x", size)
	c, other := r.joined(join{user: "ada", query: q(id)}), r.joined(join{user: "ada", query: q(id)})
	c.until(func(e heard) bool { return e.Action == "message" })
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := heap(), uint64(0)
	for n := range events {
		last := r.say(id, text).Last // the log keeps one copy of it
		if n%50 == 49 {
			for other.number() != last { // which is not held up
			}
			most = max(most, heap())
		}
	}
	if grown := int64(most) - int64(before); grown > 8<<20 {
		t.Errorf("a client that does not read costs %d kB", grown>>10)
	}
	var got []int64
	for len(got) < events/2 {
		got = append(got, c.number())
	}
	c.quit()
	c = r.joined(join{user: "ada", transport: "polling", query: q(id, "latest_event_id", fmt.Sprint(got[len(got)-1]))})
	for len(got) < events {
		got = append(got, c.number())
	}
	if !slices.IsSorted(got) || len(slices.Compact(got)) != events || got[0] != 3 {
		t.Errorf("%d of %d events, sorted: %t", len(got), events, slices.IsSorted(got))
	}
}

// number is that of the next event, which is not looked at more closely.
func (c *legacyClient) number() int64 {
	c.r.t.Helper()
	for {
		p := c.packet()
		if rest, ok := strings.CutPrefix(p, `42["oh_event",{"id":`); ok {
			digits, _, _ := strings.Cut(rest[:min(len(rest), 20)], ",")
			n, err := strconv.ParseInt(digits, 10, 64)
			c.must(err)
			return n
		}
		if !strings.HasPrefix(p, `42["offset"`) {
			c.r.t.Fatalf("instead of an event: %.300q", p)
		}
	}
}
