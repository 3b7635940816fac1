package docker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
)

const (
	// helperIdle is how long a helper waits for its next use, and helperAge how long it is used at most.
	helperIdle = 10 * time.Second
	helperAge  = 10 * time.Minute
	// maxHelpers is the number of helpers above which none waits.
	maxHelpers = 8
)

// helper is a connection to the container that keeps the checkpoints of a sandbox. The container has a fixed name, and stays if the
// server or its runner dies: as long as it is there, a restore may have to be completed.
type helper struct {
	sandbox.CheckpointRunner
	made  time.Time
	uses  int
	timer *time.Timer
}

func (k *helper) close() {
	if k.timer != nil {
		k.timer.Stop()
	}
	k.Close()
}

// withHelper calls do with the helper of a sandbox, one at a time. ErrGone if the sandbox has no workspace.
func (d *Driver) withHelper(ctx context.Context, h sandbox.Handle, do func(sandbox.CheckpointRunner) error) error {
	release, err := d.helping.Acquire(ctx, h.ID)
	if err != nil {
		return err
	}
	defer release()
	k, err := d.openHelper(ctx, h)
	if err != nil {
		return err
	}
	err = do(k.CheckpointRunner)
	if _, answered := sandbox.Refusal(err); err != nil && !answered {
		// It may still be at work. The next use finds the container.
		d.mu.Lock()
		delete(d.helpers, h.ID)
		d.mu.Unlock()
		k.close()
		return err
	}
	if list, e := k.List(ctx); e == nil {
		d.mu.Lock()
		d.lists[h.ID] = list
		d.mu.Unlock()
	}
	d.rest(h.ID, k)
	return err
}

// openHelper connects to the helper of a sandbox, which is started if there is none. Called with helping held.
func (d *Driver) openHelper(ctx context.Context, h sandbox.Handle) (*helper, error) {
	if _, err := d.folder(ctx, h.ID); err != nil {
		return nil, err
	}
	d.mu.Lock()
	k, closed := d.helpers[h.ID], d.closed
	d.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if k != nil {
		k.uses++
		select {
		case <-k.Done():
		default:
			if time.Since(k.made) < helperAge {
				return k, nil
			}
		}
		k.close()
	}
	labels, found, err := d.store(ctx, h.ID)
	if err == nil && !found {
		err = d.makeStore(ctx, h.ID, false)
	}
	if err != nil {
		return nil, err
	}
	box, err := d.startHelper(ctx, h)
	if err != nil {
		return nil, err
	}
	k = &helper{CheckpointRunner: sandbox.CheckpointRunner{Sandbox: box}, made: time.Now()}
	if err := k.Begin(ctx, sandbox.BeginParams{Empty: labels[labelEmpty] != ""}); err != nil {
		box.Close()
		return nil, err
	}
	d.mu.Lock()
	d.helpers[h.ID] = k
	d.mu.Unlock()
	return k, nil
}

// startHelper connects to the container that is there, or makes one.
func (d *Driver) startHelper(ctx context.Context, h sandbox.Handle) (box *sandbox.Sandbox, err error) {
	for range 2 {
		made, program, err := d.adopt(ctx, h.ID)
		var p *plan
		if made == "" && err == nil {
			if p, err = d.passing(ctx, h); err != nil {
				return nil, err
			}
			p.name, p.helper, p.writes, p.store = d.helperName(h.ID), true, true, d.storeName(h.ID)
			made, err = d.make(ctx, p)
			program = p.program
		}
		if err == nil {
			box, err = d.connect(ctx, link{id: h.ID, container: made, program: program, isolated: true})
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errForeign) {
			return box, err
		}
		if p != nil && made != "" {
			err = d.deaf(ctx, made, err, p)
		}
		if left := d.remove(ctx, d.helperName(h.ID)); left != nil || p != nil {
			return nil, errors.Join(err, left)
		}
	}
	return nil, err
}

// adopt finds a helper that another server has left, and starts it if it has ended.
func (d *Driver) adopt(ctx context.Context, id string) (made, program string, err error) {
	got, err := d.engine.ContainerInspect(ctx, d.helperName(id), client.ContainerInspectOptions{})
	if isNotThere(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", d.engineSays(err)
	}
	c := got.Container
	if c.Config == nil || c.Config.Labels[labelHelper] != id {
		return "", "", unavailable(errForeign, "The container %s was not created by Deckhand. Remove or rename it.", d.helperName(id))
	}
	if c.State == nil || c.State.Status != container.StateRunning {
		_, err = d.engine.ContainerStart(ctx, c.ID, client.ContainerStartOptions{})
	}
	return c.ID, c.Config.Labels[labelRunner], err
}

// rest ends a helper after a while. Called with helping held.
func (d *Driver) rest(id string, k *helper) {
	d.mu.Lock()
	idle, uses := helperIdle, k.uses
	if d.closed || len(d.helpers) > maxHelpers {
		idle = 0
	}
	d.mu.Unlock()
	k.timer = time.AfterFunc(idle, func() {
		release, err := d.helping.Acquire(context.Background(), id)
		if err != nil {
			return
		}
		defer release()
		d.mu.Lock()
		mine := d.helpers[id] == k && k.uses == uses
		if mine {
			delete(d.helpers, id)
		}
		d.mu.Unlock()
		if mine {
			k.close()
			d.discard(context.Background(), d.helperName(id))
		}
	})
}

// closeHelpers ends all helpers.
func (d *Driver) closeHelpers() {
	d.mu.Lock()
	left := d.helpers
	d.helpers = map[string]*helper{}
	d.mu.Unlock()
	var all sync.WaitGroup
	for id, k := range left {
		all.Go(func() {
			k.close()
			d.discard(context.Background(), d.helperName(id))
		})
	}
	all.Wait()
}

// stores are the mounts of volumes with checkpoints, and what the runner is told of them.
func (p *plan) stores() (mounts []mount.Mount, args []string) {
	at := func(volume, target string) {
		if volume != "" {
			mounts = append(mounts, mount.Mount{Type: mount.TypeVolume, Source: volume, Target: target, ReadOnly: !p.writes,
				VolumeOptions: &mount.VolumeOptions{NoCopy: true}})
		}
	}
	if p.store != "" {
		args = []string{"--checkpoints", storePath}
	}
	at(p.store, storePath)
	at(p.other, storePath+sandbox.OtherCheckpoints)
	return mounts, args
}
