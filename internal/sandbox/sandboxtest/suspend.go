package sandboxtest

import (
	"testing"

	"deckhand/internal/sandbox"
)

// suspendTests are for drivers whose sandboxes can be suspended.
var suspendTests = []test[Options]{
	{name: "Suspend", run: suspend},
	{name: "SuspendInUse", run: suspendInUse},
	{name: "Discard", run: discard},
}

// suspender is a sandbox of such a driver.
func suspender(t *testing.T, o Options) (*box, sandbox.Suspender) {
	t.Helper()
	d := driver(t, o, nil)
	s, ok := d.(sandbox.Suspender)
	if !ok {
		t.Skip("this driver does not suspend sandboxes")
	}
	return enter(t, o, d, sandbox.Spec{}), s
}

// suspend: the next start continues the sandbox as if it had run all the time.
func suspend(t *testing.T, o Options) {
	b, s := suspender(t, o)
	b.ok(t, "cd /tmp; variable=1; echo temporary > file")
	b.exec(t, sandbox.Command{ID: "known", Text: "echo once >> count; cat count"}, nil)
	boot := b.Info().Boot
	must(t, s.Suspend(within(t), b.handle, b.Sandbox))
	is(t, b.driver, map[string]bool{"box": false})
	b = enter(t, o, b.driver, sandbox.Spec{})
	same(t, "Boot", b.Info().Boot, boot)
	same(t, "the state", b.ok(t, "pwd; echo $variable; cat file"), "/tmp\n1\ntemporary")
	r := b.exec(t, sandbox.Command{ID: "known", Again: true, Text: "echo once >> count; cat count"}, nil)
	same(t, "a result of before", r.Output, "once\n")
	// No command came in between: the shell is as it was.
	b.ok(t, "variable=2")
	for range 2 {
		must(t, s.Suspend(within(t), b.handle, b.Sandbox))
		b = enter(t, o, b.driver, sandbox.Spec{})
		b.put(t, "file", "content")
	}
	same(t, "the state", b.ok(t, "echo $variable"), "2")
}

// suspendInUse: a sandbox in which something runs stays as it is.
func suspendInUse(t *testing.T, o Options) {
	b, s := suspender(t, o)
	h := b.program(t)
	b.ok(t, "variable=1; %s hold lock > out & until grep -q held out; do :; done", h)
	fails(t, "a suspension", s.Suspend(within(t), b.handle, b.Sandbox), sandbox.ErrInUse)
	same(t, "what runs", b.ok(t, "echo $variable; jobs -r | wc -l"), "1\n1")
	bare, h2, err := sandbox.Open(within(t), b.driver, sandbox.Spec{ID: "bare", Image: o.Image}, nil)
	must(t, err)
	defer bare.Close()
	fails(t, "a suspension without a key", s.Suspend(within(t), h2, bare), sandbox.ErrInUse)
}

// discard: what was suspended begins anew after Discard and after Stop.
func discard(t *testing.T, o Options) {
	b, s := suspender(t, o)
	for i, drop := range []func() error{
		func() error { return s.Discard(within(t), b.handle) },
		func() error { return b.driver.Stop(within(t), b.handle) },
	} {
		b.ok(t, "variable=1; echo x > /tmp/file; echo %d > kept", i)
		boot := b.Info().Boot
		must(t, s.Suspend(within(t), b.handle, b.Sandbox))
		must(t, drop())
		b = enter(t, o, b.driver, sandbox.Spec{})
		if b.Info().Boot == boot {
			t.Error("the runner says it was not started anew")
		}
		same(t, "the state", b.ok(t, "echo ${variable-none}; ls /tmp; cat kept"), "none\n"+itoa(int64(i)))
	}
	must(t, s.Discard(within(t), b.handle)) // it runs
	b.ok(t, "true")
}
