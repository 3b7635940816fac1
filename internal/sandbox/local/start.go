package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/cgroup"
	"deckhand/internal/sandbox/lock"
	"deckhand/internal/sandbox/tree"
)

// place is a sandbox's directory while it is locked.
type place struct {
	id     string
	dir    string
	folder *os.File // open and locked
	meta   meta
	// child and group are a runner that waits for its setup, if there is one.
	child *child
	group *cgroup.Group
}

func (p *place) close() { p.folder.Close() }

// Start implements sandbox.Driver.
func (d *Driver) Start(ctx context.Context, spec sandbox.Spec, progress func(sandbox.Progress)) (sandbox.Handle, error) {
	h := d.handle(spec.ID)
	if _, err := d.path(h); err != nil {
		return sandbox.Handle{}, err
	}
	if err := ctx.Err(); err != nil {
		return sandbox.Handle{}, err
	}
	if spec.Image != "" {
		return sandbox.Handle{}, &sandbox.Unavailable{Reason: "The local sandbox driver cannot run container images, so it cannot use " + spec.Image +
			". Clear the image in the settings, or start the server with --sandbox docker."}
	}
	mounts, err := d.checkMounts(spec.Mounts)
	if err != nil {
		return sandbox.Handle{}, err
	}
	folder, err := d.checkFolder(spec.Folder)
	if err != nil {
		return sandbox.Handle{}, err
	}
	release, err := d.locks.Acquire(ctx, spec.ID)
	if err != nil {
		return sandbox.Handle{}, err
	}
	defer release()
	p := d.adopt(spec.ID)
	if p == nil {
		if p, err = d.open(ctx, spec.ID, true); err != nil {
			return sandbox.Handle{}, unavailable(ctx, err)
		}
	}
	defer p.close()
	if p.meta.alive() {
		return h, nil
	}
	d.Finish(p.dir, p.meta.checkpointed(p.dir))
	continues := suspended(p.dir)
	if progress != nil && !continues {
		progress(sandbox.Progress{Step: sandbox.Starting})
	}
	if p.meta.Generation > 0 { // something ran here before
		tidy := d.tidy
		if continues {
			tidy = d.fold
		}
		if err := tidy(ctx, p); err != nil {
			return sandbox.Handle{}, unavailable(ctx, err)
		}
	}
	p.meta.Labels, p.meta.Folder = spec.Labels, folder
	if err := d.launch(ctx, p, plan{limits: d.limitsOf(spec), mounts: mounts, network: spec.Network, env: spec.Env}); err != nil {
		return sandbox.Handle{}, unavailable(ctx, err)
	}
	d.refillLater()
	return h, nil
}

// unavailable wraps the error of a failed start. A cancelled wait is returned unchanged.
func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	reason := "The sandbox cannot be started: " + err.Error() + "."
	if hint := startFix(err); hint != "" {
		reason += " " + hint
	}
	return &sandbox.Unavailable{Reason: reason, Cause: err}
}

func (d *Driver) limitsOf(spec sandbox.Spec) sandbox.Limits {
	l := spec.Limits
	if l.CPUs <= 0 {
		l.CPUs = d.limits.CPUs
	}
	if l.Memory <= 0 {
		l.Memory = d.limits.Memory
	}
	if l.Processes <= 0 {
		l.Processes = d.limits.Processes
	}
	if l.Disk <= 0 {
		l.Disk = d.limits.Disk
	}
	return l
}

// reserved are the places inside that are not for mounts.
var reserved = []string{"/proc", "/dev", "/sys", "/.deckhand", "/usr", "/etc", "/bin", "/sbin", "/lib"}

// checkMounts says whether folders may be shown inside, and where they really are.
func (d *Driver) checkMounts(mounts []sandbox.Mount) ([]box.Mount, error) {
	var out []box.Mount
	for _, m := range mounts {
		invalid := func(why string) error {
			return fmt.Errorf("%w: %s cannot be mounted on %s: %s", sandbox.ErrInvalid, m.Source, m.Target, why)
		}
		if !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) || filepath.Clean(m.Target) != m.Target || m.Target == "/" {
			return nil, invalid("both must be absolute paths, and the second one not the root")
		}
		if slices.ContainsFunc(reserved, func(r string) bool { return m.Target == r || r != "/usr" && covers(r, m.Target) }) || m.Target == box.Workspace {
			return nil, invalid("this place inside is taken")
		}
		source, err := filepath.EvalSymlinks(m.Source)
		if err != nil {
			return nil, invalid(err.Error())
		}
		if covers(d.dir, source) || covers(source, d.dir) {
			return nil, invalid("the sandboxes themselves lie there")
		}
		out = append(out, box.Mount{Source: source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return out, nil
}

// checkFolder says whether a folder may be the workspace, and where it really is.
func (d *Driver) checkFolder(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	refuse := func(why string) error {
		return &sandbox.Unavailable{Reason: fmt.Sprintf("A sandbox cannot work in %s: %s.", folder, why)}
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", refuse(err.Error())
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", refuse(err.Error())
	case !info.IsDir() || !filepath.IsAbs(real):
		return "", refuse("it is not a folder")
	case real == "/":
		return "", refuse("it is the whole machine")
	case covers(d.dir, real) || covers(real, d.dir):
		return "", refuse("it contains, or is inside, the folder of the sandboxes, " + d.dir)
	case d.rights.Ranges && !d.rights.Trees:
		return "", refuse("files written there would belong to other users, because the server is root without CAP_SYS_ADMIN; use --sandbox host, or run as another user")
	}
	return real, nil
}

// open opens and locks a sandbox's directory, and makes it if told so.
func (d *Driver) open(ctx context.Context, id string, create bool) (*place, error) {
	dir := filepath.Join(d.dir, id)
	for {
		if create {
			if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
		p, err := d.openAt(ctx, id, dir)
		if create && errors.Is(err, fs.ErrNotExist) {
			continue // destroyed by another process between the two
		}
		return p, err
	}
}

func (d *Driver) openAt(ctx context.Context, id, dir string) (*place, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	p := &place{id: id, dir: dir, folder: folder}
	if err := lock.Folder(ctx, folder); err != nil {
		p.close()
		return nil, err
	}
	// It may have been moved away while we waited.
	var now, then unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &now), unix.Fstat(int(folder.Fd()), &then)); err != nil || now.Ino != then.Ino {
		p.close()
		return nil, fs.ErrNotExist
	}
	p.meta, _ = readMeta(dir) // without one, nothing was made here yet
	return p, nil
}

// tidy removes what a sandbox that ended has left: temporary files, limits, its socket.
func (d *Driver) tidy(ctx context.Context, p *place) error {
	return errors.Join(d.fold(ctx, p), sandbox.Discard(filepath.Join(p.dir, box.StateDir)), tree.Remove(filepath.Join(p.dir, box.TmpDir)))
}

// Stop implements sandbox.Driver.
func (d *Driver) Stop(ctx context.Context, h sandbox.Handle) error {
	return d.with(ctx, h, func(p *place) error { return d.stop(ctx, p) })
}

func (d *Driver) stop(ctx context.Context, p *place) error {
	if err := p.meta.end(ctx); err != nil {
		return err
	}
	return d.tidy(ctx, p)
}

// Destroy implements sandbox.Driver.
func (d *Driver) Destroy(ctx context.Context, h sandbox.Handle) error {
	return d.with(ctx, h, func(p *place) error {
		if err := d.stop(ctx, p); err != nil {
			return err
		}
		// Renamed, it is gone for all readers, also if the server dies on the way. Nothing is
		// created for that, since the disk may be full.
		scrap := filepath.Join(d.dir, scrapPrefix+"gone-"+rand.Text())
		err := unix.Renameat2(unix.AT_FDCWD, p.dir, unix.AT_FDCWD, scrap, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			scrap, err = p.dir, nil
		}
		if err != nil {
			return err
		}
		if err := tree.Remove(scrap); err != nil {
			return err
		}
		d.users.free(p.meta.User)
		d.Forget(p.dir)
		return nil
	})
}

// with does something with a sandbox that exists; with another there is nothing to do.
func (d *Driver) with(ctx context.Context, h sandbox.Handle, do func(*place) error) error {
	if _, err := d.path(h); err != nil {
		return err
	}
	release, err := d.locks.Acquire(ctx, h.ID)
	if err != nil {
		return err
	}
	defer release()
	p, err := d.open(ctx, h.ID, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	return do(p)
}
