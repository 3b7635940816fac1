package local

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
)

// works says what a sandbox cannot do in its own folders.
const works = "touch /workspace/x ~/x /tmp/x /var/tmp/x /etc/x /usr/x && mkdir -p /workspace/a/b && echo fine"

// A server that died while it made the folders of a sandbox leaves some of them
// with another owner, or none; the next start completes and repairs them.
func TestStartAfterACrash(t *testing.T) {
	d := sharedDriver(t)
	if !d.rights.Ranges {
		t.Skip("all folders belong to one user here")
	}
	const other = firstUser + 5*rangeSize
	leave := map[string]func(dir string) error{
		"nothing but the folder": func(string) error { return nil },
		"a workspace without an owner": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, box.HomeDir), 0o700), os.Mkdir(filepath.Join(dir, box.WorkDir), 0o755))
		},
		"folders of another range, and no workspace": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, box.HomeDir), 0o700), os.Chown(filepath.Join(dir, box.HomeDir), other, other),
				os.Mkdir(filepath.Join(dir, box.StateDir), 0o700), os.Chown(filepath.Join(dir, box.StateDir), other, other))
		},
		"users that were chosen, and folders that were not given to them": func(dir string) error {
			return errors.Join(meta{User: other}.write(dir), os.MkdirAll(filepath.Join(dir, box.WorkDir, "a"), 0o755),
				os.MkdirAll(filepath.Join(dir, box.UpDir, rootLayer), 0o755), os.MkdirAll(filepath.Join(dir, box.TmpDir, "tmp"), 0o755))
		},
		"half a file about it": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, metaName), []byte(`{"user":`), 0o600), os.Mkdir(filepath.Join(dir, box.WorkDir), 0o755))
		},
	}
	for name, make := range leave {
		t.Run(name, func(t *testing.T) {
			if err := os.Mkdir(filepath.Join(d.dir, "crash"), 0o711); err != nil {
				t.Fatal(err)
			}
			if err := make(filepath.Join(d.dir, "crash")); err != nil {
				t.Fatal(err)
			}
			s, _ := start(t, d, sandbox.Spec{ID: "crash"})
			if got := sh(t, s, works); got != "fine" {
				t.Errorf("inside: %s", got)
			}
		})
	}
}

// Folders that belong to others by the time that a server attaches are given back.
func TestAttachRepairsOwners(t *testing.T) {
	d := sharedDriver(t)
	if !d.rights.Ranges {
		t.Skip("all folders belong to one user here")
	}
	s, h := start(t, d, sandbox.Spec{ID: "owners"})
	sh(t, s, "mkdir -p d/e; touch d/f")
	ws := filepath.Join(d.dir, "owners", box.WorkDir)
	for _, name := range []string{"", "d", "d/e"} {
		if err := os.Lchown(filepath.Join(ws, name), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := sh(t, s, "touch x d/x d/e/x 2>/dev/null || echo refused"); got != "refused" {
		t.Fatalf("the folders are still the sandbox's: %s", got)
	}
	again, err := d.Attach(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := sh(t, again, "touch x d/x d/e/x && stat -c %u d/f d/e . && echo fine"); got != "0\n0\n0\nfine" {
		t.Errorf("after attaching: %s", got)
	}
}

// The server dies after it has said what to build, and before it hears that it is
// built: the sandbox is completed, and the next server finds it.
func TestBuiltWithoutAServer(t *testing.T) {
	d := sharedDriver(t)
	p, err := d.open(t.Context(), "orphan", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.base.wait(t.Context()), d.prepare(t.Context(), p, plan{limits: d.limits})); err != nil {
		t.Fatal(err)
	}
	c, pid := p.child, p.child.process.PID
	p.meta.PID, p.meta.Started, p.meta.Boot, p.meta.Root, p.meta.Generation = pid, startedAt(pid), bootID(), d.base.root, 1
	setup, files, err := d.setup(p, plan{limits: d.limits}, pid)
	if err := errors.Join(err, p.meta.write(p.dir)); err != nil {
		t.Fatal(err)
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if err := c.process.Signal(syscall.SIGSTOP); err != nil { // so that it cannot answer before we are gone
		t.Fatal(err)
	}
	if _, _, err := c.control.WriteMsgUnix(setup.Encode(), unix.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		f.Close()
	}
	if err := errors.Join(c.control.Close(), c.process.Signal(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	p.close()
	s, _ := start(t, d, sandbox.Spec{ID: "orphan"})
	if got := sh(t, s, works); got != "fine" {
		t.Errorf("inside: %s", got)
	}
	if m, err := readMeta(filepath.Join(d.dir, "orphan")); err != nil || m.PID != pid {
		t.Errorf("the sandbox was started again: process %d was %d (%v)", m.PID, pid, err)
	}
}

// A folder that an operator removes from /opt keeps no sandbox from starting.
func TestAddonThatWasRemoved(t *testing.T) {
	d := newDriver(t)
	d.base.mounts = append(d.base.mounts, box.Mount{Source: filepath.Join(t.TempDir(), "gone"), Target: "/opt/gone", ReadOnly: true})
	s, _ := start(t, d, sandbox.Spec{ID: "addon"})
	if got := sh(t, s, "ls -d /opt/gone 2>/dev/null; echo fine"); got != "fine" {
		t.Errorf("inside: %s", got)
	}
}
