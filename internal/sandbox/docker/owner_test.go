package docker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
)

// The ID of one sandbox looks like the name of the container that keeps the checkpoints of another. Neither reaches, disturbs or removes
// what belongs to the other.
func TestIDOfAnothersHelper(t *testing.T) {
	t.Parallel()
	r := keeping(t)
	ctx := t.Context()
	id := newID()
	box, h := r.open(sandbox.Spec{ID: id})
	r.sh(box, "echo secret > file")
	if _, err := r.Checkpoint(ctx, h); err != nil { // the helper stays for a while
		t.Fatal(err)
	}
	other := sandbox.Handle{Driver: docker.Name, ID: "helper-" + id}
	if found, err := r.Attach(ctx, other); !errors.Is(err, sandbox.ErrGone) {
		if err == nil {
			got := r.run(found, "/bin/cat", "/workspace/file")
			found.Close()
			t.Fatalf("a sandbox that was never started read %q", got.Stdout)
		}
		t.Fatalf("attach to a sandbox that was never started: %v", err)
	}
	theirs, other := r.open(sandbox.Spec{ID: other.ID})
	r.want(theirs, "ls; echo .", ".")
	r.sh(theirs, "echo theirs > file")
	r.sh(box, "echo second > file")
	if _, err := r.Checkpoint(ctx, h); err != nil {
		t.Fatalf("checkpoint beside a sandbox with the name of its helper: %v", err)
	}
	if _, err := r.Checkpoint(ctx, other); err != nil {
		t.Fatal(err)
	}
	if err := r.Destroy(ctx, h); err != nil {
		t.Fatal(err)
	}
	select {
	case <-theirs.Done():
		t.Fatal("destroying a sandbox ended another one")
	default:
	}
	r.want(theirs, "cat file", "theirs")
	for _, id := range []string{"ws-" + id, "checkpoints-" + id, "look-" + id} {
		if has, err := r.Has(ctx, id); has || err != nil {
			t.Errorf("%s: %t, %v", id, has, err)
		}
	}
}

// Two servers on one engine have sandboxes with the same ID.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	a, b := keeping(t), keeping(t)
	ctx := t.Context()
	id := newID()
	one, h := a.open(sandbox.Spec{ID: id})
	a.sh(one, "echo secret > file")
	if _, err := a.Checkpoint(ctx, h); err != nil {
		t.Fatal(err)
	}
	if has, err := b.Has(ctx, id); has || err != nil {
		t.Errorf("the second server has the sandbox of the first: %t, %v", has, err)
	}
	if box, err := b.Attach(ctx, h); !errors.Is(err, sandbox.ErrGone) {
		if err == nil {
			box.Close()
		}
		t.Errorf("attach to the sandbox of another server: %v", err)
	}
	two, g := b.open(sandbox.Spec{ID: id})
	b.want(two, "ls; echo .", ".")
	if list, err := b.Checkpoints(ctx, g); err != nil || len(list.Numbers) > 0 {
		t.Errorf("checkpoints of another server: %v, %v", list, err)
	}
	if err := b.Destroy(ctx, g); err != nil {
		t.Fatal(err)
	}
	a.want(one, "cat file", "secret")
}

// An image has labels that Deckhand itself uses.
func TestLabelsOfImages(t *testing.T) {
	t.Parallel()
	id := newID()
	evil := dockertest.BusyboxImage(t, "LABEL deckhand.helper="+id, "LABEL deckhand.passing=1", "LABEL deckhand.checkpoints=x", `LABEL deckhand.folder=/etc`)
	r := keeping(t)
	ctx := t.Context()
	_, h := r.open(sandbox.Spec{Image: evil})
	second := r.second() // after a restart, only labels say what is what
	found, err := second.List(ctx)
	if err != nil || len(found) != 1 || found[0].Handle.ID != h.ID || !found[0].Running {
		t.Fatalf("list: %+v, %v", found, err)
	}
	if left, err := second.Unrecorded(ctx, anyID); err != nil || len(left) > 0 {
		t.Errorf("unrecorded: %v, %v", left, err)
	}
	if live, err := second.Live(ctx); err != nil || len(live) == 0 {
		t.Errorf("live: %v, %v", live, err)
	}
	if err := second.Stop(ctx, found[0].Handle); err != nil {
		t.Fatal(err)
	}
	if found, err = second.List(ctx); err != nil || len(found) != 1 || found[0].Running {
		t.Errorf("after a stop: %+v, %v", found, err)
	}
	got, err := r.engine.ContainerInspect(ctx, r.container(h), client.ContainerInspectOptions{})
	if err != nil || got.Container.Config.Labels["deckhand.folder"] != "" {
		t.Errorf("labels: %v, %v", got.Container.Config, err)
	}
}

// Containers and volumes of an older version have other names. They are used if their labels say that they belong to the sandbox.
func TestOlderNames(t *testing.T) {
	t.Parallel()
	r := keeping(t)
	ctx := t.Context()
	older := func(id, instance string, more map[string]string) {
		t.Helper()
		labels := map[string]string{"deckhand": "1", "deckhand.instance": instance, "deckhand.id": id}
		name := r.options.Prefix + "-ws-" + id
		if _, err := r.engine.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, l := range []map[string]string{labels, more} {
			for k, v := range l {
				all[k] = v
			}
		}
		made, err := r.engine.ContainerCreate(ctx, client.ContainerCreateOptions{Name: r.options.Prefix + "-" + id,
			Config:     &container.Config{Image: r.options.Image, Labels: all, Entrypoint: []string{"/bin/sh", "-c", "echo kept > /workspace/file; sleep 1000"}},
			HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: name, Target: "/workspace"}}}})
		if err != nil {
			t.Fatal(err)
		}
		wait := r.engine.ContainerWait(ctx, made.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
		if _, err := r.engine.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = r.engine.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true})
			_, _ = r.engine.VolumeRemove(context.Background(), name, client.VolumeRemoveOptions{})
		})
		for { // until the file is there
			if _, err := r.engine.ContainerStatPath(ctx, made.ID, client.ContainerStatPathOptions{Path: "/workspace/file"}); err == nil {
				break
			}
		}
		if _, err := r.engine.ContainerKill(ctx, made.ID, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-wait.Result:
		case err := <-wait.Error:
			t.Fatal(err)
		}
	}

	mine := newID()
	older(mine, r.options.Instance, map[string]string{"deckhand.generation": "4"})
	if has, err := r.Has(ctx, mine); !has || err != nil {
		t.Fatalf("a sandbox of an older version: %t, %v", has, err)
	}
	box, h := r.open(sandbox.Spec{ID: mine})
	r.want(box, "cat file", "kept")
	if _, err := r.engine.ContainerInspect(ctx, r.options.Prefix+"-"+mine, client.ContainerInspectOptions{}); err == nil {
		t.Error("the container of an older version was not replaced")
	}
	got, err := r.engine.ContainerInspect(ctx, r.container(h), client.ContainerInspectOptions{})
	if err != nil || got.Container.Config.Labels["deckhand.generation"] != "5" {
		t.Errorf("the container that replaces it: %v", err)
	}
	if _, err := r.Checkpoint(ctx, h); err != nil {
		t.Error(err)
	}
	copied := newID()
	if err := r.Snapshot(ctx, h, copied); err != nil {
		t.Error(err)
	}
	if err := r.Destroy(ctx, h); err != nil {
		t.Error(err)
	}
	if _, err := r.engine.VolumeInspect(ctx, r.options.Prefix+"-ws-"+mine, client.VolumeInspectOptions{}); err == nil {
		t.Error("the workspace of an older version was not removed")
	}
	box, _ = r.open(sandbox.Spec{ID: copied})
	r.want(box, "cat file", "kept")

	theirs := newID()
	older(theirs, "another", nil)
	if has, err := r.Has(ctx, theirs); has || err != nil {
		t.Errorf("the sandbox of another server: %t, %v", has, err)
	}
	box, h = r.open(sandbox.Spec{ID: theirs})
	r.want(box, "ls; echo .", ".")
	if err := r.Destroy(ctx, h); err != nil {
		t.Error(err)
	}
	if _, err := r.engine.VolumeInspect(ctx, r.options.Prefix+"-ws-"+theirs, client.VolumeInspectOptions{}); err != nil {
		t.Errorf("the workspace of another server: %v", err)
	}
}
