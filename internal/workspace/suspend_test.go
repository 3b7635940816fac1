package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// soon is a grace period for tests that wait for the suspension itself.
const soon = 20 * time.Millisecond

// suspending is a rig whose unused sandboxes are suspended.
func suspending(t *testing.T, s workspace.Suspension) *rig {
	t.Helper()
	r := newRig(t)
	r.suspend, r.spec.Seal = s, make([]byte, 32)
	r.restart()
	r.claim()
	return r
}

// suspended says what the driver says of a session's sandbox.
func (r *rig) suspended(id session.ID) bool {
	r.t.Helper()
	found, err := r.driver.List(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range found {
		if f.Handle.ID == string(id) {
			return f.Suspended
		}
	}
	return false
}

func (r *rig) waitSuspended() {
	r.t.Helper()
	r.until("the unused sandbox is suspended", func() bool { return r.suspended(id) && r.keeper.Running() == 0 })
}

// length is how many events the session has.
func (r *rig) length() int64 {
	r.t.Helper()
	n := int64(0)
	for e, err := range r.log.Read(r.t.Context(), id, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		if _, ok := e.Payload.(session.Checkpointed); !ok { // made whenever files changed
			n++
		}
	}
	return n
}

// A sandbox that is not used ends, and the next command does not notice, nor does the log.
func TestUnusedSandboxIsSuspended(t *testing.T) {
	r := suspending(t, workspace.Suspension{After: soon})
	r.run("1", "mkdir deep; cd deep; export x=1; alias hi='echo hello'; umask 027; f() { echo $x; }; echo temporary > /tmp/t; echo text > file")
	events, st := r.length(), r.log
	r.waitSuspended()

	// Files are read without it.
	v, err := r.keeper.View(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if _, err := v.Read(t.Context(), "deep/file", &text); err != nil || text.String() != "text\n" {
		t.Errorf("%q, %v", text.String(), err)
	}
	v.Close()
	if ports, err := r.keeper.Ports(t.Context(), id); err != nil || len(ports) > 0 {
		t.Errorf("%v, %v", ports, err)
	}
	if _, err := r.keeper.Dial(t.Context(), id, 8080); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a port: %v", err)
	}
	if r.running() {
		t.Error("reading started the sandbox")
	}

	if got := r.run("2", "pwd; hi; umask; f; printenv x; cat /tmp/t"); got != "/workspace/deep\nhello\n0027\n1\n1\ntemporary" {
		t.Errorf("%q", got)
	}
	r.waitSuspended()
	r.restart() // another server finds it as it is
	if got := r.run("3", "pwd; hi; x=2; f"); got != "/workspace/deep\nhello\n2" {
		t.Errorf("%q", got)
	}
	if now := r.length(); now != events || st != r.log {
		t.Errorf("the log grew from %d to %d events", events, now)
	}
}

// Whatever lives in a sandbox keeps it from being suspended, until it has ended.
func TestLivingSandboxIsNotSuspended(t *testing.T) {
	for name, c := range map[string]struct{ begin, end string }{
		"job":    {"sleep 1000 &", "kill %1; wait 2>/dev/null"},
		"daemon": {"setsid -f sleep 1000 >/dev/null 2>&1 </dev/null", "pkill sleep"},
		"port":   {"python3 -m http.server 8123 >/dev/null 2>&1 & until (</dev/tcp/127.0.0.1/8123) 2>/dev/null; do :; done", "kill %1; wait 2>/dev/null"},
		"file":   {"exec 7>kept", "exec 7>&-"},
		"memory": {"echo x > /dev/shm/x", "rm /dev/shm/x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := suspending(t, workspace.Suspension{After: soon})
			r.run("1", "x=1; "+c.begin)
			r.until("it was looked at", func() bool { return r.keeper.Refused(id) >= 2 })
			if !r.running() {
				t.Error("it was suspended")
			}
			if got := r.run("2", "echo $x; "+c.end); !strings.HasPrefix(got, "1") {
				t.Errorf("%q", got)
			}
			r.waitSuspended()
			if got := r.run("3", "echo $x"); !strings.HasSuffix(got, "1") {
				t.Errorf("%q", got)
			}
		})
	}
}

// Terminals and tool servers are used by people and agents that come back to them.
func TestServingSandboxIsNotSuspended(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, box *sandbox.Sandbox) (end func()){
		"terminal": func(t *testing.T, box *sandbox.Sandbox) func() {
			term, err := box.Terminal(t.Context(), sandbox.TerminalParams{Name: "t"})
			if err != nil {
				t.Fatal(err)
			}
			return func() { _, _ = term.Write([]byte("exit\n")) }
		},
		"tool server": func(t *testing.T, box *sandbox.Sandbox) func() {
			server := `while read -r line; do id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$line"); case $line in *initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}';; *tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[]}}';; esac; done`
			if _, err := box.MCPStart(t.Context(), sandbox.MCPServer{Name: "s", Command: "bash", Args: []string{"-c", server}}); err != nil {
				t.Fatal(err)
			}
			return func() { _ = box.MCPStop(t.Context(), "s") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := suspending(t, workspace.Suspension{After: soon})
			box, release, err := r.keeper.Use(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			end := begin(t, box)
			release()
			r.until("it was looked at", func() bool { return r.keeper.Refused(id) >= 2 })
			if !r.running() {
				t.Error("it was suspended")
			}
			end()
			r.waitSuspended()
		})
	}
}

// Of too many sandboxes, those that were not used for the longest time are suspended. One of eight may be new.
func TestSandboxesAreLimited(t *testing.T) {
	r := suspending(t, workspace.Suspension{After: time.Hour, MaxLive: 16})
	for i := range 4 {
		r.session(i)
		r.use(i, "x=1")
	}
	r.until("two of them are left", func() bool { return r.keeper.Running() == 2 })
	for i := range 4 {
		if got, want := r.suspended(name(i)), i < 2; got != want {
			t.Errorf("%d is suspended: %t", i, got)
		}
	}
	if got := r.use(0, "echo $x"); got != "1" {
		t.Errorf("%q", got)
	}
	r.until("the next one follows", func() bool { return r.keeper.Running() == 2 && r.suspended(name(2)) })
}

// Conversations that work, of which there are too many, are not suspended between their commands again and again.
func TestWorkingSandboxesAreLeftAlone(t *testing.T) {
	r := suspending(t, workspace.Suspension{After: time.Hour, MaxLive: 1, Settle: time.Millisecond})
	var began [2]string
	r.session(0)
	r.session(1)
	for n, calm := 0, 0; calm < 20; n++ {
		now := r.use(n%2, fmt.Sprintf("cut -d' ' -f22 /proc/$$/stat # %d", n))
		if calm++; now != began[n%2] {
			began[n%2], calm = now, 0
		}
		if n == 1000 {
			t.Fatal("its shell was started anew all the time")
		}
	}
}

// Many conversations with one short task do not end the sandbox of one that goes on.
func TestNewSandboxesLeaveOthersAlone(t *testing.T) {
	r := suspending(t, workspace.Suspension{After: time.Hour, MaxLive: 16, Settle: time.Millisecond})
	r.session(0)
	if _, err := r.sessions.Update(t.Context(), name(0), func(session.State) ([]session.Payload, error) { return []session.Payload{session.TurnBegan{}}, nil }); err != nil {
		t.Fatal(err)
	}
	r.use(0, "true")
	for i := 1; i <= 6; i++ {
		r.session(i)
		r.use(i, "true")
	}
	r.until("two of the new ones are left", func() bool { return r.keeper.Running() == 3 })
	if r.suspended(name(0)) {
		t.Error("the one at work was suspended, though there are fewer than 16")
	}
}

// New conversations that someone follows are not suspended for being too many new ones.
func TestFollowedSandboxesStay(t *testing.T) {
	followed := func(id session.ID) bool { return id == name(0) || id == name(1) }
	r := suspending(t, workspace.Suspension{After: time.Hour, MaxLive: 8, Settle: time.Millisecond, Followed: followed})
	for i := range 5 {
		r.session(i)
		r.use(i, "true")
	}
	r.until("one of those without followers is left", func() bool { return r.keeper.Running() == 3 })
	for i := range 2 {
		if r.suspended(name(i)) {
			t.Errorf("%d was suspended although it has a follower", i)
		}
	}
}

// A hundred conversations that wait for their users have no process.
func TestUnusedSandboxesHaveNoProcess(t *testing.T) {
	r := suspending(t, workspace.Suspension{After: soon})
	const many = 100
	var work sync.WaitGroup
	queue := make(chan int)
	for range 4 {
		work.Go(func() {
			for i := range queue {
				r.session(i)
				r.use(i, fmt.Sprintf("x=%d", i))
			}
		})
	}
	for i := range many {
		queue <- i
	}
	close(queue)
	work.Wait()
	r.until("no runner is left", func() bool {
		found, err := r.driver.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		asleep := 0
		for _, f := range found {
			if f.Suspended && !f.Running {
				asleep++
			}
		}
		return asleep == many && r.keeper.Running() == 0
	})
	if got := r.use(42, "echo $x"); got != "42" {
		t.Errorf("%q", got)
	}
}

func name(i int) session.ID { return session.ID(fmt.Sprintf("n%d", i)) }

// session makes one more, with a holder.
func (r *rig) session(i int) {
	if _, err := r.sessions.Create(r.t.Context(), name(i), session.Created{Owner: "ann"}, nil); err != nil {
		r.t.Error(err)
	}
	if _, err := r.sessions.Update(r.t.Context(), name(i), func(s session.State) ([]session.Payload, error) { return s.Take("loop") }); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) use(i int, text string) string {
	box, release, err := r.keeper.Use(r.t.Context(), name(i))
	if err != nil {
		r.t.Error(err)
		return ""
	}
	defer release()
	res, err := box.Exec(r.t.Context(), sandbox.Command{ID: text, Text: text}, nil)
	if err != nil {
		r.t.Error(err)
	}
	return strings.TrimSpace(res.Output)
}

// A conversation that is stopped while its sandbox is suspended begins anew.
func TestStopOfASuspendedSandbox(t *testing.T) {
	r := suspending(t, workspace.Suspension{After: soon})
	r.run("1", "x=1; echo kept > file; echo gone > /tmp/gone")
	r.waitSuspended()
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.update(func(s session.State) ([]session.Payload, error) { return s.Start() })
	r.claim()
	if got := r.run("2", "echo ${x-none}; cat file; ls /tmp"); got != "none\nkept" {
		t.Errorf("%q", got)
	}
}

// Commands that come at any moment of a suspension run once, in the same shell.
func TestCommandsMeetASuspension(t *testing.T) {
	r := suspending(t, workspace.Suspension{After: time.Millisecond})
	r.run("0", "i=0")
	for i := range 60 {
		if got, want := r.run(fmt.Sprint("n", i), "i=$((i+1)); echo $i"), fmt.Sprint(i+1); got != want {
			t.Fatalf("command %d saw %q", i, got)
		}
		timer := time.NewTimer(time.Duration(i%20) * time.Millisecond)
		<-timer.C
	}
	if notes := events[session.Noted](r); len(notes) > 0 {
		t.Errorf("%v", notes)
	}
}

// A runner that is killed while it is being suspended, or while it continues, has either its
// state or a notice about its loss. The server is gone at that time.
func TestKillDuringASuspension(t *testing.T) {
	r := suspending(t, workspace.Suspension{})
	kept, lost := 0, 0
	for i := range 24 {
		r.run(fmt.Sprint("set", i), fmt.Sprintf("x=%d", i))
		box, release, err := r.keeper.Use(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		before := len(events[session.Noted](r))
		asked := make(chan struct{})
		go func() { defer close(asked); _ = box.Suspend(t.Context()) }()
		timer := time.NewTimer(time.Duration(i) * time.Millisecond / 2)
		<-timer.C
		r.stop()
		release()
		if r.running() {
			r.kill()
		}
		<-asked
		r.open()
		got := r.run(fmt.Sprint("get", i), "echo $x")
		said := len(events[session.Noted](r)) > before
		switch {
		case got == fmt.Sprint(i):
			kept++
		case got == "" && said:
			lost++
		default:
			t.Errorf("round %d: %q, said %t", i, got, said)
		}
	}
	t.Logf("%d kept, %d lost and said", kept, lost)
}
