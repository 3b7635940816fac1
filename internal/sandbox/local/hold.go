package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/deleted"
	"deckhand/internal/sandbox/local/cgroup"
)

// heldName marks a sandbox whose processes are stopped and about to be ended.
const heldName = "held"

// held is a sandbox whose processes are frozen.
type held struct {
	driver *Driver
	id     string
	dir    string
	meta   meta
	// unguard ends the process that lets the sandbox go on if this one dies.
	unguard func()
}

// Hold implements sandbox.Holder.
func (d *Driver) Hold(ctx context.Context, h sandbox.Handle) (sandbox.Held, error) {
	dir, err := d.path(h)
	if err != nil {
		return nil, err
	}
	m, err := readMeta(dir)
	if err != nil || !m.alive() {
		return nil, sandbox.ErrGone
	}
	// The guard comes second: starting it takes longer than filling what is left of a disk. If
	// this process dies in between, the next server that attaches lets the sandbox go on.
	if err := cgroup.Freeze(ctx, m.Groups); err != nil {
		return nil, err
	}
	unguard, err := cgroup.Guard(m.Groups)
	if err != nil {
		return nil, errors.Join(err, cgroup.Thaw(m.Groups))
	}
	return &held{driver: d, id: h.ID, dir: dir, meta: m, unguard: unguard}, nil
}

// Usage implements sandbox.Held.
func (h *held) Usage(ctx context.Context) (files sandbox.Usage, unlinked int64, err error) {
	if files, err = h.driver.Usage(ctx, h.driver.handle(h.id)); err != nil {
		return sandbox.Usage{}, 0, err
	}
	pids, err := cgroup.Processes(h.meta.Groups)
	if err != nil {
		return sandbox.Usage{}, 0, err
	}
	var processes []string
	for _, pid := range pids {
		processes = append(processes, "/proc/"+strconv.Itoa(pid))
	}
	return files, deleted.Bytes(processes), nil
}

// Release implements sandbox.Held.
func (h *held) Release() error {
	err := cgroup.Thaw(h.meta.Groups)
	h.unguard()
	return err
}

// End implements sandbox.Held.
func (h *held) End(end func() error) error {
	pids, err := cgroup.Processes(h.meta.Groups)
	if err != nil {
		return errors.Join(err, h.Release(), end())
	}
	pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == h.meta.PID })
	mark := filepath.Join(h.dir, heldName)
	_ = os.WriteFile(mark, nil, 0o600) // if the disk is too full for that, there is no help
	signal(pids, unix.SIGSTOP)
	err = h.Release()
	if e := end(); e != nil {
		signal(pids, unix.SIGKILL)
		err = errors.Join(err, e)
	}
	_ = os.Remove(mark)
	return err
}

func signal(pids []int, s unix.Signal) {
	for _, pid := range pids {
		_ = unix.Kill(pid, s)
	}
}

// unhold lets a sandbox go on that a server held when it died.
func unhold(dir string, m meta) error {
	if err := cgroup.Thaw(m.Groups); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mark := filepath.Join(dir, heldName)
	if _, err := os.Lstat(mark); err != nil {
		return nil
	}
	pids, err := cgroup.Processes(m.Groups)
	if err != nil {
		return err
	}
	signal(pids, unix.SIGCONT)
	return os.Remove(mark)
}
