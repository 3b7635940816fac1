package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/bind"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/words"
)

// errMissing says that the engine does not have the image.
var errMissing = errors.New("the image has to be pulled")

// Start makes the container that spec names, or starts the one there is.
func (d *Driver) Start(ctx context.Context, spec sandbox.Spec, progress func(sandbox.Progress)) (h sandbox.Handle, err error) {
	err = d.patience.Do(ctx, func() error { h, err = d.tryStart(ctx, spec, progress); return err })
	return h, err
}

func (d *Driver) tryStart(ctx context.Context, spec sandbox.Spec, progress func(sandbox.Progress)) (sandbox.Handle, error) {
	if progress == nil {
		progress = func(sandbox.Progress) {}
	}
	s, err := d.shapeOf(ctx, spec)
	if err != nil {
		return sandbox.Handle{}, err
	}
	err = d.here(ctx, spec.Last)
	if err == nil {
		err = d.settle(ctx, sandbox.Handle{ID: spec.ID})
	}
	if err == nil && d.options.Pull == "always" {
		err = d.refresh(ctx, spec.ID, s.Image, progress)
	}
	if err != nil {
		return sandbox.Handle{}, err
	}
	h, err := d.start(ctx, spec, s, progress)
	if errors.Is(err, errMissing) {
		// Nothing is locked during the pull: it may take minutes, and the sandbox can be
		// destroyed before it ever existed.
		if err := d.pull(ctx, s.Image, progress); err != nil {
			return sandbox.Handle{}, err
		}
		h, err = d.start(ctx, spec, s, progress)
	}
	if errors.Is(err, errMissing) {
		return h, words.Unavailable(err, "The image %s was removed after it was pulled. Try again.", s.Image)
	}
	return h, err
}

// start does it with an image that the engine has.
func (d *Driver) start(ctx context.Context, spec sandbox.Spec, s shape, progress func(sandbox.Progress)) (sandbox.Handle, error) {
	unlock, err := d.busy.Acquire(ctx, spec.ID)
	if err != nil {
		return sandbox.Handle{}, err
	}
	defer unlock()
	p := &plan{
		shape: s, id: spec.ID, name: d.find.Names.Container(spec.ID)[0],
		limits: spec.Limits.OrDefault(), labels: spec.Labels, generation: 1,
	}
	img, here, err := d.image(ctx, s.Image)
	if err != nil {
		return sandbox.Handle{}, err
	}
	p.image = img
	older, err := d.mark(ctx, p)
	if err != nil {
		return sandbox.Handle{}, err
	}
	if !here {
		// A container can outlive the name of its image.
		old, err := d.find.Container(ctx, names.Box, p.id)
		if err != nil {
			return sandbox.Handle{}, err
		}
		if old == nil || old.Config.Labels[names.Shape] != s.label() {
			return sandbox.Handle{}, errMissing
		}
	}
	progress(sandbox.Progress{Step: sandbox.Starting, Message: "Starting " + s.Image})
	// Nearly always there is no container, so it is not asked for first, unless it may have another name.
	unseen := time.Now().Add(halfTime)
	for anew := 0; anew < 3; {
		if here && !older {
			h, err := d.fresh(ctx, p)
			if errors.Is(err, errLost) {
				anew++
				continue
			}
			if !errors.Is(err, errTaken) {
				return h, err
			}
		}
		old, err := d.settled(ctx, p.id)
		if err != nil {
			return sandbox.Handle{}, err
		}
		if old == nil {
			if !here {
				return sandbox.Handle{}, errMissing
			}
			if older {
				older = false
				continue
			}
			// It is gone since, or so new that it cannot be seen yet.
			if time.Now().After(unseen) {
				break
			}
			if err := pause(ctx); err != nil {
				return sandbox.Handle{}, err
			}
			continue
		}
		h, err := d.reuse(ctx, p, old)
		if !errors.Is(err, errUseless) {
			return h, err
		}
		anew++
		older = false
		p.generation = generationOf(old.Config.Labels) + 1
		if err := d.remove(ctx, old.ID); err != nil {
			return sandbox.Handle{}, d.words.Start(err, s.Image, s.Prepared)
		}
		if !here {
			return sandbox.Handle{}, errMissing
		}
	}
	return sandbox.Handle{}, words.Unavailable(nil, "The container %s keeps changing: another program starts and removes it at the same time.", p.name)
}

var (
	errTaken   = errors.New("there is a container of that name")
	errLost    = errors.New("the container was removed by another server before it was started")
	errUseless = errors.New("the container has to be made anew")
)

// fresh makes a new container and starts it. What it made of the container is
// removed when it fails; the workspace stays.
func (d *Driver) fresh(ctx context.Context, p *plan) (sandbox.Handle, error) {
	for {
		made, err := d.make(ctx, p)
		if err != nil {
			return sandbox.Handle{}, err
		}
		box, err := d.connect(ctx, link{id: p.id, container: made, program: p.program, user: p.connector(), onClose: d.patience.Lost})
		if err == nil {
			d.drop(p.id) // of a container before this one
			d.park(p.id, box)
			return d.handle(p.id, data{Container: made, Image: p.Image, Runner: p.program, User: p.connector(), folder: p.Folder != ""}), nil
		}
		err = d.deaf(ctx, made, err, p)
		d.discard(ctx, made)
		// Some engines find out only inside that what we mounted may not be run there.
		if !p.mounts || !d.isRunnerMount(err) || !words.Holds(words.Brief(err), "permission denied") {
			return sandbox.Handle{}, err
		}
		p.unmountable = true
	}
}

// make makes a new container and starts it, in whichever way the runner gets in.
func (d *Driver) make(ctx context.Context, p *plan) (string, error) {
	if err := d.match(ctx); err != nil {
		return "", err
	}
	p.program = ""
	for tries := 0; ; {
		d.inject(p)
		plain, counted := d.plain.Load(), d.counted.Load() // other starts find out at the same time
		made, err := d.create(ctx, p)
		if words.IsTaken(err) {
			return "", errTaken
		}
		if err == nil {
			if err = d.launch(ctx, made, p); err == nil {
				d.learn(p)
				return made, nil
			}
			d.discard(ctx, made)
			if words.Holds(words.Brief(err), "marked for removal", "no such container") {
				return "", errLost
			}
		}
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case unmounted(err) && tries < remakes:
			tries++
		case p.mounts && d.isRunnerMount(err):
			d.log.Info("the container engine cannot mount the runner, so it is copied", "why", words.Brief(err))
			p.unmountable = true
		case !plain && words.Holds(words.Brief(err), "disable_ipv6", "sysctl"): // a kernel without IPv6
			d.plain.Store(true)
		case !counted && words.Holds(words.Brief(err), "setting rlimit"): // Podman without all of root's rights
			d.counted.Store(true)
		case p.Prepared && p.program == runnerPath && words.IsMissingProgram(err):
			p.program = words.PreparedName
		default:
			return "", d.words.Start(err, p.Image, p.Prepared)
		}
	}
}

// learn remembers what worked, so that the next one need not try.
func (d *Driver) learn(p *plan) {
	if p.Prepared {
		d.images.SetRunner(p.image.id, p.program)
	}
	if p.unmountable {
		d.copies.Store(true)
	}
}

// errUnseenRunner says that what was mounted is not our runner.
var errUnseenRunner = errors.New("the engine sees another file at " + runnerPath)

// launch fills a container that was made and starts it.
func (d *Driver) launch(ctx context.Context, made string, p *plan) error {
	if p.mounts && !d.seen(ctx, made) {
		return errUnseenRunner
	}
	if p.Folder != "" && !bind.Sees(ctx, d.engine.Client, made, p.Folder) {
		return words.Unavailable(nil, "The container engine at %s has another folder at %s than this machine. Share the folder with the engine, or choose another one.", d.engine.Address, p.Folder)
	}
	if err := d.fill(ctx, made, p); err != nil {
		return err
	}
	err := d.startContainer(ctx, made)
	if err != nil && p.Folder != "" && bind.Inaccessible(words.Brief(err), p.Folder) {
		return words.Unavailable(err, "The container engine at %s cannot open the folder %s. It must be accessible to the user of the engine: use an engine of your own user, or give that user access to the folder and to all folders above it.", d.engine.Address, p.Folder)
	}
	return err
}

// reuse makes a container that exists run. errUseless if it has to be replaced.
func (d *Driver) reuse(ctx context.Context, p *plan, old *container.InspectResponse) (sandbox.Handle, error) {
	program := old.Config.Labels[names.Runner]
	user := old.Config.Labels[names.Connector]
	h := d.handle(p.id, data{Container: old.ID, Image: old.Config.Labels[names.Image], Runner: program, User: user, folder: p.Folder != ""})
	state := container.StateDead
	if old.State != nil {
		state = old.State.Status
	}
	switch state {
	case container.StateRunning, container.StateRestarting:
		return h, nil
	case container.StatePaused:
		if _, err := d.engine.ContainerUnpause(ctx, old.ID, client.ContainerUnpauseOptions{}); err != nil && !words.IsAsleep(err) {
			return h, d.words.Start(err, p.Image, p.Prepared)
		}
		return h, nil
	case container.StateExited, "stopped": // the second is Podman's
	default:
		return h, errUseless // half made, or half gone
	}
	if old.Config.Labels[names.Shape] != p.label() {
		return h, errUseless
	}
	if err := d.again(ctx, p, old); err != nil {
		return h, err
	}
	d.drop(p.id)
	box, err := d.connect(ctx, link{id: p.id, container: old.ID, program: program, user: user, onClose: d.patience.Lost})
	if err != nil {
		return h, d.deaf(ctx, old.ID, err, p)
	}
	d.park(p.id, box)
	return h, nil
}

// again starts a stopped container, under the limits that hold now.
func (d *Driver) again(ctx context.Context, p *plan, old *container.InspectResponse) error {
	if err := d.match(ctx); err != nil {
		return err
	}
	mounted := ""
	for _, m := range old.Mounts {
		if m.Destination == runnerPath {
			mounted = m.Source
		}
	}
	if mounted != "" && mounted != d.runner() && !d.sameRunner(ctx, old.ID) {
		d.log.Info("the runner lies elsewhere now, so the container is made anew", "container", p.name)
		return errUseless
	}
	if want := resources(p.limits); old.HostConfig != nil && !sameLimits(old.HostConfig.Resources, want) {
		want.Ulimits = nil // these cannot be changed, and never differ
		_, err := d.engine.ContainerUpdate(ctx, old.ID, client.ContainerUpdateOptions{Resources: &want})
		switch {
		case words.IsNotThere(err) && old.HostConfig.Memory == 0: // an engine that ignores limits: a new container would have none either
		case words.IsNotThere(err):
			return errUseless // an engine that cannot do that
		case err != nil:
			return d.words.Start(err, p.Image, p.Prepared)
		}
	}
	if mounted == "" && !p.Prepared { // it was copied; ours may be newer
		pack, err := d.program()
		if err != nil {
			return err
		}
		if err := d.copyIn(ctx, old.ID, home, pack); err != nil {
			return d.words.Start(err, p.Image, p.Prepared)
		}
	}
	err := d.startContainer(ctx, old.ID)
	if err != nil && mounted != "" && ctx.Err() == nil && d.isRunnerMount(err) {
		return errUseless
	}
	if err != nil {
		return d.words.Start(err, p.Image, p.Prepared)
	}
	return nil
}

func sameLimits(a, b container.Resources) bool {
	same := a.Memory == b.Memory && a.MemorySwap == b.MemorySwap && a.CPUQuota == b.CPUQuota && a.CPUPeriod == b.CPUPeriod
	return same && a.PidsLimit != nil && *a.PidsLimit == *b.PidsLimit
}

// deaf says that a container was started but its runner cannot be spoken to.
func (d *Driver) deaf(ctx context.Context, name string, err error, p *plan) error {
	var known *sandbox.Unavailable
	if words.IsOver(err) || errors.As(err, &known) {
		return err
	}
	// A program that cannot be run ends the container; the engine may need a moment to notice.
	for range 20 {
		if why := d.whyNot(ctx, name, err); errors.Is(why, sandbox.ErrGone) {
			err = why
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	if words.Holds(words.Brief(err), "exec format error") {
		return d.words.Start(err, p.Image, p.Prepared)
	}
	return words.Unavailable(err, "The runner in a container of the image %s does not answer: %s", p.Image, words.Brief(err))
}

// halfTime is how long a container may be made and not started before it counts
// as left behind by a server that died: until then another one may be at it.
const halfTime = 10 * time.Second

// settled finds the container of a sandbox when it is not being started.
func (d *Driver) settled(ctx context.Context, id string) (*container.InspectResponse, error) {
	for {
		old, err := d.find.Container(ctx, names.Box, id)
		if err != nil || old == nil || old.State == nil || old.State.Status != container.StateCreated {
			return old, err
		}
		made, err := time.Parse(time.RFC3339Nano, old.Created)
		if age := time.Since(made); err != nil || age < 0 || age > halfTime {
			return old, nil
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// pause waits a moment for what another server is doing.
func pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tidyTime bounds cleaning up after a failure, which continues when the caller has left.
const tidyTime = 30 * time.Second

// discard removes a container that is of no use, whatever happens.
func (d *Driver) discard(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	if err := d.remove(ctx, name); err != nil {
		d.log.Warn("a container that is of no use could not be removed", "container", name, "error", err)
	}
}

// remove ends a container and removes it with the volumes that only it has. When
// it returns, the name is free.
func (d *Driver) remove(ctx context.Context, name string) error {
	_, err := d.engine.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) { // it is being removed already
		wait := d.engine.ContainerWait(ctx, name, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
		select {
		case <-wait.Result:
			return nil
		case err = <-wait.Error:
		}
	}
	if words.IsNotThere(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing the container %s: %w", name, err)
	}
	return nil
}
