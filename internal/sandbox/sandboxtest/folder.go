package sandboxtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/sandbox"
)

// folder: the workspace is a folder of this machine's. What is written there is
// ours, and it is not the driver's to remove.
func folder(t *testing.T, o Options) {
	dir, err := os.MkdirTemp("", "sbx-folder-")
	must(t, err)
	defer os.RemoveAll(dir)
	dir, err = filepath.EvalSymlinks(dir)
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "sub", "file"), []byte("of the host\n"), 0o600))
	if o.Foreign {
		d := driver(t, o, nil)
		_, err := d.Start(within(t), sandbox.Spec{ID: "foreign", Folder: dir}, nil)
		var why *sandbox.Unavailable
		if !errors.As(err, &why) || !strings.Contains(why.Reason, "accessible to the user of the engine") || !strings.Contains(why.Reason, dir) {
			t.Errorf("a folder that the engine cannot open: %v", err)
		}
		return
	}
	b := open(t, o, sandbox.Spec{Folder: dir}, nil)
	same(t, "what is there", b.ok(t, "cat sub/file"), "of the host")
	b.ok(t, "echo more >> sub/file && mkdir made && echo new > made/file && chmod 640 made/file")
	for name, want := range map[string]string{"sub/file": "of the host\nmore\n", "made/file": "new\n"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		same(t, name, string(got), want)
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
	if o.Confined { // other users of the machine could run such a file
		b.ok(t, "touch setid; chmod 4755 setid || chmod 2755 setid || chmod 6755 setid || true")
		info, err := os.Stat(filepath.Join(dir, "setid"))
		must(t, err)
		if info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("a file of the sandbox has the mode %v", info.Mode())
		}
	}
	if v, ok := b.driver.(sandbox.Viewer); ok {
		root, err := v.View(within(t), b.handle)
		must(t, err)
		got, err := root.ReadFile("made/file")
		must(t, err)
		same(t, "what is seen", string(got), "new\n")
		must(t, root.Close())
	}
	must(t, b.driver.Stop(within(t), b.handle))
	if i, ok := b.driver.(sandbox.Inspector); ok {
		look, err := i.Inspect(within(t), b.handle)
		must(t, err)
		got, err := look.Stat(within(t), at("made/file"))
		must(t, err)
		same(t, "the size of the file", got.Size, int64(4))
		must(t, look.Close())
	}
	must(t, b.driver.Destroy(within(t), b.handle))
	if _, err := os.Stat(filepath.Join(dir, "made", "file")); err != nil {
		t.Errorf("the folder went with the sandbox: %v", err)
	}
	for _, wrong := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "sub", "file")} {
		if _, err := b.driver.Start(within(t), sandbox.Spec{ID: "wrong", Folder: wrong}, nil); err == nil {
			t.Errorf("%s is a workspace", wrong)
		}
	}
}
