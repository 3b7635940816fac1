package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deckhand/client"
	"deckhand/internal/cluster/natstest"
	"deckhand/internal/soak"
	"deckhand/internal/store/postgres/pgtest"
)

// fleet is several servers on one database.
type fleet struct {
	t        *testing.T
	postgres *pgtest.Server
	database string
	nats     *natstest.Server
	master   string
	boxes    []*box
	commands []*exec.Cmd
	// program starts the next servers; "" is the program under test.
	program string
}

// newFleet starts a database, a NATS server and n servers.
func newFleet(t *testing.T, n int, args ...string) *fleet {
	t.Helper()
	return newFleetOn(t, "", n, args...)
}

// newFleetOn is newFleet with a configuration of the NATS server.
func newFleetOn(t *testing.T, config string, n int, args ...string) *fleet {
	t.Helper()
	soak.NotShort(t, "starts servers as processes")
	pgtest.Available(t)
	natstest.Available(t)
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	var key [32]byte
	_, _ = rand.Read(key[:])
	f := &fleet{t: t, postgres: server, database: server.Database(t), nats: natstest.Start(t, config), master: base64.StdEncoding.EncodeToString(key[:])}
	for range n {
		f.add(readable(t), args...)
	}
	return f
}

// add starts a server with a data directory.
func (f *fleet) add(dir string, args ...string) *box {
	f.t.Helper()
	b := &box{t: f.t, dir: dir, logs: &syncBuffer{}}
	cmd := process(append([]string{"serve", "--data-dir", dir, "--addr", "127.0.0.1:0", "--rate-limit", "0", "--database-url", f.database, "--nats-url", f.nats.URL}, plainSandbox(f.t, args)...)...)
	if f.program != "" {
		cmd.Path = f.program
	}
	cmd.Env = append(cmd.Env, "DECKHAND_MASTER_KEY="+f.master)
	cmd.Stderr = b.logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
		if f.t.Failed() {
			f.t.Logf("log of %s:\n%s", b.base, clipTail(b.logs.String(), 2000))
		}
	})
	var text strings.Builder
	piece := make([]byte, 4096)
	for b.base == "" {
		n, err := out.Read(piece)
		text.Write(piece[:n])
		if m := linkLine.FindStringSubmatch(text.String()); m != nil { // the last line
			b.link = m[1]
			b.base = baseLine.FindStringSubmatch(text.String())[1]
		}
		if err != nil {
			f.t.Fatalf("the server did not start: %s%s", &text, b.logs)
		}
	}
	go io.Copy(io.Discard, out)
	if len(f.boxes) == 0 {
		key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
		if err != nil {
			f.t.Fatal(err)
		}
		b.key = strings.TrimSpace(string(key))
	} else {
		b.key = f.boxes[0].key
	}
	b.client = client.New(b.base, b.key)
	f.boxes, f.commands = append(f.boxes, b), append(f.commands, cmd)
	return b
}

// end stops a server properly.
func (f *fleet) end(i int) {
	_ = f.commands[i].Process.Signal(syscall.SIGTERM)
	_ = f.commands[i].Wait()
}

func clipTail(s string, n int) string { return s[max(0, len(s)-n):] }

// kill ends a server at once.
func (f *fleet) kill(i int) {
	_ = f.commands[i].Process.Kill()
	_ = f.commands[i].Wait()
}

// What is done on one server is seen on the others at once: settings, messages, answers word by word, lists, stops.
func TestReplicas(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	a, b, c := f.boxes[0], f.boxes[1], f.boxes[2]
	a.demo("scripted/slow")
	id := b.create("Say hello")

	// Every server shows the answer while it is written, and all of them the same events.
	var wait sync.WaitGroup
	seen := make([][]client.LegacyItem, 3)
	deltas := make([]string, 3)
	for i, one := range f.boxes {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			for it, err := range one.client.FollowLegacy(ctx, id, 0) {
				if err != nil {
					t.Error(err)
					return
				}
				if it.Delta != nil {
					deltas[i] += it.Delta.Text
				}
				if it.ID > 0 {
					seen[i] = append(seen[i], it)
				}
				if agentIs("awaiting_user_input")(it) {
					return
				}
			}
		})
	}
	wait.Wait()
	for i := range seen {
		if describe(seen[i]) != describe(seen[0]) || !strings.Contains(describe(seen[i]), `You said: \"Say hello\"`) {
			t.Errorf("server %d shows\n%s\nand server 0\n%s", i, describe(seen[i]), describe(seen[0]))
		}
		if !strings.Contains(deltas[i], "built-in demo script") {
			t.Errorf("server %d does not show the answer while it is written: %q", i, deltas[i])
		}
	}

	// A stop on another server ends the work.
	last := seen[0][len(seen[0])-1].ID
	if err := c.client.Say(t.Context(), id, "Again", "k"); err != nil {
		t.Fatal(err)
	}
	a.follow(id, last, func(it client.LegacyItem) bool { return it.Delta != nil })
	if status, text, _ := b.raw(http.MethodPost, "/api/conversations/"+id+"/stop", "{}"); status != http.StatusOK {
		t.Fatalf("stop: %d %s", status, text)
	}
	c.follow(id, last, agentIs("stopped"))

	// Settings and keys hold everywhere.
	b.demo("scripted/demo")
	other := c.create("Quickly")
	c.follow(other, 0, agentIs("awaiting_user_input"))
	if status, text, _ := a.raw(http.MethodGet, "/api/conversations", ""); status != http.StatusOK || !strings.Contains(text, id) || !strings.Contains(text, other) {
		t.Errorf("the list: %d %s", status, text)
	}
}

// Sessions of clients are not bound to a server: logins, connections by polling, repeated requests.
func TestReplicasServeAnyRequest(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	a, b, c := f.boxes[0], f.boxes[1], f.boxes[2]
	a.demo("scripted/demo")

	// A login ticket of one server works once, on any.
	_, ticket, _ := strings.Cut(a.link, "#")
	status, text, head := b.raw(http.MethodPost, "/api/login", `{"ticket":"`+ticket+`"}`, "X-Session-API-Key", "", "Origin", b.base)
	if status != http.StatusOK {
		t.Fatalf("login: %d %s", status, text)
	}
	if status, _, _ := a.raw(http.MethodPost, "/api/login", `{"ticket":"`+ticket+`"}`, "X-Session-API-Key", "", "Origin", a.base); status != http.StatusUnauthorized {
		t.Errorf("the same ticket a second time: %d", status)
	}
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	me := func(one *box) int {
		status, _, _ := one.raw(http.MethodGet, "/api/me", "", "X-Session-API-Key", "", "Cookie", cookie)
		return status
	}
	for i, one := range f.boxes {
		if status := me(one); status != http.StatusOK {
			t.Errorf("the login on server %d: %d", i, status)
		}
	}
	if status, text, _ := b.raw(http.MethodPost, "/api/logout", "{}", "X-Session-API-Key", "", "Cookie", cookie, "Origin", b.base); status != http.StatusOK {
		t.Errorf("logout: %d %s", status, text)
	}
	c.until("the login ends on another server", func() bool { return me(c) == http.StatusUnauthorized })

	// The same request on two servers at once is carried out once.
	made := make([]string, 3)
	var wait sync.WaitGroup
	for i, one := range f.boxes {
		wait.Go(func() {
			_, made[i], _ = one.raw(http.MethodPost, "/api/conversations", `{"initial_user_msg":"Once"}`, "Idempotency-Key", "once")
		})
	}
	wait.Wait()
	if made[0] != made[1] || made[1] != made[2] || !strings.Contains(made[0], "conversation_id") {
		t.Errorf("different answers: %q", made)
	}

	// Every request of a polling client may reach another server.
	id := c.create("Hello")
	c.follow(id, 0, agentIs("awaiting_user_input"))
	poll := "/socket.io/?EIO=4&transport=polling&latest_event_id=-1&conversation_id=" + id
	_, hello, _ := a.raw(http.MethodGet, poll, "")
	sid := ""
	if _, after, ok := strings.Cut(hello, `"sid":"`); ok {
		sid, _, _ = strings.Cut(after, `"`)
	}
	if status, text, _ := b.raw(http.MethodPost, poll+"&sid="+sid, "40", "Content-Type", "text/plain"); status != http.StatusOK {
		t.Fatalf("post to another server: %d %s (%s)", status, text, hello)
	}
	seen := ""
	for !strings.Contains(seen, "You said:") {
		status, text, _ := c.raw(http.MethodGet, poll+"&sid="+sid, "")
		if status != http.StatusOK {
			t.Fatalf("poll: %d %s after %s", status, text, seen)
		}
		seen += text
	}
	if status, _, _ := c.raw(http.MethodGet, poll+"&sid=unknown.NOBODY", ""); status != http.StatusBadRequest {
		t.Errorf("an unknown connection: %d", status)
	}
}

// untouched is the last event of a conversation with one answer on which one server has worked.
const untouched = 12

// answers counts the answers to a message in the events of a conversation.
func answers(events string, i int) int {
	return strings.Count(events, fmt.Sprintf(`"source":"agent","message":"[scripted demo model] You said: \"Message %d\"`, i))
}

// Conversations go on elsewhere when their server is killed, none is answered twice, and who follows on another server
// misses nothing.
func TestReplicaKilled(t *testing.T) {
	t.Parallel()
	const n = 100
	f := newFleet(t, 3, "--max-running-per-user", "100")
	f.boxes[0].demo("scripted/slow")
	ids := make([]string, n)
	for i := range ids {
		ids[i] = f.boxes[i%3].create(fmt.Sprintf("Message %d", i))
	}
	type result struct {
		seen []client.LegacyItem
		at   time.Time
	}
	results := make([]result, n)
	var begun, done sync.WaitGroup
	begun.Add(n)
	for i, id := range ids {
		one := f.boxes[1+i%2] // not the one that is killed
		done.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			for it, err := range one.client.FollowLegacy(ctx, id, 0) {
				if err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				if it.Delta != nil || it.ID > 4 {
					first()
				}
				if it.ID > 0 {
					results[i].seen = append(results[i].seen, it)
				}
				if agentIs("awaiting_user_input")(it) {
					results[i].at = time.Now()
					return
				}
			}
		})
	}
	begun.Wait()
	killed := time.Now()
	f.kill(0)
	done.Wait()
	var took []time.Duration
	for i, r := range results {
		text := describe(r.seen)
		if answers(text, i) != 1 || !inOrder(r.seen) {
			t.Errorf("%s was not answered once:\n%s", ids[i], text)
		}
		if r.at.After(killed) && r.seen[len(r.seen)-1].ID > untouched { // a claim and a lost call came between
			took = append(took, r.at.Sub(killed))
		}
	}
	slices.Sort(took)
	if len(took) == 0 {
		t.Error("no conversation was taken over")
	} else {
		t.Logf("%d conversations were taken over; answered after the kill: median %v, worst %v", len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
	for i, id := range ids { // the other one shows the same
		again := f.boxes[1+(i+1)%2].follow(id, 0, agentIs("awaiting_user_input"))
		if describe(again) != describe(results[i].seen) {
			t.Errorf("%s: one server shows\n%s\nthe other\n%s", id, describe(results[i].seen), describe(again))
		}
	}
}

// A server that was stopped for longer than its lease cannot act when it goes on.
func TestReplicaReturns(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.boxes[0].demo("scripted/slow")
	const n = 6
	ids := make([]string, n)
	for i := range ids {
		ids[i] = f.boxes[0].create(fmt.Sprintf("Message %d", i))
		f.boxes[1].follow(ids[i], 0, func(it client.LegacyItem) bool { return it.Delta != nil || it.ID > 4 })
	}
	if err := f.commands[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before := make([]string, n)
	for i, id := range ids {
		before[i] = describe(f.boxes[1].follow(id, 0, agentIs("awaiting_user_input")))
	}
	if err := f.commands[0].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// It works again, and has changed nothing.
	other := f.boxes[0].create("Hello")
	f.boxes[0].follow(other, 0, agentIs("awaiting_user_input"))
	for i, id := range ids {
		if now := describe(f.boxes[0].follow(id, 0, agentIs("awaiting_user_input"))); now != before[i] {
			t.Errorf("before:\n%s\nnow:\n%s", before[i], now)
		}
		if answers(before[i], i) != 1 {
			t.Errorf("not answered once:\n%s", before[i])
		}
	}
}

// readable is a folder through which users of sandboxes can pass.
func readable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
