package sandboxtest

import (
	"errors"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
)

// againTests: nothing runs twice and no result is lost, whichever process dies.
var againTests = []test[Options]{
	{name: "Once", run: once},
	{name: "Fence", run: fence},
	{name: "Reconnect", run: reconnect},
	{name: "OurRestart", run: ourRestart},
	{name: "StopWhileRunning", run: stopWhileRunning},
	{name: "RunnerKilled", run: runnerKilled, when: func(o Options) bool { return o.Kill != nil }},
}

// counting is a command that leaves a line each time it is run, and ends when a test writes to
// the pipe.
func (b *box) counting(t *testing.T, id string) sandbox.Command {
	t.Helper()
	b.in(t, "setup", "mkfifo pipe")
	return sandbox.Command{ID: id, Text: "echo run >> count; echo begun; read word < pipe; echo ended $word"}
}

// release lets the counting command end.
func (b *box) release(t *testing.T) { t.Helper(); b.in(t, "setup", "echo well > pipe") }

// once: the same id is the same command.
func once(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	c := b.counting(t, "the command")
	var asked []*background
	for range 5 {
		asked = append(asked, b.start(t, c))
	}
	for _, g := range asked {
		g.shows(t, "begun\n")
	}
	b.release(t)
	first := asked[0].wait(t)
	same(t, "output", first.Output, "begun\nended well\n")
	for _, g := range asked {
		if r := g.wait(t); !alike(r, first) {
			t.Errorf("the same command has the results %+v and %+v", r, first)
		}
		same(t, "live output", g.output(), first.Output)
	}
	same(t, "how often it ran", b.get(t, "count"), "run\n")
	var seen strings.Builder
	if r := b.exec(t, c, func(p []byte) { seen.Write(p) }); !alike(r, first) || seen.String() != first.Output {
		t.Errorf("when all was over it has the result %+v and %q came before", r, seen.String())
	}
	same(t, "how often it ran", b.get(t, "count"), "run\n")

	must(t, b.Ack(within(t), c.ID))
	must(t, b.Ack(within(t), c.ID))
	must(t, b.Ack(within(t), "unknown"))
	anew := b.start(t, c)
	anew.shows(t, "begun\n")
	must(t, b.Ack(within(t), c.ID)) // what runs stays known
	joined := b.start(t, c)
	b.release(t)
	if r := joined.wait(t); !alike(r, anew.wait(t)) {
		t.Errorf("after Ack of what runs: %+v", r)
	}
	same(t, "how often it ran after it was forgotten", b.get(t, "count"), "run\nrun\n")
}

// alike compares results; times are compared as moments.
func alike(a, b sandbox.Result) bool {
	times := a.Started.Equal(b.Started) && a.Ended.Equal(b.Ended)
	a.Started, a.Ended = b.Started, b.Ended
	return times && a == b
}

// fence: an older claim commands nothing, also after the runner was started anew.
func fence(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	exec := func(claim int64) error {
		_, err := b.Under(claim).Exec(within(t), sandbox.Command{ID: newID(t), Text: "echo x >> ran"}, nil)
		return err
	}
	must(t, exec(5))
	must(t, exec(5))
	must(t, exec(0)) // a person
	refused := func(claim int64) {
		t.Helper()
		old := b.Under(claim)
		ctx := within(t)
		for what, err := range map[string]error{
			"exec":      exec(claim),
			"ack":       old.Ack(ctx, "x"),
			"interrupt": old.Interrupt(ctx, "", quiet),
			"killall":   old.KillAll(ctx),
			"run":       second(old.Run(ctx, sandbox.Process{Args: []string{"touch", "ran-too"}}, nil)),
			"write":     second(old.Write(ctx, sandbox.WriteParams{PathParams: at("ran-too")}, strings.NewReader("x"))),
			"mkdir":     old.Mkdir(ctx, at("ran-too")),
			"remove":    old.Remove(ctx, at("ran")),
			"edit":      second(old.Edit(ctx, sandbox.EditParams{ID: newID(t), Command: "create", Path: b.root + "/ran-too", FileText: ptr("x")})),
			"mcp/start": second(old.MCPStart(ctx, sandbox.MCPServer{Name: "s", Command: "true"})),
			"mcp/call":  second(old.MCPCall(ctx, sandbox.MCPCall{ID: newID(t), Server: "s", Tool: "t"})),
			"mcp/stop":  old.MCPStop(ctx, "s"),
		} {
			fails(t, what+" under an old claim", err, sandbox.ErrFenced)
		}
	}
	refused(4)
	must(t, exec(6))
	refused(5)
	if _, err := b.Under(1).List(within(t), at(".")); err != nil {
		t.Errorf("looking under an old claim: %v", err)
	}
	must(t, b.driver.Stop(within(t), b.handle))
	b = enter(t, o, b.driver, sandbox.Spec{})
	refused(5)
	must(t, exec(6))
	same(t, "what ran", b.get(t, "ran"), strings.Repeat("x\n", 5))
	same(t, "what is there", b.ok(t, "ls"), "ran")
}

// reconnect: losing the connection loses nothing.
func reconnect(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	c := b.counting(t, "the command")
	running := b.start(t, c)
	running.shows(t, "begun")
	must(t, b.Close())
	select {
	case <-b.Done():
	case <-within(t).Done():
		t.Error("Done is not closed with the connection")
	}
	<-running.done
	fails(t, "a command whose connection ended", running.err, sandbox.ErrLost)
	if _, err := b.Exec(within(t), c, nil); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("a command over a closed connection: %v", err)
	}
	boot := b.Info().Boot
	b = attach(t, o, b.driver, b.handle)
	same(t, "Boot", b.Info().Boot, boot)
	c.Again = true
	joined := b.start(t, c)
	joined.shows(t, "begun") // from its beginning
	b.release(t)
	same(t, "output", joined.wait(t).Output, "begun\nended well\n")
	same(t, "how often it ran", b.get(t, "count"), "run\n")
	// Two connections at once.
	other := attach(t, o, b.driver, b.handle)
	b.ok(t, "shared=1")
	same(t, "the same shell", other.ok(t, "echo $shared"), "1")
}

// ourRestart: a new driver finds everything by the handle from the log.
func ourRestart(t *testing.T, o Options) {
	d := driver(t, o, nil)
	b := enter(t, o, d, sandbox.Spec{})
	c := b.counting(t, "the command")
	running := b.start(t, c)
	running.shows(t, "begun")
	finished := sandbox.Command{ID: "finished", Shell: "other", Text: "echo run >> finished; echo $((6 * 7)); (exit 4)"}
	before := b.exec(t, finished, nil)
	must(t, b.Close())
	<-running.done

	d = driver(t, o, nil)
	for _, h := range []sandbox.Handle{stored(t, b.handle), {Driver: b.handle.Driver, ID: b.handle.ID}} {
		b = attach(t, o, d, h)
		finished.Again, c.Again = true, true
		if r := b.exec(t, finished, nil); !alike(r, before) {
			t.Errorf("after our restart the result is %+v, before it was %+v", r, before)
		}
		must(t, b.Close())
	}
	// A server that died between Start and its log starts it once more.
	b = enter(t, o, d, sandbox.Spec{})
	joined := b.start(t, c)
	joined.shows(t, "begun")
	b.release(t)
	same(t, "output", joined.wait(t).Output, "begun\nended well\n")
	same(t, "how often they ran", b.get(t, "count")+b.get(t, "finished"), "run\nrun\n")
}

// stopWhileRunning: what ran when the sandbox was stopped is lost and says so;
// what had ended keeps its result.
func stopWhileRunning(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	c := b.counting(t, "the command")
	finished := sandbox.Command{ID: "finished", Shell: "other", Text: "echo run >> finished; echo 42"}
	before := b.exec(t, finished, nil)
	running := b.start(t, c)
	running.shows(t, "begun")
	must(t, b.driver.Stop(within(t), b.handle))
	<-running.done
	if running.err == nil && running.result.Exit == 0 {
		t.Errorf("a command that was stopped has the result %+v", running.result)
	}
	b = enter(t, o, b.driver, sandbox.Spec{})
	b.afterLoss(t, c, finished, before)
}

// afterLoss: of two commands one was running when the runner died.
func (b *box) afterLoss(t *testing.T, c, finished sandbox.Command, before sandbox.Result) {
	t.Helper()
	c.Again, finished.Again = true, true
	r := b.exec(t, c, nil)
	// A runner that had the time may have seen it being killed.
	if !r.Lost && r.Exit <= 0 {
		t.Errorf("a command that was cut off has the result %+v", r)
	}
	if r := b.exec(t, finished, nil); !alike(r, before) {
		t.Errorf("a command that had ended has the result %+v, before it was %+v", r, before)
	}
	same(t, "how often they ran", b.get(t, "count")+b.get(t, "finished"), "run\nrun\n")
}

// runnerKilled: its death is noticed, and another takes up the workspace.
func runnerKilled(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	c := b.counting(t, "the command")
	finished := sandbox.Command{ID: "finished", Shell: "other", Text: "echo run >> finished; echo 42"}
	before := b.exec(t, finished, nil)
	running := b.start(t, c)
	running.shows(t, "begun")
	boot := b.Info().Boot
	o.Kill(t, b.handle)
	select {
	case <-b.Done():
	case <-within(t).Done():
		t.Fatal("the death of the runner was not noticed")
	}
	<-running.done
	fails(t, "a command whose runner died", running.err, sandbox.ErrLost)
	if _, err := b.driver.Attach(within(t), b.handle); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("attaching to a dead runner: %v, want ErrGone", err)
	}
	found, err := b.driver.List(within(t))
	must(t, err)
	if len(found) != 1 || found[0].Running {
		t.Errorf("after the runner died there is %+v", found)
	}
	b = enter(t, o, b.driver, sandbox.Spec{})
	if b.Info().Boot == boot {
		t.Error("the new runner cannot be told from the old one")
	}
	if r := b.exec(t, sandbox.Command{ID: c.ID, Text: c.Text, Again: true}, nil); !r.Lost {
		t.Errorf("a command whose runner died has the result %+v", r)
	}
	b.afterLoss(t, c, finished, before)
}
