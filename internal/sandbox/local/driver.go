package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/cgroup"
	"deckhand/internal/sandbox/local/launcher"
	"deckhand/internal/sandbox/local/rights"
	"deckhand/internal/sandbox/lock"
	"deckhand/internal/sandbox/tree"
	"deckhand/internal/sockpath"
)

// Name is what handles of this driver carry.
const Name = "local"

// Options configure a Driver.
type Options struct {
	// Dir is where sandboxes are kept. It is made if need be.
	Dir string
	// Runner is the runner's program on this machine.
	Runner string
	// RootFS is a folder with the system that sandboxes see, "" for this machine's own.
	RootFS string
	// Shared is a folder for what drivers of other processes can use too. A driver
	// that has one serves a single sandbox: it prepares nothing for the next.
	Shared string
	// Outward serves the connections that leave sandboxes; nil refuses them.
	Outward sandbox.Outward
	// Limits hold for what a Spec leaves open.
	Limits sandbox.Limits
	// Together bounds the memory and the processes of all sandboxes at once, where the
	// machine has control groups; 0 is no bound.
	Together sandbox.Limits
	Logger   *slog.Logger
}

// Driver makes sandboxes on this machine.
type Driver struct {
	*checkpoint.Keeper
	dir      string
	runner   *os.File
	launcher *launcher.Launcher
	outward  sandbox.Outward
	limits   sandbox.Limits
	log      *slog.Logger

	rights       rights.Rights
	groups       *cgroup.Parent
	users        *users
	base         *base
	spare        spare
	locks        lock.Table
	mappedBefore atomic.Bool // a sandbox had overlays over folders with mapped owners

	mu   sync.Mutex
	told map[string]bool // notes that were logged
}

var (
	_ sandbox.Driver      = (*Driver)(nil)
	_ sandbox.Viewer      = (*Driver)(nil)
	_ sandbox.Inspector   = (*Driver)(nil)
	_ sandbox.Snapshotter = (*Driver)(nil)
	_ sandbox.Measurer    = (*Driver)(nil)
	_ sandbox.Archiver    = (*Driver)(nil)
	_ sandbox.Spacer      = (*Driver)(nil)
	_ sandbox.Holder      = (*Driver)(nil)
	_ sandbox.Suspender   = (*Driver)(nil)
	_ sandbox.Checker     = (*Driver)(nil)
	_ sandbox.Prober      = (*Driver)(nil)
	_ sandbox.Pather      = (*Driver)(nil)

	_ sandbox.Checkpointer = (*Driver)(nil)
)

// New makes a Driver. It looks over the system in the background; the first
// Start waits for that. An error says what is wrong with the options; what is
// wrong with the machine is told by Check and by Start.
func New(o Options) (*Driver, error) {
	if o.Dir == "" || o.Runner == "" {
		return nil, errors.New("the local sandbox needs a folder for its sandboxes and the path of the runner")
	}
	d := &Driver{
		outward: o.Outward, limits: o.Limits.OrDefault(), log: o.Logger,
		rights: rights.Find(firstUser, lastUser+rangeSize), told: map[string]bool{},
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.Keeper = checkpoint.NewKeeper(places{d}, d.log)
	if err := d.makeDir(o.Dir); err != nil {
		return nil, err
	}
	if o.Shared != "" {
		if err := os.MkdirAll(o.Shared, 0o755); err != nil {
			return nil, fmt.Errorf("making the folder that sandboxes share: %w", err)
		}
		d.spare.closed = true
	}
	if err := d.openRunner(o.Runner); err != nil {
		return nil, err
	}
	if o.RootFS != "" {
		root, err := filepath.Abs(o.RootFS)
		if err == nil {
			_, err = os.ReadDir(root)
		}
		if err != nil {
			return nil, fmt.Errorf("the root file system of --sandbox-rootfs cannot be read: %w", err)
		}
		o.RootFS = root
	}
	d.launcher = launcher.New(d.runner, o.Shared != "", d.log)
	d.groups = cgroup.Find()
	if err := d.groups.Bound(cgroup.Limits{Memory: o.Together.Memory, Processes: o.Together.Processes}); err != nil {
		d.log.Warn("the sandboxes cannot be limited together", "error", err)
	}
	if f := d.checkLimits(); !f.OK {
		d.log.Info("sandboxes have no "+f.What, "why", f.Found)
	}
	d.users = &users{dir: d.dir, taken: map[uint32]string{}}
	if err := d.recall(); err != nil {
		return nil, err
	}
	d.groups.Sweep(d.groupPrefix())
	d.base = newBase(d.dir, o.Shared, o.RootFS, d.rights, d.log)
	d.base.done.Go(func() {
		if d.base.wait(d.base.ctx) == nil {
			d.dropTemplates()
		}
	})
	return d, nil
}

// Close ends what the driver does in the background. Sandboxes run on.
func (d *Driver) Close() error {
	d.base.close()
	d.closeSpare()
	d.launcher.Close()
	d.groups.Sweep(d.groupPrefix()) // also of spares whose servers were killed
	return nil
}

// makeDir makes the folder of all sandboxes.
func (d *Driver) makeDir(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o700)
	if d.rights.Ranges && !d.rights.Trees {
		mode = 0o711 // a sandbox's user has to get to its own folder
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("making the folder for sandboxes: %w", err)
	}
	if d.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fmt.Errorf("finding the folder for sandboxes: %w", err)
	}
	tree.Spread(d.dir)
	return os.MkdirAll(filepath.Join(d.dir, baseDir), 0o755)
}

// openRunner keeps the program open: it is started by its descriptor, so that
// it may lie where a sandbox's user could not go.
func (d *Driver) openRunner(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the runner cannot be found: %w", err)
	}
	if d.rights.Ranges && info.Mode()&0o005 != 0o005 {
		return fmt.Errorf("the runner must be readable and executable for all users: chmod 755 %s", path)
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the runner cannot be opened: %w", err)
	}
	d.runner = os.NewFile(uintptr(fd), path)
	return nil
}

// recall looks at what is there from earlier: which users are taken, and what
// was left half done.
func (d *Driver) recall() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("reading the folder for sandboxes: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(d.dir, e.Name())
		switch {
		case validID(e.Name()):
			m, err := readMeta(path)
			if err == nil && m.User != 0 {
				d.users.taken[m.User] = e.Name()
			}
			if err == nil {
				d.recallRestore(path, m)
			}
		case strings.HasPrefix(e.Name(), scrapPrefix):
			d.sweep(path)
		}
	}
	return nil
}

// sweep removes leftovers. Sandboxes in use are locked.
func (d *Driver) sweep(path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	if m, err := readMeta(path); err == nil {
		_ = m.end(context.Background())
		_ = cgroup.Remove(context.Background(), m.Groups)
	}
	if err := tree.Remove(path); err != nil {
		d.log.Warn("a leftover of a sandbox cannot be removed", "error", err)
	}
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

func validID(id string) bool { return idPattern.MatchString(id) }

func (d *Driver) handle(id string) sandbox.Handle { return sandbox.Handle{Driver: Name, ID: id} }

// path is a sandbox's directory. Handles come from a log, so they are checked again.
func (d *Driver) path(h sandbox.Handle) (string, error) {
	if !validID(h.ID) {
		return "", fmt.Errorf("%w: %q is not the name of a sandbox", sandbox.ErrInvalid, h.ID)
	}
	return filepath.Join(d.dir, h.ID), nil
}

// Attach implements sandbox.Driver.
func (d *Driver) Attach(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error) {
	dir, err := d.path(h)
	if err != nil {
		return nil, err
	}
	m, err := readMeta(dir)
	if err != nil || !m.alive() {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, h.ID)
	}
	d.Finish(dir, m.checkpointed(dir)) // before anything in the sandbox goes on
	if err := errors.Join(unhold(dir, m), d.repair(dir, m)); err != nil {
		return nil, err
	}
	conn, err := dial(ctx, dir)
	if err != nil {
		if !m.alive() || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, h.ID)
		}
		return nil, err
	}
	s, err := sandbox.Connect(ctx, sandbox.Link{ID: h.ID, Conn: conn, Outward: d.outward})
	if err != nil && ctx.Err() == nil && !m.alive() {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, h.ID)
	}
	return s, err
}

// dial connects to a runner.
func dial(ctx context.Context, dir string) (net.Conn, error) {
	conn, err := sockpath.Dial(ctx, dir, socketName)
	if err != nil {
		return nil, fmt.Errorf("connecting to the sandbox: %w", err)
	}
	return conn, nil
}

// List implements sandbox.Driver.
func (d *Driver) List(context.Context) ([]sandbox.Found, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	var found []sandbox.Found
	for _, e := range entries {
		if !validID(e.Name()) || !e.IsDir() {
			continue
		}
		dir := filepath.Join(d.dir, e.Name())
		m, err := readMeta(dir)
		f := sandbox.Found{Handle: d.handle(e.Name()), Running: err == nil && m.alive()}
		f.Suspended = !f.Running && suspended(dir)
		found = append(found, f)
	}
	return found, nil
}

// View implements sandbox.Viewer.
func (d *Driver) View(_ context.Context, h sandbox.Handle) (*os.Root, error) {
	dir, err := d.path(h)
	if err != nil {
		return nil, err
	}
	m, _ := readMeta(dir) // without one, there is no workspace either
	d.Finish(dir, m.checkpointed(dir))
	root, err := os.OpenRoot(m.workspace(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has no workspace", sandbox.ErrGone, h.ID)
	}
	return root, err
}

// LocalView implements sandbox.LocalViewer.
func (d *Driver) LocalView() {}

// Usage implements sandbox.Measurer.
func (d *Driver) Usage(_ context.Context, h sandbox.Handle) (sandbox.Usage, error) {
	dir, err := d.path(h)
	if err != nil {
		return sandbox.Usage{}, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return sandbox.Usage{}, fmt.Errorf("%w: %s does not exist", sandbox.ErrGone, h.ID)
	}
	var parts []string
	for _, name := range box.Written {
		parts = append(parts, filepath.Join(dir, name))
	}
	bytes, files, err := tree.Usage(parts...)
	return sandbox.Usage{Bytes: bytes, Files: files}, err
}

// Space implements sandbox.Spacer.
func (d *Driver) Space() (sandbox.Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return sandbox.Space{}, err
	}
	return sandbox.Space{Bytes: int64(st.Blocks) * st.Bsize, FreeBytes: int64(st.Bavail) * st.Bsize,
		Inodes: int64(st.Files), FreeInodes: int64(st.Ffree)}, nil
}

// tell logs a note about the machine, once.
func (d *Driver) tell(note string) {
	d.mu.Lock()
	known := d.told[note]
	d.told[note] = true
	d.mu.Unlock()
	if !known {
		d.log.Warn("sandboxes are less than they could be", "why", note)
	}
}
