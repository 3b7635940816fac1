package sandboxtest

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
)

// lookTests are about what only some drivers can do; each says so by an interface.
var lookTests = []test[Options]{
	{name: "View", run: view},
	{name: "Inspect", run: inspect},
	{name: "Snapshot", run: snapshot},
	{name: "Measure", run: measure},
}

// view: the server looks into a workspace by itself.
func view(t *testing.T, o Options) {
	d := driver(t, o, nil)
	v, ok := d.(sandbox.Viewer)
	if !ok {
		return
	}
	b := enter(t, o, d, sandbox.Spec{})
	b.put(t, "sub/file", "content")
	b.ok(t, "ln -s /etc/passwd out; ln -s sub/file in")
	for _, state := range []string{"running", "stopped"} {
		root, err := v.View(within(t), b.handle)
		if errors.Is(err, sandbox.ErrUnseen) {
			t.Log("the workspace cannot be seen from here")
			return
		}
		must(t, err)
		for _, name := range []string{"sub/file", "in"} {
			content, err := root.ReadFile(name)
			must(t, err)
			same(t, name+" of a "+state+" sandbox", string(content), "content")
		}
		if content, err := root.ReadFile("out"); err == nil {
			t.Errorf("a link that leads out was followed to %s", shorten(string(content)))
		}
		must(t, root.Close())
		must(t, d.Stop(within(t), b.handle))
		is(t, d, map[string]bool{"box": false}) // and was not woken
	}
	must(t, d.Destroy(within(t), b.handle))
	_, err := v.View(within(t), b.handle)
	fails(t, "the workspace of a sandbox that was destroyed", err, sandbox.ErrGone)
	_, err = v.View(within(t), sandbox.Handle{ID: "unknown"})
	fails(t, "the workspace of an unknown sandbox", err, sandbox.ErrGone)
}

// inspect: programs look at a stopped workspace and cannot change it.
func inspect(t *testing.T, o Options) {
	d := driver(t, o, refuseAll)
	i, ok := d.(sandbox.Inspector)
	if !ok {
		return
	}
	b := enter(t, o, d, sandbox.Spec{})
	b.put(t, "sub/file", "content")
	helper := b.program(t)
	b.ok(t, "chmod 777 sub .")
	must(t, d.Stop(within(t), b.handle))
	for range 2 {
		s, err := i.Inspect(within(t), b.handle)
		must(t, err)
		c := hold(t, o, d, b.handle, s)
		same(t, "a file", c.get(t, "sub/file"), "content")
		same(t, "a program's view", c.ok(t, "cat sub/file; pwd"), "content"+c.root)
		if o.Confined {
			is(t, d, map[string]bool{"box": false}) // it sleeps on
			for _, text := range []string{"touch new", "echo x > sub/file", "rm -f sub/file", "mkdir -p sub/new", "chmod 700 sub", "mv -f sub moved"} {
				if r := c.sh(t, "%s", text); r.Exit == 0 {
					t.Errorf("%s changed a workspace that is only looked at", text)
				}
			}
			if _, err := c.write(t, sandbox.WriteParams{PathParams: at("new")}, "x"); err == nil {
				t.Error("a file was written to a workspace that is only looked at")
			}
			if r := c.sh(t, "%s dial 127.0.0.1:%d", helper, sandbox.ProxyPort); r.Exit != 1 {
				t.Errorf("there is a way out: %s", r.Output)
			}
		}
		must(t, s.Close())
		if o.Confined {
			is(t, d, map[string]bool{"box": false})
		}
	}
	if o.Confined {
		b = enter(t, o, d, sandbox.Spec{})
		same(t, "the workspace afterwards", b.ok(t, "ls; cat sub/file"), "sub\ncontent")
		must(t, d.Stop(within(t), b.handle))
		s, err := i.Inspect(within(t), sandbox.Handle{ID: "unknown"})
		if err == nil {
			s.Close()
		}
		fails(t, "inspecting an unknown workspace", err, sandbox.ErrGone)
	}
}

// snapshot: a copy, which goes its own way.
func snapshot(t *testing.T, o Options) {
	d := driver(t, o, nil)
	s, ok := d.(sandbox.Snapshotter)
	if !ok {
		return
	}
	b := enter(t, o, d, sandbox.Spec{})
	b.put(t, "sub/file", "content")
	b.put(t, "large", strings.Repeat("0123456789abcdef", 1<<16))
	b.ok(t, "ln -s /etc/passwd out; ln sub/file hard; chmod 751 sub; echo '#!/bin/sh' > run; chmod 755 run; mkfifo pipe; mkdir empty; touch -d @86400 old 2>/dev/null || touch old; echo x > 'ü ugly'")
	listing := "ls -lA . sub | awk '{print $1, $5, $9, $10, $11, $12}'; cat sub/file; md5sum large"
	before := b.ok(t, "%s", listing)
	must(t, s.Snapshot(within(t), b.handle, "copy"))
	b.ok(t, "echo changed > sub/file")
	c := enter(t, o, d, sandbox.Spec{ID: "copy"})
	same(t, "the copy", c.ok(t, "%s", listing), before)
	c.ok(t, "echo mine > sub/file; rm large; echo x >> run; rm -r empty")
	same(t, "the original", b.ok(t, "cat sub/file; ls large empty"), "changed\nlarge\n\nempty:")
	if err := s.Snapshot(within(t), b.handle, "copy"); err == nil {
		t.Error("a copy was made over a workspace that exists")
	}
	same(t, "the copy afterwards", c.ok(t, "cat sub/file"), "mine")
	if err := s.Snapshot(within(t), sandbox.Handle{ID: "unknown"}, "copy2"); err == nil {
		t.Error("an unknown workspace was copied")
	}
	for _, id := range []string{"", "../x", "a/b"} {
		if err := s.Snapshot(within(t), b.handle, id); err == nil {
			t.Errorf("a copy was called %q", id)
		}
	}
	must(t, d.Stop(within(t), b.handle))
	must(t, s.Snapshot(within(t), b.handle, "third")) // of a stopped one
	found, err := d.List(within(t))
	must(t, err)
	same(t, "how many there are", len(found), 3)
	c = enter(t, o, d, sandbox.Spec{ID: "third"})
	same(t, "the third", c.ok(t, "cat sub/file"), "changed")
}

// measure: what a sandbox takes up grows with what is written.
func measure(t *testing.T, o Options) {
	d := driver(t, o, nil)
	m, ok := d.(sandbox.Measurer)
	if !ok {
		return
	}
	b := enter(t, o, d, sandbox.Spec{})
	usage := func() int64 {
		t.Helper()
		n, err := m.Usage(within(t), b.handle)
		must(t, err)
		return n.Bytes
	}
	const size = 3 << 20
	b.put(t, "first", strings.Repeat("x", 1<<20)) // from here on the bytes count for more than the number of files
	before := usage()
	b.put(t, "large", strings.Repeat("0123456789abcdef", size/16))
	grown := usage()
	if grown < before+size || grown > before+2*size {
		t.Errorf("%d bytes were written, and usage grew from %d to %d", size, before, grown)
	}
	b.ok(t, "rm large; ln -s / everything; mkfifo pipe")
	if after := usage(); after >= grown {
		t.Errorf("the file was removed, and usage went from %d to %d", grown, after)
	}
	must(t, d.Stop(within(t), b.handle))
	usage()
	must(t, d.Destroy(within(t), b.handle))
	if n, err := m.Usage(within(t), b.handle); err == nil && n.Bytes > 0 || err != nil && !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was destroyed takes up %d bytes, %v", n.Bytes, err)
	}
}
