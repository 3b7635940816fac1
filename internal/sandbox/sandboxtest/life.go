package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

var lifeTests = []test[Options]{
	{name: "StopAndStart", run: stopAndStart},
	{name: "Destroy", run: destroy},
	{name: "Idempotent", run: idempotent},
	{name: "BadNames", run: badNames},
	{name: "StartOnce", run: startOnce},
	{name: "Orphans", run: orphans},
	{name: "Cancelled", run: cancelledStart},
	{name: "Many", run: many},
	{name: "Apart", run: apart},
	{name: "Progress", run: progress},
	{name: "Check", run: check},
}

// stopAndStart: the workspace stays, and nothing else.
func stopAndStart(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	h := b.program(t)
	b.put(t, "sub/kept", "content")
	b.ok(t, "chmod 700 sub; ln -s sub/kept link; variable=1; (trap '' TERM INT HUP; %s hold lock > out &)", h)
	b.ok(t, "until grep -q held out; do :; done")
	port, _ := b.listen(t, "127.0.0.1:0")
	boot := b.Info().Boot
	must(t, b.driver.Stop(within(t), b.handle))
	select {
	case <-b.Done():
	case <-within(t).Done():
		t.Fatal("the connection outlived the sandbox")
	}
	if _, err := b.driver.Attach(within(t), b.handle); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("attaching to a stopped sandbox: %v, want ErrGone", err)
	}
	is(t, b.driver, map[string]bool{"box": false})

	b = enter(t, o, b.driver, sandbox.Spec{})
	is(t, b.driver, map[string]bool{"box": true})
	if b.Info().Boot == boot {
		t.Error("the runner says it was not started anew")
	}
	same(t, "a file", b.ok(t, "cat link; ls -ld sub | cut -c1-10"), "contentdrwx------")
	same(t, "a shell's state", b.ok(t, "echo ${variable:-gone}"), "gone")
	same(t, "a process that held a lock", b.ok(t, "%s locked lock", h), "free")
	ports, err := b.Ports(within(t))
	must(t, err)
	if slices.Contains(ports, port) {
		t.Errorf("something still listens on %d", port)
	}
	b.ok(t, "echo more >> sub/kept && rm link")
}

// is checks what the driver lists, by id.
func is(t *testing.T, d sandbox.Driver, want map[string]bool) {
	t.Helper()
	found, err := d.List(within(t))
	must(t, err)
	got := map[string]bool{}
	for _, f := range found {
		got[f.Handle.ID] = f.Running
	}
	same(t, "what there is", fmt.Sprint(got), fmt.Sprint(want))
	same(t, "how many there are", len(found), len(want))
}

func destroy(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	b.ok(t, "mkdir -p locked/deep && echo x > locked/deep/file && chmod 000 locked/deep locked; echo x > file; mkfifo pipe")
	must(t, b.driver.Destroy(within(t), b.handle)) // while it runs
	select {
	case <-b.Done():
	case <-within(t).Done():
		t.Fatal("the connection outlived the sandbox")
	}
	is(t, b.driver, map[string]bool{})
	b = enter(t, o, b.driver, sandbox.Spec{})
	same(t, "the workspace of the next one", b.ok(t, "ls -A"), "")
	must(t, b.driver.Stop(within(t), b.handle))
	must(t, b.driver.Destroy(within(t), sandbox.Handle{Driver: b.handle.Driver, ID: b.handle.ID})) // a handle without Data
	is(t, b.driver, map[string]bool{})
}

// idempotent: what is done is done.
func idempotent(t *testing.T, o Options) {
	d := driver(t, o, nil)
	b := enter(t, o, d, sandbox.Spec{})
	for _, h := range []sandbox.Handle{b.handle, {ID: "unknown"}, {ID: b.handle.ID}} {
		for range 2 {
			must(t, d.Stop(within(t), h))
		}
	}
	all(t, 4, func(int) error { return d.Stop(within(t), b.handle) })
	is(t, d, map[string]bool{"box": false})
	all(t, 4, func(int) error { return d.Destroy(within(t), b.handle) })
	for _, h := range []sandbox.Handle{b.handle, {ID: "unknown"}} {
		must(t, d.Destroy(within(t), h))
		if _, err := d.Attach(within(t), h); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("attaching to %s: %v, want ErrGone", h.ID, err)
		}
	}
	is(t, d, map[string]bool{})
}

// badNames: an id never becomes a path to something else.
func badNames(t *testing.T, o Options) {
	d := driver(t, o, nil)
	enter(t, o, d, sandbox.Spec{})
	for _, id := range []string{"", ".", "..", "../box", "a/b", "/etc", "a b", "a\x00", "ä", "box/", "box/ws", strings.Repeat("a", 101), "*"} {
		_, err := d.Start(within(t), sandbox.Spec{ID: id, Image: o.Image}, nil)
		fails(t, fmt.Sprintf("starting %q", id), err, sandbox.ErrInvalid)
		h := sandbox.Handle{ID: id}
		if _, err := d.Attach(within(t), h); err == nil {
			t.Errorf("something answers to the name %q", id)
		}
		_ = d.Stop(within(t), h) // whatever it says, it must touch nothing
		_ = d.Destroy(within(t), h)
		if v, ok := d.(sandbox.Viewer); ok {
			if root, err := v.View(within(t), h); err == nil {
				root.Close()
				t.Errorf("there is a workspace of %q", id)
			}
		}
	}
	is(t, d, map[string]bool{"box": true})
	for _, id := range []string{"A", "_", "-", "-rf", "Z_9-a", strings.Repeat("x", 100)} {
		h, err := d.Start(within(t), sandbox.Spec{ID: id, Image: o.Image}, nil)
		must(t, err)
		same(t, "id", h.ID, id)
		must(t, d.Destroy(within(t), h))
	}
}

// startOnce: of many who start it, each gets the same one.
func startOnce(t *testing.T, o Options) {
	d := driver(t, o, nil)
	other := driver(t, o, nil) // another server on the same state
	who := []sandbox.Driver{d, d}
	if o.Confined { // who has no walls has no locks between servers either
		who[1] = other
	}
	all(t, 8, func(i int) error {
		_, err := who[i%2].Start(within(t), sandbox.Spec{ID: "box", Image: o.Image}, nil)
		return err
	})
	is(t, d, map[string]bool{"box": true})
	h := sandbox.Handle{ID: "box"}
	b := attach(t, o, d, h)
	b.ok(t, "variable=1")
	for range 2 {
		again, err := d.Start(within(t), sandbox.Spec{ID: "box", Image: o.Image}, nil)
		must(t, err)
		c := attach(t, o, other, again)
		same(t, "Boot", c.Info().Boot, b.Info().Boot)
		same(t, "a shell's state", c.ok(t, "echo $variable"), "1")
	}
}

// orphans: another server finds what one left behind.
func orphans(t *testing.T, o Options) {
	d := driver(t, o, nil)
	enter(t, o, d, sandbox.Spec{ID: "one"})
	two := enter(t, o, d, sandbox.Spec{ID: "two", Labels: map[string]string{"who": "cares"}})
	must(t, d.Stop(within(t), two.handle))
	d = driver(t, o, nil)
	is(t, d, map[string]bool{"one": true, "two": false})
	found, err := d.List(within(t))
	must(t, err)
	for _, f := range found {
		must(t, d.Destroy(within(t), f.Handle))
	}
	is(t, d, map[string]bool{})
}

// cancelledStart: who gives up leaves nothing half done.
func cancelledStart(t *testing.T, o Options) {
	d := driver(t, o, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Start(ended, sandbox.Spec{ID: "box", Image: o.Image}, nil); err == nil {
		t.Error("a sandbox was started with a cancelled context")
	}
	enter(t, o, d, sandbox.Spec{ID: "measure"}) // what is prepared once is prepared now
	begin := time.Now()
	enter(t, o, d, sandbox.Spec{ID: "measure2"})
	usual := time.Since(begin)
	for i := range 8 {
		// Somewhere on the way, each time later.
		ctx, cancel := context.WithTimeout(t.Context(), usual*time.Duration(i+1)/8)
		_, err := d.Start(ctx, sandbox.Spec{ID: "box", Image: o.Image}, nil)
		cancel()
		found, listErr := d.List(within(t))
		must(t, listErr)
		for _, f := range found {
			if f.Handle.ID == "box" && f.Running && err != nil {
				t.Errorf("Start failed with %v, and yet it runs", err)
			}
		}
		b := enter(t, o, d, sandbox.Spec{ID: "box"})
		same(t, "afterwards", b.ok(t, "echo fine"), "fine")
		must(t, d.Destroy(within(t), b.handle))
	}
	is(t, d, map[string]bool{"measure": true, "measure2": true})
}

// many: twenty at once know nothing of each other.
func many(t *testing.T, o Options) {
	n := 20
	if testing.Short() {
		n = 3
	}
	d := driver(t, o, nil)
	all(t, n, func(i int) error {
		id := fmt.Sprint("box", i)
		s, _, err := sandbox.Open(within(t), d, sandbox.Spec{ID: id, Image: o.Image}, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		defer s.Close()
		r, err := s.Exec(within(t), sandbox.Command{ID: "same id", Text: "echo " + id + " > file; cat *"}, nil)
		if err == nil && r.Output != id+"\n" {
			err = fmt.Errorf("%s says %q", id, r.Output)
		}
		return err
	})
	found, err := d.List(within(t))
	must(t, err)
	same(t, "how many there are", len(found), n)
	all(t, len(found), func(i int) error { return d.Destroy(within(t), found[i].Handle) })
	is(t, d, map[string]bool{})
}

// apart: two sandboxes share nothing that has a name.
func apart(t *testing.T, o Options) {
	d := driver(t, o, nil)
	one, two := enter(t, o, d, sandbox.Spec{ID: "one"}), enter(t, o, d, sandbox.Spec{ID: "two"})
	one.ok(t, "echo one > file; variable=one")
	same(t, "the other's workspace", two.ok(t, "ls -A; echo ${variable:-none}"), "none")
	c := sandbox.Command{ID: "same id", Text: "echo here"}
	one.exec(t, c, nil)
	c.Text = "echo there"
	same(t, "the same id in another sandbox", two.exec(t, c, nil).Output, "there\n")
	must(t, one.Under(9).Ack(within(t), "x"))
	must(t, two.Under(3).Ack(within(t), "x")) // the claim is another's
	must(t, d.Destroy(within(t), one.handle))
	same(t, "afterwards", two.ok(t, "echo fine"), "fine")
}

// progress: steps come in their order, and none after the end.
func progress(t *testing.T, o Options) {
	d := driver(t, o, nil)
	order := []sandbox.Step{sandbox.Pulling, sandbox.Starting, sandbox.Cloning, sandbox.SetUp, sandbox.Ready}
	steps := make(chan sandbox.Progress, 1000)
	_, err := d.Start(within(t), sandbox.Spec{ID: "box", Image: o.Image}, func(p sandbox.Progress) { steps <- p })
	must(t, err)
	close(steps)
	last := 0
	for p := range steps {
		i := slices.Index(order, p.Step)
		if i < last {
			t.Errorf("step %q comes after %q", p.Step, order[last])
		}
		last = max(i, last)
	}
}

// check: where sandboxes start, nothing fatal is found.
func check(t *testing.T, o Options) {
	d := driver(t, o, nil)
	c, ok := d.(sandbox.Checker)
	if !ok {
		return
	}
	for _, f := range c.Check(within(t)) {
		if f.Fatal || f.What == "" || f.Found == "" || !f.OK && f.Fix == "" {
			t.Errorf("finding %+v", f)
		}
	}
	is(t, d, map[string]bool{})
}
