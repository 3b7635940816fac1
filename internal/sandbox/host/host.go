// Package host is the sandbox driver without a sandbox: the runner is a plain process
// with all rights of the server. It is for machines on which no other driver works; it
// must be chosen by name, and logs a warning.
package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint"
	"deckhand/internal/sandbox/runner/files"
	"deckhand/internal/sandbox/runner/processes"
	"deckhand/internal/sockpath"
)

// Name is the driver name in handles.
const Name = "host"

// Kind registers the driver.
var Kind = sandbox.Kind{
	Properties: sandbox.Properties{Name: Name, Label: "NO sandbox", Folders: true},
	Open: func(o sandbox.Options) (sandbox.Driver, error) {
		o.Logger.Warn(Warning)
		return New(Options{Dir: o.Dir, Runner: o.Runner, Logger: o.Logger})
	},
}

// Warning is logged when a server with this driver starts.
const Warning = "NO SANDBOX: the commands of every conversation run as processes of this user, with access to all files, secrets and the network"

// Options configure a Driver.
type Options struct {
	// Dir is the folder of the workspaces.
	Dir string
	// Runner is the path of the runner.
	Runner string
	Logger *slog.Logger
}

// Driver implements sandbox.Driver.
type Driver struct {
	Options
	*checkpoint.Keeper
	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

// New returns the driver.
func New(o Options) (*Driver, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &Driver{Options: o, locks: map[string]*sync.Mutex{}}
	d.Keeper = checkpoint.NewKeeper(places{d}, o.Logger)
	return d, nil
}

// lock serialises changes of one sandbox.
func (d *Driver) lock(id string) func() {
	d.mu.Lock()
	l := d.locks[id]
	if l == nil {
		l = &sync.Mutex{}
		d.locks[id] = l
	}
	d.mu.Unlock()
	l.Lock()
	return l.Unlock
}

// process identifies the runner's process; the start time distinguishes it from a later one with the
// same PID.
type process struct {
	PID     int    `json:"pid"`
	Started string `json:"started"`
}

func (d *Driver) dir(id string) string { return filepath.Join(d.Dir, id) }

// running returns the process of the runner, if it is alive.
func (d *Driver) running(id string) (process, bool) {
	var p process
	b, err := os.ReadFile(filepath.Join(d.dir(id), "process.json"))
	if err != nil || json.Unmarshal(b, &p) != nil || p.PID <= 0 {
		return p, false
	}
	started, alive := startOf(p.PID)
	return p, alive && started == p.Started
}

// startOf returns the start time of a process as the kernel writes it. A zombie is not
// alive.
func startOf(pid int) (string, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	// The name is in parentheses and may contain anything, including parentheses.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return "", false
	}
	return string(fields[19]), true
}

// Start implements sandbox.Driver.
func (d *Driver) Start(ctx context.Context, spec sandbox.Spec, _ func(sandbox.Progress)) (sandbox.Handle, error) {
	h := sandbox.Handle{Driver: Name, ID: spec.ID}
	if err := sandbox.CheckID(spec.ID); err != nil {
		return h, err
	}
	if spec.Image != "" {
		return h, &sandbox.Unavailable{Reason: "The host driver cannot run container images: start the server with --sandbox docker, or clear the image in the settings."}
	}
	if len(spec.Mounts) > 0 {
		return h, &sandbox.Unavailable{Reason: "The host driver cannot show folders under other names."}
	}
	defer d.lock(spec.ID)()
	if _, ok := d.running(spec.ID); ok {
		return h, nil
	}
	d.finish(spec.ID)
	dir := d.dir(spec.ID)
	if err := d.prepare(spec, dir); err != nil {
		return h, err
	}
	if err := d.launch(spec, dir); err != nil {
		return h, fmt.Errorf("the runner cannot be started: %w", err)
	}
	s, err := d.dialWait(ctx, spec.ID)
	if err != nil {
		d.kill(spec.ID)
		return h, err
	}
	return h, s.Close()
}

// prepare creates the workspace: a folder, or a link to the requested one.
func (d *Driver) prepare(spec sandbox.Spec, dir string) error {
	if spec.Folder == "" {
		return os.MkdirAll(filepath.Join(dir, "ws"), 0o700)
	}
	if info, err := os.Stat(spec.Folder); err != nil || !info.IsDir() || !filepath.IsAbs(spec.Folder) {
		return &sandbox.Unavailable{Reason: spec.Folder + " is not a folder that can be worked in.", Cause: err}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if now, err := os.Readlink(filepath.Join(dir, "ws")); err == nil && now == spec.Folder {
		return nil
	}
	return os.Symlink(spec.Folder, filepath.Join(dir, "ws"))
}

// workspace returns the real path of the workspace.
func (d *Driver) workspace(id string) (string, error) {
	return filepath.EvalSymlinks(filepath.Join(d.dir(id), "ws"))
}

// launch starts the runner in its own session, so that it outlives the server.
func (d *Driver) launch(spec sandbox.Spec, dir string) error {
	workspace, err := d.workspace(spec.ID)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "runner.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// A killed runner may still listen while its last threads end.
	if err := os.Remove(filepath.Join(dir, "sock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cmd := exec.Command(d.Runner, "serve", "--socket", "sock", "--state", filepath.Join(dir, "state"),
		"--output", filepath.Join(dir, "output"), "--workspace", workspace, "--network", "isolated")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	started, _ := startOf(cmd.Process.Pid)
	b, err := json.Marshal(process{PID: cmd.Process.Pid, Started: started})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "process.json"), b, 0o600)
}

// kill ends a runner that was started but is not needed.
func (d *Driver) kill(id string) {
	for {
		p, ok := d.running(id)
		if !ok {
			return
		}
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
		time.Sleep(time.Millisecond)
	}
}

// dialWait connects to a runner that was just started.
func (d *Driver) dialWait(ctx context.Context, id string) (net.Conn, error) {
	for {
		conn, err := sockpath.Dial(ctx, d.dir(id), "sock")
		if err == nil {
			return conn, nil
		}
		if _, ok := d.running(id); !ok {
			b, _ := os.ReadFile(filepath.Join(d.dir(id), "runner.log"))
			return nil, fmt.Errorf("the runner ended at once: %s", b)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// asideDir holds the workspaces that were set aside. It cannot be an ID.
const asideDir = ".set-aside"

// SetAside implements sandbox.Archiver.
func (d *Driver) SetAside(ctx context.Context, h sandbox.Handle) (string, error) {
	if err := d.Stop(ctx, h); err != nil {
		return "", err
	}
	defer d.lock(h.ID)()
	to := filepath.Join(d.Dir, asideDir, h.ID+"."+strconv.FormatInt(time.Now().UnixMilli(), 10))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	err := os.Rename(d.dir(h.ID), to)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return to, err
}

// Attach implements sandbox.Driver.
func (d *Driver) Attach(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error) {
	if _, ok := d.running(h.ID); !ok || sandbox.CheckID(h.ID) != nil {
		return nil, sandbox.ErrGone
	}
	d.finish(h.ID)
	conn, err := sockpath.Dial(ctx, d.dir(h.ID), "sock")
	if err != nil {
		return nil, fmt.Errorf("%w: %v", sandbox.ErrGone, err)
	}
	return sandbox.Connect(ctx, sandbox.Link{ID: h.ID, Conn: conn})
}

// Stop implements sandbox.Driver.
func (d *Driver) Stop(ctx context.Context, h sandbox.Handle) error {
	if sandbox.CheckID(h.ID) != nil {
		return nil // there is none
	}
	defer d.lock(h.ID)()
	p, ok := d.running(h.ID)
	if !ok {
		return nil
	}
	err := sandbox.Answers(ctx, killTime, func(ctx context.Context) error {
		s, err := d.Attach(ctx, h)
		if err == nil { // what it started would survive it
			err = s.KillAll(ctx)
			s.Close()
		}
		return err
	})
	if err != nil { // it does not answer, or has nothing to say
		killBelow(p.PID)
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	for {
		if _, ok := d.running(h.ID); !ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// killTime is how long a runner may take to end everything in its sandbox before that is done for it.
const killTime = 5 * time.Second

// killBelow kills what a runner has started: as long as the runner lives, that descends from it.
func killBelow(runner int) {
	for range 100 { // what is killed may start more before it ends
		children := map[int][]int{}
		for _, p := range processes.List() {
			children[p.Parent] = append(children[p.Parent], p.PID)
		}
		below := slices.Clone(children[runner])
		for i := 0; i < len(below); i++ {
			_ = syscall.Kill(below[i], syscall.SIGKILL)
			below = append(below, children[below[i]]...)
		}
		if len(below) == 0 {
			return
		}
	}
}

// Destroy implements sandbox.Driver.
func (d *Driver) Destroy(ctx context.Context, h sandbox.Handle) error {
	if err := sandbox.CheckID(h.ID); err != nil {
		return err
	}
	if err := d.Stop(ctx, h); err != nil {
		return err
	}
	d.Forget(d.dir(h.ID))
	return removeAll(d.dir(h.ID))
}

// removeAll is os.RemoveAll for folders whose mode keeps even their owner out.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// List implements sandbox.Driver.
func (d *Driver) List(context.Context) ([]sandbox.Found, error) {
	entries, err := os.ReadDir(d.Dir)
	if err != nil {
		return nil, err
	}
	var out []sandbox.Found
	for _, e := range entries {
		if !e.IsDir() || sandbox.CheckID(e.Name()) != nil {
			continue
		}
		_, running := d.running(e.Name())
		out = append(out, sandbox.Found{Handle: sandbox.Handle{Driver: Name, ID: e.Name()}, Running: running})
	}
	return out, nil
}

// View implements sandbox.Viewer.
func (d *Driver) View(_ context.Context, h sandbox.Handle) (*os.Root, error) {
	if sandbox.CheckID(h.ID) != nil {
		return nil, sandbox.ErrGone
	}
	d.finish(h.ID)
	root, err := os.OpenRoot(filepath.Join(d.dir(h.ID), "ws"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sandbox.ErrGone
	}
	return root, err
}

// Inspect implements sandbox.Inspector: a runner beside the other, over the same
// files, which ends with its connection. There is no wall here that could keep
// programs from changing what they look at.
func (d *Driver) Inspect(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error) {
	if err := sandbox.CheckID(h.ID); err != nil {
		return nil, err
	}
	d.finish(h.ID)
	workspace, err := d.workspace(h.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sandbox.ErrGone
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(d.dir(h.ID), "look-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(d.Runner, "serve", "--socket", "sock", "--state", filepath.Join(dir, "state"),
		"--output", filepath.Join(dir, "output"), "--workspace", workspace, "--network", "isolated")
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	end := func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = os.RemoveAll(dir)
	}
	for {
		conn, err := sockpath.Dial(ctx, dir, "sock")
		if err == nil {
			s, err := sandbox.Connect(ctx, sandbox.Link{ID: h.ID, Conn: conn, OnClose: end})
			return s, err
		}
		select {
		case <-ended:
			end()
			return nil, fmt.Errorf("the runner ended at once: %w", err)
		case <-ctx.Done():
			end()
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// Usage implements sandbox.Measurer.
func (d *Driver) Usage(ctx context.Context, h sandbox.Handle) (sandbox.Usage, error) {
	if info, err := os.Lstat(filepath.Join(d.dir(h.ID), "ws")); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return sandbox.Usage{}, nil // a folder of the user
	}
	root, err := d.View(ctx, h)
	if err != nil {
		return sandbox.Usage{}, err
	}
	defer root.Close()
	bytes, err := files.Usage(ctx, root)
	return sandbox.Usage{Bytes: bytes}, err
}

// Check implements sandbox.Checker.
func (d *Driver) Check(context.Context) []sandbox.Finding {
	return []sandbox.Finding{{What: "sandbox", Found: Warning, Fix: "use --sandbox auto"}}
}
