package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/cgroup"
	"deckhand/internal/sandbox/local/launcher"
	"deckhand/internal/sandbox/tree"
	"deckhand/internal/sockpath"
)

// plan is how to start a sandbox.
type plan struct {
	limits  sandbox.Limits
	mounts  []box.Mount
	network sandbox.Network
	env     map[string]string
	// look is the sandbox whose workspace is looked at, nil for a place's own.
	look *place
	// plain says that overlays were refused.
	plain bool
}

// child is a runner that was started.
type child struct {
	process *launcher.Process
	control *net.UnixConn
}

// launch starts the runner of a place. When it returns, the runner is inside
// and listens.
func (d *Driver) launch(ctx context.Context, p *place, o plan) error {
	c, err := d.tryLaunch(ctx, p, o)
	var refused *refusal
	if errors.As(err, &refused) && refused.report.NoOverlay && !o.plain {
		d.tell("overlays are refused, so the system cannot be changed inside: " + refused.Error())
		if err := d.plainRoot(p); err != nil {
			return fmt.Errorf("%w; without an overlay: %w", refused, err)
		}
		o.plain = true
		c, err = d.tryLaunch(ctx, p, o)
	}
	if err != nil {
		return err
	}
	return c.control.Close()
}

// refusal is what the runner said instead of becoming a sandbox.
type refusal struct{ report box.Report }

func (r *refusal) Error() string { return r.report.Error }

// tryLaunch starts a runner, or takes the one that waits, and makes it the sandbox.
func (d *Driver) tryLaunch(ctx context.Context, p *place, o plan) (*child, error) {
	if err := d.base.wait(ctx); err != nil {
		return nil, err
	}
	if err := d.base.refresh(); err != nil {
		return nil, err
	}
	if p.child != nil {
		// It may have ended or been stopped while it waited, which says nothing about the next one.
		soon, cancel := context.WithTimeout(ctx, spareAnswers)
		c, err := d.build(soon, p, o)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("it did not answer for %v", spareAnswers)
		} else if !errors.Is(err, errDied) {
			return c, err
		}
		d.log.Warn("a sandbox that was started in advance has failed and is replaced", "sandbox", p.id, "error", err)
	}
	if err := d.prepare(ctx, p, o); err != nil {
		return nil, err
	}
	return d.build(ctx, p, o)
}

// prepare starts a runner and concurrently makes the folders of its sandbox.
func (d *Driver) prepare(ctx context.Context, p *place, o plan) error {
	if err := d.chooseUser(p, o); err != nil {
		return err
	}
	// Before any folder belongs to these users: a retry after a crash must choose the same ones.
	if err := p.meta.write(p.dir); err != nil {
		return err
	}
	var err error
	if p.group, err = d.groups.Make(d.groupPrefix() + p.id); err != nil {
		d.tell("a limit cannot be set: " + err.Error())
	}
	p.meta.Groups = p.group.Dirs
	if p.child, err = d.run(ctx, p); err == nil {
		if err = d.folders(p, o); err != nil {
			err = fmt.Errorf("making the sandbox's folders: %w", err)
		}
	}
	if err != nil {
		d.abandon(ctx, p)
	}
	return err
}

// abandon ends a runner that is no sandbox yet.
func (d *Driver) abandon(ctx context.Context, p *place) {
	if p.child != nil {
		p.child.control.Close()
		_ = p.child.process.Signal(unix.SIGKILL)
		p.child.process.Wait()
		p.child.process.Close()
	}
	_ = cgroup.Remove(context.WithoutCancel(ctx), p.group.Dirs)
	p.child, p.group, p.meta.PID, p.meta.Groups = nil, nil, 0, nil
}

// build makes a waiting runner the sandbox.
func (d *Driver) build(ctx context.Context, p *place, o plan) (*child, error) {
	report, err := d.instruct(ctx, p, o)
	if err == nil && report.Error != "" {
		err = &refusal{report}
	}
	if err != nil {
		d.abandon(ctx, p)
		return nil, errors.Join(err, p.meta.write(p.dir))
	}
	for _, note := range report.Notes {
		d.tell(note)
	}
	if !o.plain && len(report.Notes) == 0 {
		d.mappedBefore.Store(true)
	}
	p.child.process.Close()
	return p.child, nil
}

// groupPrefix makes the names of groups unique on the machine, since several
// servers may share a parent group.
func (d *Driver) groupPrefix() string {
	var st unix.Stat_t
	_ = unix.Stat(d.dir, &st)
	return fmt.Sprintf("%x-", st.Ino)
}

// chooseUser gives a new place its users.
func (d *Driver) chooseUser(p *place, o plan) error {
	if !d.rights.Ranges || p.meta.User != 0 {
		return nil
	}
	if o.look != nil {
		p.meta.User = o.look.meta.User
		return nil
	}
	var err error
	p.meta.User, err = d.users.take(p.id)
	return err
}

// run starts the program in new namespaces. It waits there for its setup.
func (d *Driver) run(ctx context.Context, p *place) (c *child, err error) {
	for range launcher.Attempts {
		if c, err = d.tryRun(ctx, p); !errors.Is(err, launcher.ErrLost) {
			break
		}
	}
	return c, err
}

func (d *Driver) tryRun(ctx context.Context, p *place) (*child, error) {
	theirs, control, err := launcher.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() // so that a runner that dies shows as end of file
	fail := func(err error) (*child, error) { control.Close(); return nil, err }
	listener, err := listen(p)
	if err != nil {
		return fail(err)
	}
	defer listener.Close()
	log, err := os.OpenFile(filepath.Join(p.dir, logName), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fail(err)
	}
	defer log.Close()
	files := launcher.Files{Control: theirs, Listener: listener, Log: log}
	if p.group.V2 != "" {
		if folder, err := os.Open(p.group.V2); err == nil {
			defer folder.Close()
			files.Group = folder
		}
	}
	process, err := d.launcher.Start(ctx, launcher.Order{User: p.meta.User, Users: rangeSize, Loan: d.groups.Loan(p.group), Groups: p.group.Dirs, Spare: !validID(p.id)}, files, control)
	if err != nil {
		return fail(err)
	}
	if process.Failed != nil {
		d.tell("limits do not hold: " + process.Failed.Error())
	}
	return &child{process: process, control: control}, nil
}

// listen makes the socket that the runner serves on. It is for the server's user alone.
func listen(p *place) (*os.File, error) {
	name := filepath.Join(p.dir, socketName)
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	address := &unix.SockaddrUnix{Name: sockpath.In(p.folder, socketName)}
	err = unix.Fchmod(fd, 0o600)
	if err == nil {
		err = unix.Bind(fd, address)
	}
	if err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("making the sandbox's socket: %w", err)
	}
	return f, nil
}

// errDied says that a runner ended before it answered.
var errDied = errors.New("the runner ended at once")

// instruct tells the runner what to become and waits until it is.
func (d *Driver) instruct(ctx context.Context, p *place, o plan) (box.Report, error) {
	var report box.Report
	c, pid := p.child, p.child.process.PID
	if err := d.groups.Set(p.group, cgroup.Limits{CPUs: o.limits.CPUs, Memory: o.limits.Memory, Processes: o.limits.Processes}); err != nil {
		d.tell("a limit cannot be set: " + err.Error())
	}
	p.meta.PID, p.meta.Started, p.meta.Boot, p.meta.Root = pid, startedAt(pid), bootID(), d.base.root
	p.meta.Generation++
	if err := p.meta.write(p.dir); err != nil {
		return report, err
	}
	setup, files, err := d.setup(p, o, pid)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if errors.Is(err, errDied) {
		err = d.death(ctx, p, err)
	}
	if err != nil {
		return report, err
	}
	body := setup.Encode()
	if len(body) > box.MaxMessage {
		return report, errors.New("the description of the sandbox is too long")
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	stop := context.AfterFunc(ctx, func() { _ = c.control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, _, err := c.control.WriteMsgUnix(body, unix.UnixRights(fds...), nil); err != nil {
		return report, d.death(ctx, p, err)
	}
	buf := make([]byte, box.MaxMessage)
	n, err := c.control.Read(buf)
	if err != nil || n == 0 {
		return report, d.death(ctx, p, err)
	}
	err = report.Decode(buf[:n])
	return report, err
}

// death says why a runner ended before it answered: in its log, if anywhere.
func (d *Driver) death(ctx context.Context, p *place, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text, _ := os.ReadFile(filepath.Join(p.dir, logName))
	text = bytes.TrimSpace(text)
	if len(text) > 500 {
		text = text[:500]
	}
	if len(text) > 0 {
		return fmt.Errorf("%w, saying: %s", errDied, text)
	}
	return fmt.Errorf("%w, saying nothing: %v", errDied, err)
}

// plainRoot makes the root that is used where there are no overlays: a copy.
func (d *Driver) plainRoot(p *place) error {
	up := filepath.Join(p.dir, box.UpDir, rootLayer)
	if d.base.rootFS != "" {
		return errors.New("a system in a folder needs overlays")
	}
	if names, err := os.ReadDir(up); err == nil && len(names) > 0 {
		return nil // copied for an earlier start
	}
	half := up + ".new" // gets its name when it is complete
	if err := errors.Join(tree.Remove(up), tree.Remove(half), tree.Remove(half+".links")); err != nil {
		return err
	}
	ids := tree.IDs{}
	if p.meta.User != 0 {
		ids = tree.IDs{From: 0, To: p.meta.User, Size: rangeSize}
	}
	if err := tree.Copy(d.base.root, half, ids); err != nil {
		return err
	}
	return os.Rename(half, up)
}
