package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/soak"
)

// A machine that runs from its initial ramfs, which is mounted on nothing, so that the kernel refuses to replace it as the root:
// sandboxes start there, and are closed like elsewhere.
func TestInitialRamfs(t *testing.T) {
	out, err := elsewhere(t, toRamfs, "^TestLife$|^TestConfined$|^TestRightsAreGone$|^TestHostIsHidden$|^TestEscapes$/^Walls$")
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{"TestLife", "TestHostIsHidden", "TestEscapes"} {
		if !strings.Contains(out, "--- PASS: "+name) {
			t.Errorf("%s was not run: %s", name, out)
		}
	}
}

// chrootEnv is set in a process whose root was changed with chroot.
const chrootEnv = "DECKHAND_TEST_CHROOT"

// The kernel allows no user namespaces after chroot, and the error says that.
func TestChroot(t *testing.T) {
	if os.Getenv(chrootEnv) == "" {
		t.Setenv(chrootEnv, "1")
		if out, err := elsewhere(t, toChroot(t.TempDir()), "^TestChroot$"); err != nil || !strings.Contains(out, "--- PASS: TestChroot") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	d := newDriver(t)
	const want = "started with chroot, start it without"
	if err := d.Possible(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("possible: %v", err)
	}
	if _, err := d.Start(t.Context(), sandbox.Spec{ID: "x"}, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("start: %v", err)
	}
	if f := d.trial(t.Context()); !f.Fatal || !strings.Contains(f.Fix, want) {
		t.Errorf("%+v", f)
	}
}

// elsewhere runs tests of this package in a process with another root.
func elsewhere(t *testing.T, change func() (undo func(), err error), tests string) (string, error) {
	t.Helper()
	soak.NotShort(t, "starts sandboxes")
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	env := append(append(os.Environ(), sandboxtest.Programs(t)...), runnerEnv+"="+runnerFile)
	var out []byte
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // this thread ends with the goroutine, and its mounts with the thread
		err := errors.Join(unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		undo := func() {}
		if err == nil {
			undo, err = change()
		}
		if err == nil {
			cmd := exec.Command(os.Args[0], "-test.v", "-test.run="+tests)
			cmd.Env = env
			out, err = cmd.CombinedOutput()
		}
		undo()
		ended <- err
	}()
	err := <-ended
	return string(out), err
}

// toChroot makes a copy of the root a folder, and the folder the root.
func toChroot(dir string) func() (func(), error) {
	return func() (func(), error) {
		err := errors.Join(unix.Mount("/", dir, "", unix.MS_BIND|unix.MS_REC, ""), unix.Chroot(dir), unix.Chdir("/"))
		return func() {}, err
	}
}

// toRamfs makes the initial ramfs of this machine the root, which is below the root of all machines, and mounts the folders of the
// system in it.
func toRamfs() (undo func(), err error) {
	undo = func() {}
	entries, err := os.ReadDir("/")
	if err != nil {
		return undo, err
	}
	here, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		return undo, err
	}
	defer here.Close()
	trees, links := map[string]int{}, map[string]string{}
	for _, e := range entries {
		path := filepath.Join("/", e.Name())
		switch {
		case e.IsDir():
			if trees[path], err = unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
				return undo, err
			}
			defer unix.Close(trees[path])
		case e.Type() == os.ModeSymlink:
			if links[path], err = os.Readlink(path); err != nil {
				return undo, err
			}
		}
	}
	// Who enters a mount namespace gets the root that is there now.
	if err := errors.Join(unix.Unmount("/", unix.MNT_DETACH), unix.Setns(int(here.Fd()), unix.CLONE_NEWNS)); err != nil {
		return undo, err
	}
	root, err := os.Open("/")
	if err == nil {
		err = unix.Flock(int(root.Fd()), unix.LOCK_EX) // all processes of the machine share it
	}
	if err != nil {
		return undo, err
	}
	var made []string
	undo = func() {
		for path := range trees {
			_ = unix.Unmount(path, unix.MNT_DETACH)
		}
		for _, path := range made {
			_ = os.Remove(path)
		}
		root.Close()
	}
	for path, tree := range trees {
		if os.Mkdir(path, 0o755) == nil {
			made = append(made, path)
		}
		if err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return undo, err
		}
	}
	for path, to := range links {
		if os.Symlink(to, path) == nil {
			made = append(made, path)
		}
	}
	return undo, nil
}
