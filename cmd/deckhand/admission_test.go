package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/api/health"
	"deckhand/client"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/soak"
)

// patient is a model that answers when the test lets it.
type patient struct {
	*llmtest.Server
	asked chan string // what was said last, for each call
	goOn  chan struct{}
	open  func() // lets all calls go, from now on
}

func newPatient(t *testing.T) *patient {
	p := &patient{asked: make(chan string, 10_000), goOn: make(chan struct{}, 10_000)}
	all := make(chan struct{})
	p.open = sync.OnceFunc(func() { close(all) })
	p.Server = llmtest.New(t, func(a llmtest.Asked) llmtest.Reply {
		said := strings.TrimSpace(saidIn(a))
		p.asked <- said[strings.LastIndex(said, "\n")+1:]
		select {
		case <-p.goOn:
		case <-all:
		case <-a.Gone:
		}
		return llmtest.Reply{Text: "done"}
	})
	t.Cleanup(p.open)
	return p
}

// uses stores settings with the model.
func (p *patient) uses(t *testing.T, c *client.Client) {
	t.Helper()
	if _, err := c.StoreSettings(t.Context(), api.SettingsInput{LLMModel: api.Some("openai/gpt-4o"), LLMAPIKey: api.Some("sk-test-key-123"), LLMBaseURL: api.Some(p.URL + "/v1")}); err != nil {
		t.Fatal(err)
	}
}

// place is the position of a conversation in the queue.
func (b *box) place(id string) *api.QueuePlace {
	b.t.Helper()
	c, err := b.client.Conversation(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return c.Queue
}

// full is the refusal of a request that the queue has no room for.
func full(t *testing.T, status int, body string, header http.Header) {
	t.Helper()
	if after, err := strconv.Atoi(header.Get("Retry-After")); status != http.StatusTooManyRequests || !strings.Contains(body, api.CodeQueueFull) || err != nil || after < 1 || after > 60 {
		t.Errorf("%d %s %v", status, body, header)
	}
	if !strings.Contains(body, "limit of queued conversations") {
		t.Errorf("the refusal does not name the limit: %s", body)
	}
}

// The second conversation waits for the first one: GET, the list, both streams, the terminal, the health page and the metrics
// say so. When the queue is full, every entry point refuses, and nothing is stored.
func TestConversationsQueue(t *testing.T) {
	t.Parallel()
	b := serve(t, "", "--max-running", "1", "--max-queued", "2", "--max-queued-per-user", "2")
	t.Cleanup((&person{box: b}).dropAll)
	model := newPatient(t)
	model.uses(t, b.client)
	idle := b.create("idle")
	<-model.asked
	model.goOn <- struct{}{}
	b.follow(idle, 0, agentIs("awaiting_user_input"))

	first := b.create("first")
	if said := <-model.asked; said != "first" || b.place(first) != nil {
		t.Fatalf("%q runs, and the first one has place %+v", said, b.place(first))
	}
	second, third := b.create("second"), b.create("third")
	want := api.QueuePlace{Position: 1, Reason: "user_limit", Running: 1, Limit: 1, Message: "Waiting for a free slot: 1st in the queue. You have 1 of 1 conversations running."}
	if p := b.place(second); p == nil || *p != want {
		t.Errorf("the second one has place %+v", p)
	}
	if p := b.place(third); p == nil || p.Position != 2 {
		t.Errorf("the third one has place %+v", p)
	}
	if code, out, errs := b.beside("list"); code != 0 || !strings.Contains(out, "queued (1)") || !strings.Contains(out, "queued (2)") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, _, errs := b.beside("logs", second); code != 0 || !strings.Contains(errs, want.Message) {
		t.Errorf("%d %s", code, errs)
	}

	stored := func() (all []int64) {
		page, err := b.client.Conversations(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Results {
			all = append(all, c.LastEventID)
		}
		return all
	}
	before := stored()
	status, body, header := b.raw("POST", "/api/conversations", `{"initial_user_msg":"fourth"}`)
	full(t, status, body, header)
	for path, body := range map[string]string{"message": `{"message":"more"}`, "events": `{"action":"message","args":{"content":"more"}}`} {
		status, body, header := b.raw("POST", "/api/conversations/"+idle+"/"+path, body)
		full(t, status, body, header)
	}
	if after := stored(); !slices.Equal(after, before) {
		t.Errorf("something was stored: %v, %v before", after, before)
	}
	for _, id := range []string{first, second} { // they need no more room
		if err := b.client.Say(t.Context(), id, "and this", ""); err != nil {
			t.Error(err)
		}
	}
	b.queueOnThePages(t, second)

	// A stopped conversation leaves the queue, and the others move up.
	if _, err := b.client.Stop(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	for it, err := range b.client.Follow(t.Context(), third, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if it.Queue != nil && it.Queue.Position == 1 {
			break
		}
	}
	b.until("the second one leaves", func() bool { return b.place(second) == nil })
	model.open()
	b.follow(third, 0, agentIs("awaiting_user_input"))
	for it, err := range b.client.Follow(t.Context(), third, 0) { // it does not say that the conversation waits
		if err != nil || it.Queue != nil && it.Queue.Position > 0 {
			t.Fatal(it.Queue, err)
		}
		if it.Event != nil && it.Event.Kind == "turn_ended" {
			break
		}
	}
}

// queueOnThePages looks at the queue as administrators and lists see it.
func (b *box) queueOnThePages(t *testing.T, waits string) {
	t.Helper()
	if q := b.queue(); q.Running != 1 || q.Queued != 2 || q.Limits.Running != 1 || q.Limits.Queued != 2 || !slices.Equal(q.Users, []health.UserUse{{User: "admin", Running: 1, Queued: 2, Reason: "user_limit"}}) {
		t.Errorf("%+v", q)
	}
	_, text, _ := b.raw("GET", "/metrics", "")
	for _, line := range []string{"deckhand_queue_running 1", `deckhand_queue_waiting{class="person"} 2`, `deckhand_queue_limit{limit="queued"} 2`, `deckhand_queue_refused_total{limit="server"}`, `deckhand_queue_refused_total{limit="user"} 3`} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	for change, err := range b.client.FollowList(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(change.Snapshot, func(c api.Conversation) bool { return c.ConversationID == waits })
		if i < 0 || change.Snapshot[i].Queue == nil || change.Snapshot[i].Queue.Position != 1 {
			t.Errorf("the list has %+v", change)
		}
		break
	}
}

// A conversation that waits for its user leaves its place to others, and a queued one continues after a restart.
func TestQueueSurvives(t *testing.T) {
	t.Parallel()
	b, process := spawn(t, t.TempDir(), "--max-running", "1")
	model := newPatient(t)
	model.uses(t, b.client)
	ids := []string{b.create("first")}
	<-model.asked
	for i := range 3 {
		ids = append(ids, b.create(fmt.Sprintf("waits %d", i)))
	}
	_ = process.Process.Kill()
	_ = process.Wait()
	b, _ = spawn(t, b.dir, "--max-running", "1")
	for i, said := range []string{"first", "waits 0", "waits 1", "waits 2"} {
		if got := <-model.asked; got != said {
			t.Errorf("%q runs, want %q", got, said)
		}
		model.goOn <- struct{}{}
		b.follow(ids[i], 0, agentIs("awaiting_user_input"))
	}
}

// With ten times more work than fits, what is refused is refused at once and in words, health and reads answer, memory does
// not grow with what is refused, nobody is starved, and when the work is done everything is accepted again.
func TestOverload(t *testing.T) {
	t.Parallel()
	places, users, rounds := 8, 6, soak.Times(1, 20)
	b, cmd := spawn(t, t.TempDir(), "--max-running", strconv.Itoa(places), "--max-running-per-user", "3", "--max-queued", "40", "--max-queued-per-user", "10")
	model := newPatient(t)
	var crew []*box
	for i := range users {
		u := b.userOf(fmt.Sprintf("user%d", i), "")
		model.uses(t, u.client)
		crew = append(crew, u)
	}
	b.demo("scripted/demo")
	quiet := b.create("") // for reads
	idle := b.typical(quiet)
	memory := resident(t, cmd.Process.Pid)

	var mu sync.Mutex
	var accepted []string
	var refused atomic.Int64
	flood := func(n int) {
		var wg sync.WaitGroup
		for i, u := range crew {
			wg.Go(func() {
				for j := range n {
					made, err := u.client.Create(t.Context(), api.CreateConversation{InitialUserMsg: api.Some(fmt.Sprintf("task %d of %d", j, i))})
					var e *client.Error
					switch {
					case err == nil:
						mu.Lock()
						accepted = append(accepted, strconv.Itoa(i)+" "+made.ConversationID)
						mu.Unlock()
					case errors.As(err, &e) && e.Status == http.StatusTooManyRequests && e.Code == api.CodeQueueFull && e.RetryAfter > 0:
						refused.Add(1)
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	// Ten times what fits. The last place may be kept for another user.
	flood(10 * (places + 40) / users)
	if n := len(accepted); n != places+40 && n != places+39 {
		t.Errorf("%d were accepted, want %d", n, places+40)
	}
	filled := resident(t, cmd.Process.Pid)
	done, measured := make(chan struct{}), make(chan struct{})
	go func() { // at least so often, and as long as is measured
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-measured:
				if n >= rounds {
					return
				}
			default:
			}
			flood(10 * (places + 40) / users)
		}
	}()
	busy := b.typical(quiet)
	close(measured)
	<-done
	t.Logf("idle %v, busy %v (%.1f times); memory %d MB before, %d MB full, %d MB after %d refusals", idle, busy, float64(busy)/float64(idle), memory>>20, filled>>20, resident(t, cmd.Process.Pid)>>20, refused.Load())
	if busy > 50*idle {
		t.Errorf("reads take %v, and took %v before", busy, idle)
	}
	if now := resident(t, cmd.Process.Pid); now > 2*filled+64<<20 {
		t.Errorf("the memory grew from %d to %d", filled, now)
	}
	// Everybody has a place: none of six users may have more than three of eight.
	running := map[string]bool{}
	for range places - 1 {
		said := <-model.asked
		running[said[strings.LastIndex(said, " "):]] = true
	}
	if len(running) < 3 {
		t.Errorf("only %v have places", running)
	}
	model.open()
	for _, one := range accepted {
		var i int
		var id string
		if _, err := fmt.Sscan(one, &i, &id); err != nil {
			t.Fatal(err)
		}
		crew[i].follow(id, 0, agentIs("awaiting_user_input"))
	}
	again := crew[0].create("once more")
	crew[0].follow(again, 0, agentIs("awaiting_user_input"))
}

// typical is the median time of requests for the health and for a conversation.
func (b *box) typical(id string) time.Duration {
	b.t.Helper()
	var took []time.Duration
	for range 200 {
		for _, path := range []string{"/health", "/api/conversations/" + id, "/api/conversations/" + id + "/events"} {
			began := time.Now()
			if code, text, _ := b.raw("GET", path, ""); code != http.StatusOK {
				b.t.Fatalf("%s: %d %s", path, code, text)
			}
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// resident is how much memory a process has, in bytes.
func resident(t *testing.T, pid int) (size int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0 // not Linux
	}
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(after, &size); err != nil {
		t.Fatal(err)
	}
	return size << 10
}
