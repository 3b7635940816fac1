package sandboxtest

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

var pathTests = []test[*box]{
	{name: "Within", run: escaping},
	{name: "WithinIsUsable", run: insideLinks},
	{name: "Swapped", run: swapped},
}

// operations are all that take a path and can be kept in the workspace.
func (b *box) operations(t *testing.T) map[string]func(path string) error {
	ctx := within(t)
	return map[string]func(string) error{
		"list": func(p string) error { return second(b.List(ctx, sandbox.InWorkspace(p))) },
		"read": func(p string) error {
			return second(b.Read(ctx, sandbox.ReadParams{PathParams: sandbox.InWorkspace(p)}, io.Discard))
		},
		"write": func(p string) error {
			return second(b.write(t, sandbox.WriteParams{PathParams: sandbox.InWorkspace(p)}, "escaped"))
		},
		"archive": func(p string) error {
			return b.Archive(ctx, sandbox.ArchiveParams{PathParams: sandbox.InWorkspace(p), Format: sandbox.Tar}, io.Discard)
		},
		"watch":  func(p string) error { return b.Watch(ctx, sandbox.InWorkspace(p), func(sandbox.Change) {}) },
		"stat":   func(p string) error { return second(b.Stat(ctx, sandbox.InWorkspace(p))) },
		"mkdir":  func(p string) error { return b.Mkdir(ctx, sandbox.InWorkspace(p)) },
		"remove": func(p string) error { return b.Remove(ctx, sandbox.InWorkspace(p)) },
	}
}

// outside makes a folder inside the sandbox and outside of the workspace.
func (b *box) outside(t *testing.T) string {
	t.Helper()
	dir := b.ok(t, "d=$(mktemp -d) && echo outside > $d/file && mkdir $d/sub && echo $d")
	t.Cleanup(func() {
		ctx, cancel := afterwards()
		defer cancel()
		_, _ = b.Run(ctx, sandbox.Process{Args: []string{"rm", "-rf", dir}}, nil)
	})
	return dir
}

// escaping: nothing leads out of the workspace, by any operation.
func escaping(t *testing.T, b *box) {
	name, dir := b.folder(t)
	out := b.outside(t)
	up := strings.Repeat("../", 20)
	b.ok(t, "cd %s; ln -s %s abs; ln -s %s%s rel; ln -s abs chain; ln -s %s/file file; ln -s %s/new new; ln -s .. up", dir, out, up, out[1:], out, out)
	paths := map[string][]string{ // by what they lead to
		"file":   {out + "/file", up + out[1:] + "/file", name + "/abs/file", name + "/rel/file", name + "/chain/file", name + "/abs/sub/../file"},
		"folder": {out, "..", "../", up, "/", name + "/../..", name + "/abs/sub", name + "/rel/sub", name + "/up/../.."},
		"none":   {out + "/none", "../none", name + "/abs/none", name + "/rel/none", name + "/chain/sub/none"},
		// The last link is followed by those that look into it.
		"link": {name + "/file", name + "/abs", name + "/rel", name + "/chain", name + "/new"},
	}
	for op, do := range b.operations(t) {
		for kind, list := range paths {
			if kind == "link" && (op == "stat" || op == "remove" || op == "mkdir") {
				continue
			}
			for _, p := range list {
				if err := do(p); !errors.Is(err, sandbox.ErrEscapes) {
					t.Errorf("%s of %q (a %s outside): %v, want ErrEscapes", op, p, kind, err)
				}
			}
		}
	}
	same(t, "what is outside", b.ok(t, "cd %s; find . | sort; cat file", out), ".\n./file\n./sub\noutside")
}

// insideLinks: links that stay inside are good, and links themselves can be seen.
func insideLinks(t *testing.T, b *box) {
	name, dir := b.folder(t)
	b.put(t, name+"/sub/file", "inside")
	b.ok(t, "cd %s; ln -s sub/file link; ln -s ../%s/sub around; ln -s /etc out; ln -s loop loop", dir, name)
	for _, p := range []string{"sub/file", "link", "around/file", "./sub/../sub//file"} {
		var w strings.Builder
		_, err := b.Read(within(t), sandbox.ReadParams{PathParams: sandbox.InWorkspace(name + "/" + p)}, &w)
		must(t, err)
		same(t, p, w.String(), "inside")
	}
	f, err := b.Stat(within(t), sandbox.InWorkspace(name+"/out"))
	must(t, err)
	same(t, "a link that leads out", string(f.Link), "/etc")
	files, err := b.List(within(t), sandbox.InWorkspace(name))
	must(t, err)
	same(t, "entries", len(files), 5)
	if _, err := b.Read(within(t), sandbox.ReadParams{PathParams: sandbox.InWorkspace(name + "/loop")}, io.Discard); err == nil {
		t.Error("a link to itself was read")
	}
	must(t, b.Remove(within(t), sandbox.InWorkspace(name+"/out")))
	b.ok(t, "ls -d /etc")
	// Without Within, all of the sandbox can be seen.
	if _, err := b.List(within(t), at("/etc")); err != nil {
		t.Errorf("listing /etc: %v", err)
	}
}

// swapped: a folder becomes a link that leads out, during a walk through it.
func swapped(t *testing.T, b *box) {
	name, dir := b.folder(t)
	out := b.outside(t)
	b.put(t, name+"/real/file", "inside")
	b.ok(t, "cd %s; ln -s %s link", dir, out)
	swapping := b.start(t, sandbox.Command{Shell: t.Name() + "-swap", Text: "cd " + dir + "; " + b.program(t) + " swap real link"})
	swapping.shows(t, "swapping")
	seen := map[string]int{}
	for range 200 {
		var w strings.Builder
		_, err := b.Read(within(t), sandbox.ReadParams{PathParams: sandbox.InWorkspace(name + "/real/file")}, &w)
		switch {
		case err == nil:
			same(t, "content", w.String(), "inside")
			seen["read"]++
		case errors.Is(err, sandbox.ErrEscapes):
			seen["refused"]++
		case errors.Is(err, fs.ErrNotExist):
			seen["gone"]++
		default:
			seen[err.Error()]++ // a concurrent change may be found impossible
		}
		_, err = b.write(t, sandbox.WriteParams{PathParams: sandbox.InWorkspace(name + "/real/written")}, "x")
		if errors.Is(err, rpc.ErrUnread) || errors.Is(err, sandbox.ErrLost) {
			t.Fatalf("a refused write does not say why: %v", err)
		}
	}
	must(t, b.Interrupt(within(t), t.Name()+"-swap", quiet))
	t.Logf("what a reader saw: %v", seen)
	same(t, "what is outside", b.ok(t, "ls -1 %s; cat %s/file", out, out), "file\nsub\noutside")
}
