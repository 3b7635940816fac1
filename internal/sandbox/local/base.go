package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/privatefiles"
	"deckhand/internal/sandbox/local/rights"
)

// baseDir holds what all sandboxes share.
const baseDir = ".base"

// base is what sandboxes are built on: the system of the machine without its private files, or a
// folder with another system.
type base struct {
	dir    string
	shared bool // dir is used by other processes too, and outlives this one
	rootFS string
	data   string // the folder of all sandboxes, which must not be seen
	rights rights.Rights
	log    *slog.Logger

	ctx    context.Context // of the search
	cancel context.CancelFunc
	done   sync.WaitGroup

	root   string // the folder under everything
	layers []box.Layer
	mounts []box.Mount

	watch *privatefiles.Watch // nil if nothing is to be masked but what was found before

	mu     sync.Mutex
	last   *attempt
	masked []string
	turn   int64 // of the watch, when that was found
	// unmapped says why the owners of the system's files are not mapped; "" if they
	// are. unable is why they never can be.
	unmapped, unable string
}

// attempt is one try to prepare the base.
type attempt struct {
	done chan struct{} // closed when it has ended
	err  error
}

func newBase(data, shared, rootFS string, r rights.Rights, log *slog.Logger) *base {
	b := &base{dir: cmp.Or(shared, filepath.Join(data, baseDir)), shared: shared != "", rootFS: rootFS, data: data, rights: r, log: log}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.try()
	return b
}

// try begins to prepare the base.
func (b *base) try() {
	a := &attempt{done: make(chan struct{})}
	b.last = a
	b.done.Go(func() {
		defer close(a.done)
		a.err = b.prepare()
	})
}

// wait waits until the base is known. If there was no room for it, it is tried once more.
func (b *base) wait(ctx context.Context) error {
	for again := false; ; again = true {
		b.mu.Lock()
		a := b.last
		b.mu.Unlock()
		select {
		case <-a.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if again || !errors.Is(a.err, unix.ENOSPC) && !errors.Is(a.err, unix.EDQUOT) {
			return a.err
		}
		b.mu.Lock()
		if b.last == a && b.ctx.Err() == nil {
			b.try()
		}
		b.mu.Unlock()
	}
}

// close ends the search.
func (b *base) close() {
	b.cancel()
	b.done.Wait()
}

// prepare finds out what sandboxes can be built on. They wait until all that is
// to be masked was found.
func (b *base) prepare() error {
	if !b.rights.Trees {
		b.unable = b.rights.Why
		if b.unable == "" {
			b.unable = "the server may not make mounts (CAP_SYS_ADMIN)"
		}
		b.unmapped = b.unable
	}
	if b.rootFS != "" {
		b.root = b.rootFS
		return nil
	}
	b.layers, b.mounts = systemLayers(), addons(b.data)
	var err error
	if b.root, err = makeTemplate(b.dir, b.layers, b.mounts, b.data); err != nil {
		return fmt.Errorf("preparing the system that sandboxes see: %w", err)
	}
	return b.findMasked() // what was not searched to its end is not to be shown
}

// systemLayers are the folders of the machine's system that exist.
func systemLayers() []box.Layer {
	var layers []box.Layer
	for _, path := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/var/lib/dpkg"} {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		layers = append(layers, box.Layer{Name: strings.ReplaceAll(path[1:], "/", "-"), Source: path, Target: path})
	}
	return layers
}

// maxAddons bounds how many folders in /opt are shown: each is a mount.
const maxAddons = 32

// addons are the folders in /opt. They are shown as they are and not to be
// changed: people put them there, perhaps for some users only, so their owners
// are not mapped. Beside them, there is room for the sandbox's own.
func addons(data string) []box.Mount {
	entries, err := os.ReadDir("/opt")
	if err != nil {
		return nil
	}
	var mounts []box.Mount
	for _, e := range entries {
		path := "/opt/" + e.Name()
		info, err := e.Info()
		if err != nil || !e.IsDir() || info.Mode()&0o005 != 0o005 || covers(path, data) || covers(data, path) || len(mounts) == maxAddons {
			continue
		}
		mounts = append(mounts, box.Mount{Source: path, Target: path, ReadOnly: true})
	}
	return mounts
}

// present are the mounts of the base whose folders still exist: they belong to
// others, who may have removed one since the server started.
func (b *base) present() []box.Mount {
	var out []box.Mount
	for _, m := range b.mounts {
		if info, err := os.Lstat(m.Source); err == nil && info.IsDir() {
			out = append(out, m)
		}
	}
	return out
}

// hidden is what is to be masked now, and whether owners may be mapped.
func (b *base) hidden() (masked []string, unmapped string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.masked, b.unmapped
}

// openTree makes a mount of a folder that can be handed to a sandbox. With a user namespace,
// files keep their owners in it.
func openTree(path string, users int, whole bool) (*os.File, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if whole {
		flags |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, flags)
	if err != nil {
		return nil, fmt.Errorf("opening %s for mounting: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if users >= 0 {
		if err := mapOwners(f, users, unix.MOUNT_ATTR_RDONLY); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// lendTree is openTree for a folder that is to be written to. Mounts below it
// are not shown: their owners could not be mapped along.
func lendTree(path string, users int) (*os.File, error) {
	f, err := openTree(path, -1, false)
	if err != nil {
		return nil, err
	}
	if err := mapOwners(f, users, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w (its file system cannot do that: use --sandbox host, or be another user than root)", err)
	}
	return f, nil
}

// mapOwners makes files of a mount keep their owners in a user namespace.
func mapOwners(f *os.File, users int, flags uint64) error {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | flags, Userns_fd: uint64(users)}
	if err := unix.MountSetattr(int(f.Fd()), "", unix.AT_EMPTY_PATH, attr); err != nil {
		return fmt.Errorf("mapping the owners of %s: %w", f.Name(), err)
	}
	return nil
}

// covers says whether path is dir or lies below it.
func covers(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// dropTemplates removes what older servers made and no running sandbox uses.
func (d *Driver) dropTemplates() {
	entries, err := os.ReadDir(d.base.dir)
	if err != nil || d.base.rootFS != "" {
		return
	}
	if d.base.shared {
		dropOld(d.base.dir, d.base.root, entries, d.log)
		return
	}
	used := map[string]bool{d.base.root: true}
	boxes, err := os.ReadDir(d.dir)
	if err != nil {
		return
	}
	for _, e := range boxes {
		if m, err := readMeta(filepath.Join(d.dir, e.Name())); err == nil && m.alive() {
			used[m.Root] = true
		}
	}
	for _, e := range entries {
		path := filepath.Join(d.base.dir, e.Name())
		if strings.HasPrefix(e.Name(), templatePrefix) && !used[path] {
			dropTemplate(path, d.log)
		}
	}
}

// sharedFor is how long a template that other processes may use stays after its last use.
const sharedFor = 30 * 24 * time.Hour

// dropOld removes templates that were not used for a long time. Whose sandboxes
// stand on them is not known here.
func dropOld(dir, used string, entries []os.DirEntry, log *slog.Logger) {
	now := time.Now()
	_ = os.Chtimes(used, now, now)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err == nil && path != used && strings.HasPrefix(e.Name(), templatePrefix) && now.Sub(info.ModTime()) > sharedFor {
			dropTemplate(path, log)
		}
	}
}

func dropTemplate(path string, log *slog.Logger) {
	if err := os.RemoveAll(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("an old system folder cannot be removed", "error", err)
	}
}
