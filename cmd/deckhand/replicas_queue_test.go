package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/api/health"
	"deckhand/client"
	"deckhand/internal/llm/llmtest"
)

// queue is what a server reports of its queue.
func (b *box) queue() health.HealthQueue {
	b.t.Helper()
	_, text, _ := b.raw("GET", "/api/admin/health", "")
	var h health.ServerHealth
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		b.t.Fatal(err)
	}
	return h.Queue
}

// slots returns the running conversations of a user on all servers, as one server reports them.
func (b *box) slots(user string) int {
	b.t.Helper()
	for _, u := range b.queue().Users {
		if u.User == user {
			return u.Running
		}
	}
	return 0
}

// queued waits until a server shows a conversation at a position of the queue.
func (b *box) queued(id string, position int, reason string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%s at position %d", id, position), func() bool {
		p := b.place(id)
		return p != nil && p.Position == position && p.Reason == reason
	})
}

// A server without agents creates conversations, shows their positions, refuses messages when the queue of all servers is full, and
// shows the answers.
func TestAPIServer(t *testing.T) {
	t.Parallel()
	limits := []string{"--max-running", "1", "--max-queued", "1", "--max-queued-per-user", "1"}
	f := newFleet(t, 1, limits...)
	front := f.add(readable(t), append(limits, "--roles", "api")...)
	model := newPatient(t)
	model.uses(t, front.client)
	first := front.create("first")
	if said := <-model.asked; said != "first" {
		t.Fatalf("%q was asked", said)
	}
	front.until("the server knows what the other one runs", func() bool { return front.slots("admin") == 1 })
	second := front.create("second")
	for _, b := range f.boxes {
		b.queued(second, 1, "user_limit")
	}
	for it, err := range front.client.Follow(t.Context(), second, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if it.Queue != nil && it.Queue.Position == 1 {
			break
		}
	}
	for change, err := range front.client.FollowList(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(change.Snapshot, func(c api.Conversation) bool { return c.ConversationID == second }); i < 0 || change.Snapshot[i].Queue == nil {
			t.Errorf("the list has %+v", change)
		}
		break
	}
	for _, b := range f.boxes {
		status, body, header := b.raw("POST", "/api/conversations", `{"initial_user_msg":"third"}`)
		full(t, status, body, header)
	}
	if err := front.client.Say(t.Context(), second, "and this", ""); err != nil {
		t.Errorf("a message to a queued conversation: %v", err)
	}
	model.goOn <- struct{}{}
	front.follow(first, 0, agentIs("awaiting_user_input"))
	<-model.asked
	model.open()
	front.follow(second, 0, agentIs("awaiting_user_input"))
	for _, b := range f.boxes {
		b.until("it waits no more", func() bool { return b.place(second) == nil })
	}
	front.until("there is room again", func() bool {
		status, body, header := front.raw("POST", "/api/conversations", `{"initial_user_msg":"fourth"}`)
		if status != http.StatusOK {
			full(t, status, body, header)
		}
		return status == http.StatusOK
	})
}

// The limit per user applies to all servers. A queued conversation can be stopped on any of them, and the next one moves up.
func TestReplicasShareLimits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, "--max-running", "4", "--max-running-per-user", "1")
	a, b := f.boxes[0], f.boxes[1]
	model := newPatient(t)
	model.uses(t, a.client)
	first := a.create("first")
	<-model.asked
	b.until("the other server knows", func() bool { return b.slots("admin") == 1 })
	second := b.create("second")
	for _, one := range f.boxes {
		one.queued(second, 1, "user_limit")
	}
	third := b.create("third")
	a.until("the third is queued", func() bool { // each server counts the positions of its own queue
		p := a.place(third)
		return p != nil && p.Reason == "user_limit"
	})
	if _, err := a.client.Stop(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	for it, err := range a.client.Follow(t.Context(), third, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if it.Queue != nil && it.Queue.Position == 1 {
			break
		}
	}
	model.goOn <- struct{}{}
	a.follow(first, 0, agentIs("awaiting_user_input"))
	if said := <-model.asked; said != "third" {
		t.Errorf("%q was asked", said)
	}
	model.open()
	a.follow(third, 0, agentIs("awaiting_user_input"))
}

// Conversations that wait on a full server run on another one as soon as it has a free slot.
func TestReplicasShareSlots(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, "--max-running", "1")
	a := f.boxes[0]
	model := newPatient(t)
	people := make([]*box, 4)
	ids := make([]string, 4)
	for i := range people {
		people[i] = a.userOf(fmt.Sprint("user", i), "")
		model.uses(t, people[i].client)
		ids[i] = people[i].create(fmt.Sprint(i)) // all on one server
	}
	for i := range people {
		<-model.asked
		if i > 0 { // two run at the same time
			model.goOn <- struct{}{}
		}
	}
	model.open()
	for i := range people {
		people[i].follow(ids[i], 0, agentIs("awaiting_user_input"))
	}
}

// A server that is stopped hands over the conversations it works on.
func TestReplicaStops(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	model := newPatient(t)
	model.uses(t, f.boxes[0].client)
	id := f.boxes[0].create("hello")
	<-model.asked
	works := -1
	until(t, "a server works on it", func() bool {
		works = slices.IndexFunc(f.boxes, func(b *box) bool { return b.queue().Running == 1 })
		return works >= 0
	})
	stopped := time.Now()
	if err := f.commands[works].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-model.asked
	t.Logf("asked again by the other server after %v", time.Since(stopped).Round(time.Millisecond))
	model.open()
	seen := describe(f.boxes[1-works].follow(id, 0, agentIs("awaiting_user_input")))
	if n := strings.Count(seen, `"source":"agent","message":"done"`); n != 1 {
		t.Errorf("%d answers:\n%s", n, seen)
	}
	if err := f.commands[works].Wait(); err != nil {
		t.Errorf("the server that was stopped: %v", err)
	}
}

// Replies appear while they are written even if NATS accepts only small messages. The metrics of the connection and the lease are
// exported and documented.
func TestMetricsOfSeveralServers(t *testing.T) {
	t.Parallel()
	f := newFleetOn(t, "max_payload: 2048\n", 2)
	text := strings.Repeat("0123456789abcdef", 4000)
	model := llmtest.New(t, func(llmtest.Asked) llmtest.Reply {
		return llmtest.Reply{Text: text, Fragment: 30_000, Break: llmtest.Hang}
	})
	(&patient{Server: model}).uses(t, f.boxes[0].client)
	id := f.boxes[0].create("write a lot")
	for _, b := range f.boxes {
		written := ""
		b.follow(id, 0, func(it client.LegacyItem) bool {
			if it.Delta != nil {
				written += it.Delta.Text
			}
			return len(written) >= 30_000
		})
		if !strings.HasPrefix(text, written) {
			t.Errorf("it shows %.100q", written)
		}
	}
	_, several := metricsPage(t)
	for _, b := range f.boxes {
		_, metrics, _ := b.raw("GET", "/metrics", "")
		exported := map[string]string{}
		for _, m := range metricType.FindAllStringSubmatch(metrics, -1) {
			if strings.Contains(m[1], "_nats_") || strings.Contains(m[1], "_lease_") {
				exported[m[1]] = m[2]
			}
		}
		for _, m := range metricRow.FindAllStringSubmatch(several, -1) {
			if exported[m[1]] != m[3] {
				t.Errorf("docs/metrics.md has the %s %s, which is %q", m[3], m[1], exported[m[1]])
			}
			delete(exported, m[1])
		}
		if len(exported) > 0 {
			t.Errorf("not documented: %v", exported)
		}
		for _, line := range []string{"deckhand_nats_connected 1\n", "deckhand_nats_lost_total 0\n", "deckhand_lease_expired_total 0\n"} {
			if !strings.Contains(metrics, line) {
				t.Errorf("the metrics lack %s", line)
			}
		}
		if left := metric(t, metrics, "deckhand_lease_remaining_seconds"); left <= 0 || left > 10 {
			t.Errorf("the lease lasts for %v seconds", left)
		}
	}
	f.nats.Kill()
	f.boxes[0].until("the connection is lost", func() bool {
		_, metrics, _ := f.boxes[0].raw("GET", "/metrics", "")
		return metric(t, metrics, "deckhand_nats_connected") == 0 && metric(t, metrics, "deckhand_nats_lost_total") > 0
	})
}

// metric returns the value of a metric without labels.
func metric(t *testing.T, metrics, name string) float64 {
	t.Helper()
	_, rest, _ := strings.Cut(metrics, "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(line, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// Rate limits count the requests to all servers.
func TestReplicasShareRateLimits(t *testing.T) {
	t.Parallel()
	const burst = 2000
	f := newFleet(t, 2, "--rate-limit", "0.001", "--rate-burst", strconv.Itoa(burst))
	a, b := f.boxes[0], f.boxes[1]
	for i := range burst - 10 {
		if status, text, _ := a.raw("GET", "/api/me", ""); status != http.StatusOK {
			t.Fatalf("request %d: %d %s", i, status, text)
		}
	}
	tried := 0
	b.until("the other server refuses", func() bool {
		tried++
		status, _, _ := b.raw("GET", "/api/me", "")
		return status == http.StatusTooManyRequests
	})
	if tried > burst {
		t.Errorf("%d requests passed on the other server", tried-1)
	}
}
