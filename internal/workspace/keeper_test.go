package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
	"deckhand/internal/soak"
	"deckhand/internal/workspace"
)

// boxes is where the sandboxes of all tests lie: a driver looks the system over
// once and remembers what it found there.
var boxes string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "deckhand-workspace-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // a sandbox's own user must get through
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	boxes = filepath.Join(dir, "boxes")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.RemoveAll(dir); os.Exit(code) }))
}

const id session.ID = "c1"

// rig is a keeper with a real driver and a log in memory.
type rig struct {
	t        *testing.T
	log      *memlog.Log
	sessions *session.Sessions
	driver   *local.Driver
	keeper   *workspace.Keeper
	spec     sandbox.Spec
	dir      string
	grew     chan struct{}
	silence  time.Duration
	disk     int64
	suspend  workspace.Suspension
	stop     func()
}

// Appended wakes waiters for the log.
func (r *rig) Appended(session.ID, int64) {
	select {
	case r.grew <- struct{}{}:
	default:
	}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	soak.NotShort(t, "starts sandboxes")
	r := &rig{t: t, log: memlog.New(), dir: boxes, grew: make(chan struct{}, 1)}
	r.sessions = session.New(r.log)
	r.open()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		r.stop()
		found, err := r.driver.List(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, f := range found {
			if err := r.driver.Destroy(ctx, f.Handle); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := r.sessions.Create(t.Context(), id, session.Created{Owner: "ann"}, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// open makes a keeper, as a server does when it starts.
func (r *rig) open() {
	r.t.Helper()
	var err error
	if r.driver, err = local.New(local.Options{Dir: r.dir, Runner: sandboxtest.Runner(r.t)}); err != nil {
		r.t.Fatal(err)
	}
	keeper := workspace.New(workspace.Config{Driver: r.driver, Name: local.Name, Sessions: r.sessions, Index: r.log, Silence: r.silence, DiskPerUser: r.disk, Suspension: r.suspend,
		Spec: func(context.Context, session.State) (sandbox.Spec, error) { return r.spec, nil }})
	r.keeper = keeper
	r.sessions = session.New(r.log) // a new server knows nothing but the log
	keeper.Sessions = r.sessions
	r.sessions.Observe(r)
	r.sessions.Watch(keeper)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = keeper.Run(ctx) }()
	driver := r.driver
	r.stop = func() {
		cancel()
		<-done
		keeper.Close()
		if err := driver.Close(); err != nil {
			r.t.Error(err)
		}
	}
}

// restart is what a server that was killed and started again is to a sandbox.
func (r *rig) restart() { r.stop(); r.open() }

// claim gives the session a holder.
func (r *rig) claim() {
	r.t.Helper()
	r.update(func(s session.State) ([]session.Payload, error) { return s.Take("loop") })
	r.update(func(s session.State) ([]session.Payload, error) {
		return s.Prepared(s.Claim, session.WorkspaceReady{})
	})
}

func (r *rig) update(rule func(session.State) ([]session.Payload, error)) {
	r.t.Helper()
	if _, err := r.sessions.Update(r.t.Context(), id, rule); err != nil {
		r.t.Fatal(err)
	}
}

// run runs a command in the session's sandbox.
func (r *rig) run(name, text string) string {
	r.t.Helper()
	box, release, err := r.keeper.Use(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	defer release()
	res, err := box.Exec(r.t.Context(), sandbox.Command{ID: name, Text: text}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(res.Output)
}

// until waits for the log, and for what the keeper does by itself, to make ok true.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond) // a sandbox ends without a signal here
	defer tick.Stop()
	for !ok() {
		select {
		case <-r.grew:
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("never: %s", what)
		}
	}
}

func (r *rig) running() bool {
	r.t.Helper()
	found, err := r.driver.List(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range found {
		if f.Handle.ID == string(id) {
			return f.Running
		}
	}
	return false
}

func (r *rig) exists() bool {
	_, err := os.Stat(filepath.Join(r.dir, string(id)))
	return err == nil
}

// events is the payloads of one kind.
func events[P session.Payload](r *rig) []P {
	r.t.Helper()
	var out []P
	for e, err := range r.log.Read(r.t.Context(), id, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		if p, ok := e.Payload.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

func TestSandboxIsStartedOnceAndRecorded(t *testing.T) {
	r := newRig(t)
	r.claim()
	if r.running() {
		t.Fatal("a sandbox runs before it is needed")
	}
	r.run("1", "echo kept > file; cd /tmp")
	if got := r.run("2", "pwd; cat /workspace/file"); got != "/tmp\nkept" {
		t.Errorf("the second use met another shell: %q", got)
	}
	ready := events[session.WorkspaceReady](r)
	if len(ready) != 2 || !strings.Contains(string(ready[1].Handle), `"driver":"local"`) {
		t.Errorf("the log says %v", ready)
	}
}

// A server that is killed while it starts a sandbox leaves a step in the log. The next
// server takes it back, or the conversation would look as if it never finished starting.
func TestRestartClearsAnUnfinishedStart(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.update(func(s session.State) ([]session.Payload, error) {
		return s.Progressed(s.Claim, session.WorkspaceStep{Step: "starting"})
	})
	r.restart()
	r.until("the step is cleared", func() bool {
		row, err := r.log.Row(t.Context(), id)
		return err == nil && row.Step == ""
	})
}

func TestStopKeepsTheWorkspaceAndResumeMountsItAgain(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("1", "echo kept > file; sleep 1000 &")
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("the sandbox of a stopped session ends", func() bool { return !r.running() })
	if !r.exists() {
		t.Fatal("the workspace went with it")
	}
	r.update(func(s session.State) ([]session.Payload, error) { return s.Start() })
	r.claim()
	if got := r.run("2", "cat file; jobs"); got != "kept" {
		t.Errorf("after the resume: %q", got)
	}
	if notes := events[session.Noted](r); len(notes) > 0 {
		t.Errorf("a stop that was wanted was told as a loss: %v", notes)
	}
}

func TestDeleteRemovesEverything(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("1", "touch file")
	r.update(session.State.Delete)
	r.until("the workspace of a deleted session goes", func() bool { return !r.exists() })
	if _, _, err := r.keeper.Use(t.Context(), id); !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrDeleted) {
		t.Errorf("a deleted session got a sandbox: %v", err)
	}
}

// A command that was under way when the server went away is met again by the next one.
func TestRestartFindsTheSandbox(t *testing.T) {
	r := newRig(t)
	r.claim()
	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = box.Exec(ctx, sandbox.Command{ID: "long", Text: "mkfifo p; echo begun | tee -a runs; read x < p; echo got $x"}, func([]byte) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	release()
	r.restart()
	if got := r.run2("other", "echo word > p"); got != "" {
		t.Errorf("%q", got)
	}
	box, release, err = r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	res, err := box.Exec(t.Context(), sandbox.Command{ID: "long", Again: true, Text: "exit 9"}, nil)
	if err != nil || res.Exit != 0 || !strings.Contains(res.Output, "got word") {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := r.run("3", "cat runs"); got != "begun" {
		t.Errorf("it ran more than once: %q", got)
	}
	if notes := events[session.Noted](r); len(notes) > 0 {
		t.Errorf("a restart of the server was told as a loss: %v", notes)
	}
}

// run2 runs a command in a shell of its own.
func (r *rig) run2(name, text string) string {
	r.t.Helper()
	box, release, err := r.keeper.Use(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	defer release()
	res, err := box.Exec(r.t.Context(), sandbox.Command{ID: name, Shell: "second", Text: text}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(res.Output)
}

// A sandbox that dies is noticed, started again, and people are told.
func TestLostSandboxIsStartedAgainAndSaid(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("1", "echo kept > file")
	r.kill()
	r.until("the loss is noted", func() bool { return len(events[session.Noted](r)) == 1 })
	r.until("the sandbox is started again", r.running)
	if got := r.run("2", "cat file"); got != "kept" {
		t.Errorf("%q", got)
	}
	if n := events[session.Noted](r)[0]; !strings.Contains(n.Message, "restarted") {
		t.Errorf("%+v", n)
	}
}

// Nothing listens in a sandbox that ended while it was asked.
func TestPortsOfASandboxThatEnds(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("1", "true")
	ended, errs := make(chan struct{}), make(chan error)
	for range 4 {
		go func() {
			for {
				_, err := r.keeper.Ports(t.Context(), id)
				select {
				case <-ended:
				default:
					if err == nil {
						continue
					}
				}
				errs <- err
				return
			}
		}()
	}
	r.kill()
	r.until("the loss is noted", func() bool { return len(events[session.Noted](r)) == 1 })
	close(ended)
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// kill ends a sandbox's first process from outside.
func (r *rig) kill() {
	r.t.Helper()
	var meta struct{ PID int }
	b, err := os.ReadFile(filepath.Join(r.dir, string(id), "meta.json"))
	if err == nil {
		err = json.Unmarshal(b, &meta)
	}
	if err != nil || meta.PID <= 1 {
		r.t.Fatalf("%s: %v", b, err)
	}
	if err := syscall.Kill(meta.PID, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

// Unneeded leftovers of a server are removed at the next start.
func TestSweepEndsWhatNobodyNeeds(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("1", "true")
	if _, err := r.driver.Start(t.Context(), sandbox.Spec{ID: "orphan"}, nil); err != nil {
		t.Fatal(err)
	}
	r.stop()
	// Stopped while no keeper looked.
	if _, err := session.New(r.log).Update(t.Context(), id, func(s session.State) ([]session.Payload, error) { return s.Stop("gone") }); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.until("the sandbox of a stopped session ends", func() bool { return !r.running() })
	r.until("the orphan goes", func() bool {
		_, err := os.Stat(filepath.Join(r.dir, "orphan"))
		return errors.Is(err, os.ErrNotExist)
	})
	if !r.exists() {
		t.Error("a stopped session lost its workspace")
	}
}

// A workspace whose conversation the database does not know, such as one that was
// restored from an older backup, is kept where no sandbox uses it.
func TestSweepSetsUnknownWorkspacesAside(t *testing.T) {
	r := newRig(t)
	r.stop()
	if got := r.elsewhere("echo precious > work; ls"); got != "work" {
		t.Fatalf("%q", got)
	}
	r.open()
	r.until("the unknown workspace is out of the way", func() bool {
		_, err := os.Stat(filepath.Join(r.dir, "unknown"))
		return errors.Is(err, os.ErrNotExist)
	})
	kept, err := filepath.Glob(filepath.Join(r.dir, ".set-aside", "unknown.*", "ws", "work"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || string(text) != "precious\n" {
		t.Errorf("%q, %v", text, err)
	}
	r.stop()
	if got := r.elsewhere("ls -A"); got != "" {
		t.Errorf("a new sandbox with the same ID sees %q", got)
	}
	r.open()
}

// elsewhere runs a command in a sandbox that no session has, while no keeper runs.
func (r *rig) elsewhere(text string) string {
	r.t.Helper()
	driver, err := local.New(local.Options{Dir: r.dir, Runner: sandboxtest.Runner(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	defer driver.Close()
	box, _, err := sandbox.Open(r.t.Context(), driver, sandbox.Spec{ID: "unknown"}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer box.Close()
	res, err := box.Exec(r.t.Context(), sandbox.Command{ID: text, Text: text}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(res.Output)
}

// Looking into a stopped workspace starts nothing; writing to it does, for as long as it takes.
func TestViewOfAStoppedWorkspace(t *testing.T) {
	r := newRig(t)
	if _, err := r.keeper.View(t.Context(), id); !errors.Is(err, workspace.ErrNone) {
		t.Fatalf("a view before there was a workspace: %v", err)
	}
	r.claim()
	r.run("1", "git init -q . && echo one > a && ln -s /etc/passwd out")
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("it ends", func() bool { return !r.running() })

	v, err := r.keeper.View(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if _, err := v.Read(t.Context(), "a", &text); err != nil || text.String() != "one\n" {
		t.Errorf("%q, %v", text.String(), err)
	}
	if _, err := v.Read(t.Context(), "out", &text); !errors.Is(err, sandbox.ErrEscapes) {
		t.Errorf("a link that leads out: %v", err)
	}
	changes, err := v.Changes(t.Context())
	if err != nil || len(changes) != 2 {
		t.Errorf("%v, %v", changes, err)
	}
	v.Close()
	if r.running() || r.keeper.Running() != 0 {
		t.Error("a look started the sandbox")
	}

	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Write(t.Context(), sandbox.WriteParams{PathParams: sandbox.InWorkspace("b")}, strings.NewReader("two")); err != nil {
		t.Fatal(err)
	}
	release()
	r.until("it ends with its last user", func() bool { return !r.running() })
}

// A sandbox that a person opened while the session had no holder is recorded
// when it gets one.
func TestOpenedBeforeItIsWorkedOn(t *testing.T) {
	r := newRig(t)
	_, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	r.update(func(s session.State) ([]session.Payload, error) { return s.Take("loop") })
	r.run("1", "true")
	st, err := r.sessions.Load(t.Context(), id)
	if err != nil || !st.Ready || !st.Up || st.Status() != session.Running {
		t.Errorf("%+v, %v", st, err)
	}
}

// A name that a person gives to a stopped conversation does not end the look
// that are open into it.
func TestLookIntoAStoppedWorkspaceOutlivesARename(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("1", "true")
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("it ends", func() bool { return !r.running() })
	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.update(func(s session.State) ([]session.Payload, error) { return s.Rename("another") })
	r.keeper.Wake(id)
	for i := range 20 { // time for the keeper to do the wrong thing
		if _, err := box.Exec(t.Context(), sandbox.Command{ID: fmt.Sprint(i), Text: "true"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	release()
	r.until("it ends with its last user", func() bool { return !r.running() })
}

// A file that was deleted and is still open fills the disk as any other.
func TestDiskLimitCountsDeletedFiles(t *testing.T) {
	r := newRig(t)
	r.spec.Limits.Disk = 8 << 20
	r.claim()
	r.run("fill", "(for i in 1 2 3; do eval \"exec $((5+i))>f\"; rm f; head -c 6000000 /dev/zero >&$((5+i)); sleep 3; done; sleep 1000) & true")
	r.until("it is said", func() bool {
		n := events[session.Noted](r)
		return len(n) > 0 && n[0].ID == "STATUS$ERROR_DISK_QUOTA"
	})
}

// What fills the disk is ended, and people are told.
func TestDiskLimit(t *testing.T) {
	r := newRig(t)
	r.spec.Limits.Disk = 8 << 20
	r.claim()
	// In the background, without a waiting caller.
	r.run("fill", "(i=0; while head -c 1000000 /dev/zero > f$i; do i=$((i+1)); sleep 0.02; done) & true")
	r.until("it is said", func() bool {
		n := events[session.Noted](r)
		return len(n) > 0 && n[0].ID == "STATUS$ERROR_DISK_QUOTA"
	})
	r.run("gone", "jobs")
	r.edits(true)
	if got := r.run("after", "rm -f f*; pgrep -c head; echo fine"); !strings.HasSuffix(got, "fine") {
		t.Errorf("after that: %q", got)
	}
	r.edits(false)
}

// edits looks at a file, changes it and saves another, which is refused when the sandbox is full.
func (r *rig) edits(full bool) {
	r.t.Helper()
	box, release, err := r.keeper.Use(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	defer release()
	name, text := "edited", "text"
	file := strings.TrimSpace(r.run(fmt.Sprint("pwd", full), "pwd")) + "/" + name
	for _, command := range []string{"create", "view"} {
		p := sandbox.EditParams{Command: command, Path: file}
		if command == "create" {
			p.ID, p.FileText = fmt.Sprint("edit", full), &text
		}
		got, err := box.Edit(r.t.Context(), p)
		if refused := strings.Contains(got.Text, sandbox.Full); err != nil || refused != (full && command == "create") || got.Failed != full {
			r.t.Errorf("%s while full is %t: %+v, %v", command, full, got, err)
		}
	}
	_, err = box.Save(r.t.Context(), sandbox.WriteParams{PathParams: sandbox.InWorkspace("saved")}, strings.NewReader(text))
	if why, refused := sandbox.Refusal(err); refused != full || full && why != sandbox.Full || !refused && err != nil {
		r.t.Errorf("saving while full is %t: %v", full, err)
	}
}

// A sandbox is given out when all is brought into it, and that is done once for
// each connection. If it cannot be, the next one tries again.
func TestPrepare(t *testing.T) {
	r := newRig(t)
	r.claim()
	var calls int
	refuse := errors.New("not yet")
	r.keeper.Prepare = func(_ context.Context, st session.State, box *sandbox.Sandbox, tell func(sandbox.Progress)) error {
		if calls++; st.ID != id || box == nil {
			t.Errorf("%+v", st)
		}
		tell(sandbox.Progress{Step: sandbox.Cloning})
		return refuse
	}
	if _, _, err := r.keeper.Use(t.Context(), id); !errors.Is(err, refuse) {
		t.Errorf("%v", err)
	}
	st, err := r.sessions.Load(t.Context(), id)
	if err != nil || st.Up || st.Step != "" {
		t.Errorf("up %t at step %q: %v", st.Up, st.Step, err)
	}
	refuse = nil
	for range 3 {
		box, release, err := r.keeper.Use(t.Context(), id)
		if err != nil || box == nil {
			t.Fatal(err)
		}
		release()
	}
	if st, _ = r.sessions.Load(t.Context(), id); calls != 2 || !st.Up {
		t.Errorf("it was prepared %d times, up %t", calls, st.Up)
	}
}

// A user has so many sandboxes at once and no more, whatever others have.
func TestSandboxesPerUser(t *testing.T) {
	r := newRig(t)
	r.keeper.PerUser = 1
	for name, owner := range map[session.ID]string{"second": "ann", "third": "ben"} {
		if _, err := r.sessions.Create(t.Context(), name, session.Created{Owner: owner}, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var unavailable *sandbox.Unavailable
	if _, _, err := r.keeper.Use(t.Context(), "second"); !errors.As(err, &unavailable) || !strings.Contains(unavailable.Reason, "running sandboxes") {
		t.Errorf("a second one: %v", err)
	}
	if _, again, err := r.keeper.Use(t.Context(), id); err != nil {
		t.Errorf("the same again: %v", err)
	} else {
		again()
	}
	_, other, err := r.keeper.Use(t.Context(), "third")
	if err != nil {
		t.Fatalf("another user: %v", err)
	}
	other()
	release()
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("the first sandbox ends", func() bool { return !r.running() && r.keeper.Running() == 1 })
	_, release, err = r.keeper.Use(t.Context(), "second")
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	release()
}

// A user whose workspaces take up too much starts no more sandboxes until some are deleted,
// also after a restart of the server; other users do.
func TestDiskPerUser(t *testing.T) {
	r := newRig(t)
	for name, owner := range map[session.ID]string{"second": "ann", "third": "ben"} {
		if _, err := r.sessions.Create(t.Context(), name, session.Created{Owner: owner}, nil); err != nil {
			t.Fatal(err)
		}
	}
	use := func(name session.ID) error {
		_, release, err := r.keeper.Use(t.Context(), name)
		if err == nil {
			release()
		}
		return err
	}
	refused := func(name session.ID) bool {
		var unavailable *sandbox.Unavailable
		err := use(name)
		if err != nil && (!errors.As(err, &unavailable) || !strings.Contains(unavailable.Reason, "Your workspaces use ") || !strings.Contains(unavailable.Reason, "Delete conversations")) {
			t.Fatal(err)
		}
		return err != nil
	}
	r.claim()
	r.run("fill", "head -c 3500000 /dev/urandom > large; sync")
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("the first sandbox ends", func() bool { return !r.running() })
	r.disk = 2 << 20
	r.restart()
	r.keeper.Sweep(t.Context())
	for _, name := range []session.ID{"second", id} {
		if !refused(name) {
			t.Errorf("%s was started", name)
		}
	}
	if err := use("third"); err != nil {
		t.Errorf("another user: %v", err)
	}
	r.update(session.State.Delete)
	r.keeper.Wake(id)
	r.until("the workspace is gone and another sandbox starts", func() bool { return !r.exists() && !refused("second") })
}
