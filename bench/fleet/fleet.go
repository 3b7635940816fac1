// Package fleet measures servers that work together on one PostgreSQL database, on one machine: what one and three of them do in a second,
// and how long conversations wait when their server is killed.
package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/bench/report"
	"deckhand/client"
	"deckhand/internal/load"
	"deckhand/internal/load/process"
	"deckhand/internal/store/postgres/pgtest"
)

// part is what the rows are called.
const part = "replicas"

// Config is what a run needs.
type Config struct {
	Program, Dir string
	// Settings store the model of the turns for a user.
	Settings string
	Quick    bool
	Report   *report.Report
}

// durable are the settings of a database that keeps what it has acknowledged.
var durable = []string{"fsync=on", "synchronous_commit=on", "full_page_writes=on", "autovacuum=on", "shared_buffers=256MB"}

// fleet is some servers with a database and a NATS server.
type fleet struct {
	Config
	ctx      context.Context
	database *pgtest.Server
	nats     *exec.Cmd
	args     []string
	servers  []*load.Server
}

// start starts a database, a NATS server and one server.
func (c Config) start(ctx context.Context) (f *fleet, err error) {
	f = &fleet{Config: c, ctx: ctx}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if f.database, err = pgtest.Start(durable...); err != nil {
		return f, err
	}
	program, err := exec.LookPath(filepath.Join("bin", "nats-server"))
	if err != nil {
		return f, errors.New("there is no bin/nats-server: scripts/nats-server builds it")
	}
	address, err := load.FreeAddr()
	if err != nil {
		return f, err
	}
	host, port, _ := strings.Cut(address, ":")
	nats := exec.Command(program, "-a", host, "-p", port)
	nats.SysProcAttr = process.Group()
	if err := nats.Start(); err != nil {
		return f, err
	}
	f.nats = nats
	f.args = []string{"--database-url", f.database.Address("postgres"), "--nats-url", "nats://" + address, "--sandbox", "local", "--rate-limit", "0"}
	return f, f.add()
}

// add starts one more server with the keys of the first.
func (f *fleet) add() error {
	dir, err := os.MkdirTemp(f.Dir, "data-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // the sandboxes' own users must get through
	}
	for _, name := range []string{"master.key", "admin.key"} {
		if err == nil && len(f.servers) > 0 {
			var key []byte
			if key, err = os.ReadFile(filepath.Join(f.servers[0].Dir, name)); err == nil {
				err = os.WriteFile(filepath.Join(dir, name), key, 0o600)
			}
		}
	}
	if err != nil {
		return err
	}
	among, err := load.FreeAddr() // a port that the server chooses could be the one on which it is to answer requests
	if err != nil {
		return err
	}
	s, err := load.Serve(f.ctx, f.Dir, f.Program, dir, nil, append(slices.Clone(f.args), "--replica-addr", among)...)
	if err == nil {
		f.servers = append(f.servers, s)
	}
	return err
}

func (f *fleet) stop() {
	for _, s := range f.servers {
		s.Stop()
	}
	if f.nats != nil {
		_ = f.nats.Process.Kill()
		_ = f.nats.Wait()
	}
	if f.database != nil {
		_ = f.database.Stop()
	}
}

// rates are what servers do in a second.
type rates struct{ creates, turns load.Sample }

// Run measures, and adds the rows.
func (c Config) Run(ctx context.Context) error {
	var found [2]rates
	for i, n := range []int{1, 3} {
		var err error
		if found[i], err = c.rates(ctx, n); err != nil {
			return fmt.Errorf("%d servers: %w", n, err)
		}
	}
	one, three := found[0], found[1]
	const note = "the floor is one server; the database, all servers and the clients share the cores"
	c.Report.Add(part, "creates on PostgreSQL, three servers", report.PerSecond, three.creates.Rate(), one.creates.Rate()).RatioAtLeast(0.5).Comment(note)
	c.Report.Add(part, "warm turns on PostgreSQL, three servers", report.PerSecond, three.turns.Rate(), one.turns.Rate()).RatioAtLeast(0.5).Comment(note)
	c.Report.Add(part, "a warm turn on PostgreSQL, three servers, median", report.Millis, load.Percentile(three.turns.Delays, 50), load.Percentile(one.turns.Delays, 50)).RatioAtMost(3).Comment("%d at once", turnsAtOnce)
	return c.takeover(ctx)
}

const (
	users       = 24
	turnsAtOnce = users
	creators    = 32
)

// rates measures n servers.
func (c Config) rates(ctx context.Context, n int) (out rates, err error) {
	f, err := c.start(ctx)
	if err != nil {
		return out, err
	}
	defer f.stop()
	for range n - 1 {
		if err := f.add(); err != nil {
			return out, err
		}
	}
	for _, s := range f.servers {
		s.Rest(ctx)
	}
	keys, err := f.servers[0].Users(users, c.Settings)
	if err != nil {
		return out, err
	}
	during := 10 * time.Second
	if c.Quick {
		during = 3 * time.Second
	}
	links := make([]*load.Link, creators)
	for i := range links {
		if links[i], err = load.Dial(f.servers[i%n].Addr); err != nil {
			return out, err
		}
		defer links[i].Close()
	}
	out.creates, err = load.Hammer(creators, during, func(i int) error {
		_, err := links[i].Ask(load.Message("POST", load.Conversations, f.servers[i%n].Addr, keys[i%users], `{}`))
		return err
	})
	if err != nil {
		return out, err
	}
	chats := make([]*load.Chat, turnsAtOnce)
	for i := range chats {
		chats[i], err = load.Open(f.servers[i%n].Addr, keys[i], "go")
		if chats[i] != nil {
			defer chats[i].Close()
			defer func() { _ = chats[i].Delete() }()
		}
		if err != nil {
			return out, err
		}
	}
	out.turns, err = load.Hammer(turnsAtOnce, during, func(i int) error { return chats[i].Turn() })
	return out, err
}

const (
	// working is how many conversations three servers have when one is killed, and words how many words of theirs the model repeats, ten in a second. It
	// repeats 200 characters at most.
	working, words = 100, 100
	// silence is how long an answer that is being written does not pause.
	silence = 4 * time.Second
)

// takeover kills a server while conversations work, and measures how long each pauses, as its followers on the other servers see it.
func (c Config) takeover(ctx context.Context) error {
	f, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer f.stop()
	for range 2 {
		if err := f.add(); err != nil {
			return err
		}
	}
	first := f.servers[0]
	if err := first.Store(first.Key, load.Settings("scripted/slow", "")); err != nil {
		return err
	}
	text, _ := json.Marshal(map[string]string{"initial_user_msg": strings.Repeat("a ", words)})
	ids := make([]string, working)
	for i := range ids {
		at := f.servers[i%3].Addr
		answer, err := load.Ask1(at, load.Message("POST", load.Conversations, at, first.Key, string(text)))
		var made struct {
			ID string `json:"conversation_id"`
		}
		if err == nil {
			err = json.Unmarshal(answer, &made)
		}
		if err != nil {
			return err
		}
		ids[i] = made.ID
	}
	var begun, done sync.WaitGroup
	begun.Add(working)
	paused, failures := make([]time.Duration, working), make([]error, working)
	killed := make(chan struct{})
	var at time.Time
	for i, id := range ids {
		done.Go(func() { paused[i], failures[i] = f.watch(1+i%2, id, begun.Done, killed, &at) })
	}
	begun.Wait()
	first.Kill()
	at = time.Now()
	close(killed)
	done.Wait()
	failed := slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d conversations: %w", len(failed), working, failed[0])
	}
	paused = slices.DeleteFunc(paused, func(d time.Duration) bool { return d == 0 }) // the killed server did not have it
	if len(paused) == 0 {
		return errors.New("all conversations were answered before the server was killed")
	}
	c.Report.Add(part, "a server is killed: its conversations continue, median", report.Millis, load.Percentile(paused, 50), 0).AtMost(15_000).Comment("%d of %d conversations that were being answered by three servers", len(paused), working)
	c.Report.Add(part, "a server is killed: its conversations continue, worst", report.Millis, load.Percentile(paused, 100), 0).AtMost(15_000).Comment("all %d were answered once, and followers on other servers missed nothing", working)
	return nil
}

// watch follows a conversation to the end of its answer, and returns when it went on after the kill; 0 if it did not pause.
func (f *fleet) watch(server int, id string, begun func(), killed chan struct{}, at *time.Time) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(f.ctx, load.TurnTime)
	defer cancel()
	begun = sync.OnceFunc(begun)
	defer begun()
	answers, last, seen := 0, time.Now(), int64(0)
	c := client.New("http://"+f.servers[server].Addr, f.servers[0].Key)
	for it, err := range c.FollowLegacy(ctx, id, 0) {
		if err != nil {
			return 0, fmt.Errorf("%s: %w", id, err)
		}
		now := time.Now()
		if it.Delta != nil {
			begun()
		}
		select {
		case <-killed:
			if now.Sub(last) > silence && after == 0 {
				after = now.Sub(*at)
			}
		default:
		}
		last = now
		if it.ID == 0 {
			continue
		}
		if it.ID <= seen {
			return 0, fmt.Errorf("%s: event %d came after %d", id, it.ID, seen)
		}
		seen = it.ID
		if strings.Contains(string(it.Raw), `"source":"agent","message":"[scripted demo model] You said`) {
			answers++
		}
		if it.Event != nil && it.Event.Observation == "agent_state_changed" && strings.Contains(string(it.Event.Extras), `"awaiting_user_input"`) {
			break
		}
	}
	if answers != 1 {
		return 0, fmt.Errorf("%s was answered %d times", id, answers)
	}
	return after, nil
}
