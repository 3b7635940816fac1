package docker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
)

// A sandbox works in a folder as a user that does not exist in the image: files belong to that user, the folder keeps its own mode and owner,
// and checkpoints and restores work.
func TestFolderOfAUser(t *testing.T) {
	t.Parallel()
	uid, gid := 4321, 4322
	if os.Geteuid() != 0 { // who cannot give files away
		uid, gid = os.Geteuid(), os.Getegid()
	}
	r := keeping(t, func(o *docker.Options) { o.User = fmt.Sprintf("%d:%d", uid, gid) })
	dir := filepath.Join(t.TempDir(), "work")
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.Mkdir(dir, 0o750), os.WriteFile(file, []byte("one\n"), 0o640), os.Chown(dir, uid, gid), os.Chown(file, uid, gid)); err != nil {
		t.Fatal(err)
	}
	owned := func(path string, mode os.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != uid || int(st.Gid) != gid || info.Mode().Perm() != mode {
			t.Errorf("%s belongs to %d:%d and has mode %v", path, st.Uid, st.Gid, info.Mode())
		}
	}
	ctx := t.Context()
	box, h := r.open(sandbox.Spec{Folder: dir})
	r.want(box, `id -u; cat file; echo x > "$HOME/made" && echo home`, fmt.Sprintf("%d\none\nhome", uid))
	one, err := r.Checkpoint(ctx, h)
	if err != nil {
		t.Fatal(err)
	}
	r.sh(box, "echo two > file; mkdir -m 700 more; echo three > more/file")
	owned(dir, 0o750)
	owned(file, 0o640)
	owned(filepath.Join(dir, "more"), 0o700)
	if used, err := box.Usage(ctx); err != nil || used != 0 {
		t.Errorf("the folder of the user is measured: %d bytes, %v", used, err)
	}
	if _, err := r.Restore(ctx, h, sandbox.RestoreParams{Number: one.Number}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "one\n" {
		t.Errorf("after the restore, the file contains %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "more")); !os.IsNotExist(err) {
		t.Errorf("the restore kept a new folder: %v", err)
	}
	owned(file, 0o640)

	got, err := r.engine.ContainerInspect(ctx, r.container(h), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Container.Mounts {
		if m.Type == "bind" && m.Source != dir && m.Source != r.options.Runner {
			t.Errorf("%s is mounted too", m.Source)
		}
	}
	if err := r.Snapshot(ctx, h, newID()); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("a copy of the folder: %v", err)
	}
	if err := r.Destroy(ctx, h); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "one\n" {
		t.Errorf("after the sandbox was removed, the file contains %q, %v", got, err)
	}
}

// Another driver, as after a restart of the server, finds the folder of a stopped sandbox, and the sandbox cannot get another one.
func TestFolderIsFoundAgain(t *testing.T) {
	t.Parallel()
	r := keeping(t)
	dir, other := t.TempDir(), t.TempDir()
	ctx := t.Context()
	box, h := r.open(sandbox.Spec{Folder: dir})
	r.sh(box, "echo kept > file")
	if err := r.Stop(ctx, h); err != nil {
		t.Fatal(err)
	}
	next := r.second()
	root, err := next.View(ctx, sandbox.Handle{Driver: docker.Name, ID: h.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if got, err := root.ReadFile("file"); err != nil || string(got) != "kept\n" {
		t.Errorf("the file contains %q, %v", got, err)
	}
	if _, err := next.Start(ctx, sandbox.Spec{ID: h.ID, Folder: other}, nil); err == nil || !strings.Contains(err.Error(), "another workspace") {
		t.Errorf("another folder: %v", err)
	}
}

// Folders that a container must not get.
func TestRefusedFolders(t *testing.T) {
	t.Parallel()
	r := keeping(t)
	socket := strings.TrimPrefix(r.options.Host, "unix://")
	for folder, want := range map[string]string{
		"/":                                      "the whole machine",
		filepath.Dir(socket):                     "the socket of the container engine",
		filepath.Dir(r.options.Runner) + "/none": "no such file",
	} {
		if _, err := r.Start(t.Context(), sandbox.Spec{ID: newID(), Folder: folder}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", folder, err, want)
		}
	}
	far, err := docker.New(docker.Options{Host: "tcp://127.0.0.1:1", Runner: r.options.Runner, Image: r.options.Image})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := far.Start(t.Context(), sandbox.Spec{ID: newID(), Folder: t.TempDir()}, nil); err == nil || !strings.Contains(err.Error(), "may be on another machine") {
		t.Errorf("an engine on another machine: %v", err)
	}
}
