package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/sandboxtest"
)

// keeping is a rig with the real runner.
func keeping(t *testing.T, change ...func(*docker.Options)) *rig {
	return newRig(t, append(change, func(o *docker.Options) { o.Runner = sandboxtest.Runner(t) })...)
}

func (r *rig) helper(h sandbox.Handle) string { return r.names().Helper(h.ID)[0] }

// A user of the image keeps checkpoints like root does, and cannot change them.
func TestCheckpointsOfAUser(t *testing.T) {
	t.Parallel()
	r := keeping(t, func(o *docker.Options) { o.Image = dockertest.BusyboxImage(t, "USER 1000") })
	box, h := r.open(sandbox.Spec{})
	ctx := t.Context()
	r.sh(box, "id -u > a; mkdir d; chmod 700 d; echo x > d/b; chmod 0 d/b")
	one, err := r.Checkpoint(ctx, h)
	if err != nil || one.LeftOut > 0 {
		t.Fatalf("%+v, %v", one, err)
	}
	r.sh(box, "rm -rf d; echo two > a")
	if _, err := r.Restore(ctx, h, sandbox.RestoreParams{Number: one.Number}); err != nil {
		t.Fatal(err)
	}
	r.want(box, "cat a; stat -c '%u %a' d/b; chmod 600 d/b; cat d/b", "1000\n1000 0\nx")
	r.want(box, "ls -d /.deckhand-checkpoints 2>/dev/null; echo .", ".")
}

// The helper is killed during a restore, and the server is replaced as after a crash. The new server completes the restore
// before anything can read the workspace, and unpauses the sandbox.
func TestKilledRestore(t *testing.T) {
	t.Parallel()
	r := keeping(t)
	ctx := t.Context()
	const files = 1000
	for _, uses := range []string{"attach", "start", "inspect", "snapshot", "unrecorded"} {
		t.Run(uses, func(t *testing.T) {
			r := r.in(t)
			box, h := r.open(sandbox.Spec{})
			r.sh(box, fmt.Sprintf("mkdir many; for i in $(seq %d); do echo old > many/$i; done", files))
			one, err := r.Checkpoint(ctx, h)
			if err != nil {
				t.Fatal(err)
			}
			r.sh(box, fmt.Sprintf("for i in $(seq %d); do echo new > many/$i; done; echo new > more", files))
			if uses == "start" || uses == "snapshot" {
				if err := r.Stop(ctx, h); err != nil {
					t.Fatal(err)
				}
			}
			if !r.interrupt(h, one.Number) {
				t.Skip("SKIPPED: the restore was faster than the test")
			}
			next := r.second()
			check := func(box *sandbox.Sandbox) {
				t.Helper()
				r.want(box, "sort many/* | uniq -c | tr -s ' '; ls", fmt.Sprintf("%d old\nmany", files))
			}
			switch uses {
			case "attach":
				box, err := next.Attach(ctx, h)
				if err != nil {
					t.Fatal(err)
				}
				defer box.Close()
				check(box)
			case "start":
				box, _, err := sandbox.Open(ctx, next, sandbox.Spec{ID: h.ID, Seal: make([]byte, 32)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer box.Close()
				check(box)
			case "inspect":
				box, err := next.Inspect(ctx, h)
				if err != nil {
					t.Fatal(err)
				}
				defer box.Close()
				check(box)
			case "snapshot":
				if err := next.Snapshot(ctx, h, "copy-"+h.ID); err != nil {
					t.Fatal(err)
				}
				box, err := next.Inspect(ctx, sandbox.Handle{ID: "copy-" + h.ID})
				if err != nil {
					t.Fatal(err)
				}
				defer box.Close()
				check(box)
			}
			if err := next.Close(); err != nil { // this server ends before it recorded the restore
				t.Error(err)
			}
			next = r.second()
			list, err := next.Unrecorded(ctx, anyID)
			found := false
			for _, u := range list {
				found = found || u.Handle.ID == h.ID && string(u.Note) == "note" && u.Changed == files+1
			}
			if err != nil || !found {
				t.Errorf("%+v, %v", list, err)
			}
			if err := next.Recorded(ctx, h); err != nil {
				t.Error(err)
			}
			got, err := r.engine.ContainerInspect(ctx, r.container(h), client.ContainerInspectOptions{})
			if err != nil || got.Container.State.Status == container.StatePaused {
				t.Errorf("%+v, %v", got.Container.State, err)
			}
		})
	}
}

// interrupt kills the helper of a restore as soon as the restore has begun. It reports false if it was too late.
func (r *rig) interrupt(h sandbox.Handle, number int) bool {
	r.t.Helper()
	ctx := r.t.Context()
	got, err := r.engine.VolumeInspect(ctx, r.names().Store(h.ID)[0], client.VolumeInspectOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	journal := filepath.Join(got.Volume.Mountpoint, "restoring")
	asked := make(chan error, 1)
	go func() {
		_, err := r.Restore(ctx, h, sandbox.RestoreParams{Number: number, Note: []byte("note")})
		asked <- err
	}()
	for {
		select {
		case <-asked:
			return false
		default:
		}
		if _, err := os.Lstat(journal); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			r.t.Skipf("SKIPPED: the volumes of the engine cannot be seen: %v", err)
		}
	}
	if _, err := r.engine.ContainerKill(context.Background(), r.helper(h), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		r.t.Fatal(err)
	}
	if err := <-asked; err == nil {
		return false
	}
	if _, err := os.Lstat(journal); err != nil {
		r.t.Fatal("the restore is complete although its helper was killed")
	}
	if file, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(got.Volume.Mountpoint)), r.volume(h), "_data", "many", "1")); err == nil {
		r.t.Logf("one of the files is %q", strings.TrimSpace(string(file)))
	}
	return true
}

// An empty workspace costs no helper, and can be restored.
func TestCheckpointOfAnEmptyWorkspace(t *testing.T) {
	t.Parallel()
	r := keeping(t)
	ctx := t.Context()
	box, h := r.open(sandbox.Spec{})
	for range 2 {
		if c, err := r.Checkpoint(ctx, h); err != nil || c.Number != 1 || c.Changed != 0 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if _, err := r.engine.ContainerInspect(ctx, r.helper(h), client.ContainerInspectOptions{}); err == nil {
		t.Error("there is a helper")
	}
	if list, err := r.Checkpoints(ctx, h); err != nil || fmt.Sprint(list.Numbers) != "[1]" {
		t.Errorf("%+v, %v", list, err)
	}
	changes := time.Now()
	r.sh(box, "echo x > a")
	next := r.second() // does not know when the workspace was last empty
	if c, err := next.Checkpoint(ctx, h); err != nil || c.Number != 2 || c.Changed != 1 || c.Previous != 1 || c.Verified.After(changes) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := next.Restore(ctx, h, sandbox.RestoreParams{Number: 1}); err != nil {
		t.Fatal(err)
	}
	r.want(box, "ls -A", "")
}
