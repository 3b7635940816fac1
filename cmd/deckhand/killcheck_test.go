package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/soak"
)

const (
	// commandsEach is how many commands each conversation runs.
	commandsEach = 6
	// maxLife is how long a server lives at most, once the conversations begin.
	maxLife = 2 * time.Second
	// killsInARow is how many servers are killed before one lives until all conversations
	// have ended.
	killsInARow = 30
	// answerTime bounds the wait for one command. It only ends a hang.
	answerTime = 4 * time.Minute
)

// kills is how often the server is killed. DECKHAND_KILLS is another number.
func kills(t *testing.T) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("DECKHAND_KILLS")); err == nil {
		return n
	}
	return soak.Times(6, 500)
}

// A server that is killed while sandboxes start damages no conversation: every command runs once,
// in the right workspace, and has a known result.
func TestKilledWhileSandboxesStart(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts sandboxes")
	checkKills(t, kills(t), withSandbox(t, "local"))
}

// The same with containers.
func TestKilledWhileContainersStart(t *testing.T) {
	t.Parallel()
	if !soak.On() && os.Getenv("DECKHAND_KILLS") == "" {
		t.Skip("SKIPPED: runs in make soak")
	}
	host, image := dockertest.Engine(t), dockertest.BusyboxImage(t)
	server := checkKills(t, kills(t), append(withSandbox(t, "docker"), "--docker-host", host, "--sandbox-image", image))
	server.until("the containers go", func() bool {
		for id := range dockertest.Sandboxes(t) {
			if strings.HasPrefix(id, "kill-") {
				return false
			}
		}
		return true
	})
}

// killCheck starts a server again and again while conversations are at work.
type killCheck struct {
	t    *testing.T
	dir  string
	args []string

	mu      sync.Mutex
	server  *box
	life    context.Context // ends when the server is killed
	changed chan struct{}   // closed when there is another server

	faults int
	ran    int
}

// checkKills kills the server so many times, with two new conversations between two kills.
// It returns the last server.
func checkKills(t *testing.T, kills int, args []string) *box {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	seed := uint64(14)
	t.Logf("%d kills with seed %d", kills, seed)
	random := rand.New(rand.NewPCG(seed, seed))
	k := &killCheck{t: t, dir: dir, args: args, changed: make(chan struct{})}
	var conversations sync.WaitGroup
	for i := range kills {
		process, end := k.start(i == 0)
		for j := range 2 {
			conversations.Go(func() { k.converse(fmt.Sprintf("kill-%d-%d", i, j)) })
		}
		if i%killsInARow == killsInARow-1 {
			conversations.Wait()
		}
		<-time.After(time.Duration(random.Int64N(int64(maxLife))))
		end()
		_ = process.Process.Kill()
		_ = process.Wait()
	}
	k.start(false)
	conversations.Wait()
	k.server.until("the sandboxes go", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, "boxes", "kill-*"))
		return err == nil && len(left) == 0
	})
	t.Logf("%d commands in %d conversations, %d faults", k.ran, 2*kills, k.faults)
	return k.server
}

// start starts a server. end says that it is about to be killed.
func (k *killCheck) start(first bool) (process *exec.Cmd, end func()) {
	b, process := spawn(k.t, k.dir, k.args...)
	if first {
		b.demo("scripted/demo")
	}
	life, end := context.WithCancel(k.t.Context())
	k.mu.Lock()
	k.server, k.life = b, life
	close(k.changed)
	k.changed = make(chan struct{})
	k.mu.Unlock()
	return process, end
}

// ask does something with the server, and again with the next one when that is killed meanwhile.
func (k *killCheck) ask(ctx context.Context, do func(context.Context, *client.Client) error) error {
	for {
		k.mu.Lock()
		server, life, changed := k.server, k.life, k.changed
		k.mu.Unlock()
		within, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(life, cancel)
		err := do(within, server.client)
		stop()
		cancel()
		if err == nil || life.Err() == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// converse runs the commands of one conversation, looks at what they left, and deletes it.
func (k *killCheck) converse(id string) {
	var last int64
	for n := range commandsEach {
		ctx, cancel := context.WithTimeout(k.t.Context(), answerTime)
		text := fmt.Sprintf("$ echo %d >> runs && touch ~/home /tmp/tmp && echo 'end of '%d", n, n)
		seen, err := k.command(ctx, id, n, text, last)
		cancel()
		if err != nil {
			k.fault(id, "command %d has no answer: %v\n%s", n, err, describe(seen))
			return
		}
		last = seen[len(seen)-1].ID
		k.mu.Lock()
		k.ran++
		k.mu.Unlock()
		if got := describe(seen); !strings.Contains(got, fmt.Sprintf("end of %d", n)) || !strings.Contains(got, `"exit_code":0`) {
			k.fault(id, "command %d: %s", n, got)
		}
	}
	k.check(id)
	ctx, cancel := context.WithTimeout(k.t.Context(), answerTime)
	defer cancel()
	err := k.ask(ctx, func(ctx context.Context, c *client.Client) error { return c.Delete(ctx, id) })
	if err != nil && !client.IsNotFound(err) {
		k.fault(id, "it cannot be deleted: %v", err)
	}
}

// command sends one command and reads the stream until the agent waits again.
func (k *killCheck) command(ctx context.Context, id string, n int, text string, last int64) (seen []client.LegacyItem, err error) {
	err = k.ask(ctx, func(ctx context.Context, c *client.Client) error {
		if n == 0 {
			_, err := c.Create(ctx, api.CreateConversation{ConversationID: api.Some(id), InitialUserMsg: api.Some(text)})
			return err
		}
		return c.Say(ctx, id, text, fmt.Sprintf("%s-%d", id, n))
	})
	if err != nil {
		return nil, err
	}
	asked := false // what came before belongs to the command before
	err = k.ask(ctx, func(ctx context.Context, c *client.Client) error {
		for it, err := range c.FollowLegacy(ctx, id, last) {
			if err != nil {
				return err
			}
			if it.ID > last {
				last, seen = it.ID, append(seen, it)
			}
			asked = asked || strings.Contains(string(it.Raw), fmt.Sprintf("'end of '%d", n))
			if asked && (agentIs("awaiting_user_input")(it) || agentIs("error")(it) || agentIs("stopped")(it)) {
				return nil
			}
		}
		return errors.Join(ctx.Err(), errors.New("the stream ended"))
	})
	return seen, err
}

// check looks at what the commands of a conversation left on disk, where it can be seen from here.
func (k *killCheck) check(id string) {
	dir := filepath.Join(k.dir, "boxes", id)
	runs, err := os.ReadFile(filepath.Join(dir, "ws", "runs"))
	if errors.Is(err, os.ErrNotExist) && !strings.Contains(strings.Join(k.args, " "), "--sandbox local") {
		return
	}
	want := ""
	for n := range commandsEach {
		want += fmt.Sprintln(n)
	}
	if err != nil || string(runs) != want {
		k.fault(id, "the commands ran as %q: %v", runs, err)
	}
	var meta struct{ User uint32 }
	text, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	info, e := os.Stat(filepath.Join(dir, "ws"))
	if err = errors.Join(err, e); err != nil {
		k.fault(id, "%v", err)
		return
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; meta.User != 0 && owner != meta.User {
		k.fault(id, "the workspace belongs to %d, not to %d", owner, meta.User)
	}
}

func (k *killCheck) fault(id, format string, args ...any) {
	k.mu.Lock()
	k.faults++
	k.mu.Unlock()
	k.t.Errorf("%s: "+format, append([]any{id}, args...)...)
}
