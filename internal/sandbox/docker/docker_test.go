package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
)

func TestStopAndStartAgainKeepsEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{ID: newID(), Env: map[string]string{"GREETING": "hello"}})
	r.want(box, "pwd; echo $GREETING", "/workspace\nhello")
	r.sh(box, "echo kept > /workspace/file; echo layer > /etc/beside")
	first := box.Info().Boot

	if err := r.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	<-box.Done()
	if err := r.Stop(t.Context(), h); err != nil {
		t.Fatalf("the second stop: %v", err)
	}
	if _, err := r.Attach(t.Context(), h); !errors.Is(err, sandbox.ErrGone) {
		t.Fatalf("attach to a stopped one: %v", err)
	}

	box, again := r.open(sandbox.Spec{ID: h.ID})
	if string(again.Data) != string(h.Data) {
		t.Errorf("another container was made: %s, %s", h.Data, again.Data)
	}
	r.want(box, "cat /workspace/file /etc/beside", "kept\nlayer")
	if boot := box.Info().Boot; boot != first+"I" {
		t.Errorf("the runner's state was not kept: boot %q after %q", boot, first)
	}
}

func TestStartTwiceIsStartOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := sandbox.Spec{ID: newID()}
	handles := make([]sandbox.Handle, 4)
	var wait sync.WaitGroup
	for i := range handles {
		wait.Go(func() {
			h, err := r.Start(t.Context(), spec, nil)
			if err != nil {
				t.Error(err)
			}
			handles[i] = h
		})
	}
	wait.Wait()
	for _, h := range handles {
		if string(h.Data) != string(handles[0].Data) {
			t.Errorf("two containers: %s and %s", handles[0].Data, h.Data)
		}
	}
	box := r.attach(handles[0])
	if got := box.Info().Boot; got != "I" {
		t.Errorf("the runner was started %d times", len(got))
	}
}

func TestTwoServersStartTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := sandbox.Spec{ID: newID()}
	drivers := []*docker.Driver{r.Driver, r.second(), r.second()}
	handles := make([]sandbox.Handle, len(drivers))
	var wait sync.WaitGroup
	for i, d := range drivers {
		wait.Go(func() {
			h, err := d.Start(t.Context(), spec, nil)
			if err != nil {
				t.Errorf("driver %d: %v", i, err)
			}
			handles[i] = h
		})
	}
	wait.Wait()
	for _, h := range handles {
		if string(h.Data) != string(handles[0].Data) {
			t.Errorf("two containers: %s and %s", handles[0].Data, h.Data)
		}
	}
	r.want(r.attach(handles[0]), "echo works", "works")
	found, err := r.List(t.Context())
	if err != nil || len(found) != 1 {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestAttachAfterOurRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	r.sh(box, "echo here > /tmp/x")
	box.Close()

	// The handle went through the log.
	raw, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var read sandbox.Handle
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	other := r.second()
	box, err = other.Attach(t.Context(), read)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	r.want(box, "cat /tmp/x", "here")
	if box.Info().Boot != "I" {
		t.Errorf("the runner was started anew")
	}

	// A second connection beside the first, and one with nothing but the ID.
	third, err := other.Attach(t.Context(), sandbox.Handle{Driver: docker.Name, ID: h.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	r.want(third, "cat /tmp/x", "here")
}

func TestConnectionsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	for range 3 {
		r.attach(h).Close()
	}
	// Each connection is a process inside, which ends with it. Waiting for that
	// from inside takes no clock: ps is asked until it is so.
	r.sh(box, `while [ "$(ps -o args | grep -c '[d]ial --socket')" -gt 1 ]; do :; done`)
}

func TestDestroy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	for range 2 {
		if err := r.Destroy(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	<-box.Done()
	if _, err := r.engine.ContainerInspect(t.Context(), r.container(h), client.ContainerInspectOptions{}); err == nil {
		t.Error("the container is still there")
	}
	if _, err := r.engine.VolumeInspect(t.Context(), r.volume(h), client.VolumeInspectOptions{}); err == nil {
		t.Error("the volume is still there")
	}
	if _, err := r.Attach(t.Context(), h); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("attach: %v", err)
	}
	if err := r.Stop(t.Context(), h); err != nil {
		t.Errorf("stop: %v", err)
	}

	// Only the volume is left.
	box, h = r.open(sandbox.Spec{})
	box.Close()
	r.removeContainer(h)
	if err := r.Destroy(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if _, err := r.engine.VolumeInspect(t.Context(), r.volume(h), client.VolumeInspectOptions{}); err == nil {
		t.Error("the lone volume is still there")
	}
}

func (r *rig) removeContainer(h sandbox.Handle) {
	r.t.Helper()
	if _, err := r.engine.ContainerRemove(r.t.Context(), r.container(h), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
		r.t.Fatal(err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	r, other := newRig(t), newRig(t)
	_, running := r.open(sandbox.Spec{})
	_, stopped := r.open(sandbox.Spec{})
	_, orphan := r.open(sandbox.Spec{})
	_, foreign := other.open(sandbox.Spec{})
	if err := r.Stop(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	r.removeContainer(orphan)
	found, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range found {
		got[f.Handle.ID] = f.Running
	}
	want := map[string]bool{running.ID: true, stopped.ID: false, orphan.ID: false}
	for id, is := range want {
		if was, ok := got[id]; !ok || was != is {
			t.Errorf("%s: found %v, running %v, want %v", id, ok, was, is)
		}
	}
	if _, ok := got[foreign.ID]; ok || len(got) != len(want) {
		t.Errorf("found too much: %v", got)
	}
	// What was found can be used.
	for _, f := range found {
		if f.Running {
			r.want(r.attach(f.Handle), "echo yes", "yes")
		}
	}
}

func TestAnotherImageKeepsTheWorkspace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	r.sh(box, "echo kept > file; echo gone > /etc/beside")
	if err := r.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	box, again := r.open(sandbox.Spec{ID: h.ID, Image: dockertest.BusyboxImage(t, "ENV OTHER=image")})
	r.want(box, "cat file; echo $OTHER; ls /etc/beside 2>/dev/null || echo none", "kept\nimage\nnone")
	got, err := r.engine.ContainerInspect(t.Context(), r.container(again), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if g := got.Container.Config.Labels["deckhand.generation"]; g != "2" {
		t.Errorf("generation %s", g)
	}
}

func TestKilledBehindOurBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	if _, err := r.engine.ContainerKill(t.Context(), r.container(h), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		t.Fatal(err)
	}
	<-box.Done()
	if _, err := r.Attach(t.Context(), h); !errors.Is(err, sandbox.ErrGone) {
		t.Fatalf("attach: %v", err)
	}
	box, _ = r.open(sandbox.Spec{ID: h.ID})
	r.want(box, "echo back", "back")
}

func TestPausedIsWokenByStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, h := r.open(sandbox.Spec{})
	if _, err := r.engine.ContainerPause(t.Context(), r.container(h), client.ContainerPauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Attach(t.Context(), h); !errors.Is(err, sandbox.ErrGone) {
		t.Fatalf("attach to a paused one: %v", err)
	}
	box, _ := r.open(sandbox.Spec{ID: h.ID})
	r.want(box, "echo awake", "awake")
}

func TestNameTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// Half made: ours, but never started.
	id := newID()
	name := r.container(sandbox.Handle{ID: id})
	if _, err := r.engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: name,
		Config: &container.Config{Image: r.options.Image, Labels: map[string]string{"deckhand": "1", "deckhand.id": id, "deckhand.instance": r.options.Instance}},
	}); err != nil {
		t.Fatal(err)
	}
	box, _ := r.open(sandbox.Spec{ID: id})
	r.want(box, "echo whole", "whole")

	// A foreign container.
	id = newID()
	name = r.container(sandbox.Handle{ID: id})
	made, err := r.engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: name, Config: &container.Config{Image: r.options.Image}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.engine.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true})
	_, err = r.Start(t.Context(), sandbox.Spec{ID: id}, nil)
	r.refused(err, "not created by Deckhand")
	if err := r.Destroy(t.Context(), sandbox.Handle{ID: id}); err != nil {
		t.Error(err)
	}
	if _, err := r.engine.ContainerInspect(t.Context(), made.ID, client.ContainerInspectOptions{}); err != nil {
		t.Errorf("a foreign container was removed: %v", err)
	}
}

func TestStartGivenUpLeavesNoContainer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := newID()
	name := r.container(sandbox.Handle{ID: id})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error, 1)
	go func() {
		_, err := r.Start(ctx, sandbox.Spec{ID: id}, nil)
		started <- err
	}()
	for { // until there is half of it
		if _, err := r.engine.ContainerInspect(t.Context(), name, client.ContainerInspectOptions{}); err == nil {
			break
		}
	}
	cancel()
	if err := <-started; err == nil {
		t.Skip("SKIPPED: it was quicker than we")
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if _, err := r.engine.ContainerInspect(t.Context(), name, client.ContainerInspectOptions{}); err == nil {
		t.Error("half a container was left")
	}
}

// refused checks that an error is in words for a person.
func (r *rig) refused(err error, words ...string) {
	r.t.Helper()
	var u *sandbox.Unavailable
	if !errors.As(err, &u) {
		r.t.Fatalf("%v is not an *Unavailable", err)
	}
	for _, w := range words {
		if !strings.Contains(u.Reason, w) {
			r.t.Errorf("%q does not say %q", u.Reason, w)
		}
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := t.TempDir()
	box, _ := r.open(sandbox.Spec{Mounts: []sandbox.Mount{{Source: dir, Target: "/mnt/rw"}, {Source: dir, Target: "/mnt/ro", ReadOnly: true}}})
	r.want(box, "echo x > /mnt/rw/f; cat /mnt/ro/f; echo y > /mnt/ro/f || echo refused", "x\nrefused")

	socket := strings.TrimPrefix(r.options.Host, "unix://")
	for _, m := range []sandbox.Mount{
		{Source: socket, Target: "/var/run/docker.sock"}, {Source: "/", Target: "/host"},
		{Source: "/var/run/docker.sock", Target: "/s"}, {Source: "/run", Target: "/run"},
		{Source: dir, Target: "/workspace"}, {Source: dir, Target: "/.deckhand/state"}, {Source: dir, Target: "/"}, {Source: "a", Target: "/b"},
	} {
		if _, err := r.Start(t.Context(), sandbox.Spec{ID: newID(), Mounts: []sandbox.Mount{m}}, nil); err == nil {
			t.Errorf("%v was allowed", m)
		} else {
			r.refused(err)
		}
	}
	_, err := r.Start(t.Context(), sandbox.Spec{ID: newID(), Mounts: []sandbox.Mount{{Source: dir + "/none", Target: "/x"}}}, nil)
	r.refused(err, "does not exist", dir+"/none")
}

func TestIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"", "a/b", "..", "a b", strings.Repeat("x", 101), "ä"} {
		if _, err := r.Start(t.Context(), sandbox.Spec{ID: id}, nil); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
		if err := r.Destroy(t.Context(), sandbox.Handle{ID: id}); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("destroy %q: %v", id, err)
		}
	}
	box, _ := r.open(sandbox.Spec{ID: "-_" + strings.Repeat("Aa0", 32) + "_-"})
	r.want(box, "echo ok", "ok")
}

func TestNoEngine(t *testing.T) {
	t.Parallel()
	d, err := docker.New(docker.Options{Host: "unix://" + t.TempDir() + "/none.sock", Runner: runner(t), Image: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := &rig{t: t}
	r.refused(d.Ping(t.Context()), "Cannot reach the container engine", "none.sock")
	_, err = d.Start(t.Context(), sandbox.Spec{ID: "a"}, nil)
	r.refused(err, "Cannot reach the container engine")
	_, err = d.Attach(t.Context(), sandbox.Handle{ID: "a"})
	r.refused(err, "Cannot reach the container engine")
	if errors.Is(err, sandbox.ErrGone) {
		t.Error("a sandbox is called gone although it is unknown")
	}
	if found := d.Check(t.Context()); len(found) != 1 || !found[0].Fatal || !strings.Contains(found[0].Found, "no such file") || strings.Contains(found[0].Found, "daemon is running") {
		t.Errorf("check: %v", found)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Check(t.Context()) {
		t.Logf("%+v", f)
		if f.Fatal {
			t.Errorf("%s: %s", f.What, f.Found)
		}
	}
}
