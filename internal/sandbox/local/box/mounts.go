package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoOverlay says that the kernel or the file system refuses overlays.
var errNoOverlay = errors.New("no overlay can be had here")

// builder builds the tree inside. Everything is mounted in a scaffold, on a
// folder of the old tree, and moved to its place only when the process has
// moved into the new root: so links that a sandbox left in its own tree can
// only lead to places in it.
type builder struct {
	setup    *Setup
	fds      []int
	scaffold string
	box      string
	lowers   []lower
	pieces   []piece
	extra    []piece // put last, since they may lie in other pieces
	notes    []string
	state    int
	output   int
	written  []string
}

// piece is a mount that waits to be put into its place.
type piece struct {
	fd     int
	target string
}

const noSuid = unix.MS_NOSUID | unix.MS_NODEV

// enter does all that needs rights over mounts.
func (b *builder) enter() (*Config, error) {
	steps := []func() error{b.raise, b.root, b.layers, b.folders, b.devices, b.pivot, b.place, b.proc, b.leave, network}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &Config{
		ID: b.setup.ID, State: ownPath(b.state), Output: ownPath(b.output), OutputSeen: Output,
		Workspace: Workspace, Home: Home, Network: b.setup.Network, Env: b.setup.Env,
		Disk: int64(b.setup.FileSize), Written: b.written,
	}, nil
}

// raise makes the scaffold and shows the sandbox's directory in it.
func (b *builder) raise() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := stack(); err != nil {
		return err
	}
	// The paths from here on lead below the scaffold, so what it covers is opened first.
	box, err := b.source(b.setup.BoxTree, b.setup.Box, false)
	if err != nil {
		return err
	}
	work := -1
	if b.setup.Work != "" || b.setup.WorkTree > 0 {
		if work, err = b.source(b.setup.WorkTree, b.setup.Work, false); err != nil {
			return err
		}
	}
	for i := range b.setup.Mounts {
		if err := b.openMount(&b.setup.Mounts[i]); err != nil {
			return err
		}
	}
	if err := b.openLayers(); err != nil {
		return err
	}
	for _, dir := range []string{"/tmp", "/mnt", "/run", "/var", "/usr"} {
		if err = unix.Mount("tmpfs", dir, "tmpfs", noSuid, "mode=755,size=1m"); err == nil {
			b.scaffold = dir
			break
		}
	}
	if err != nil {
		return fmt.Errorf("mounting a tmpfs to build the sandbox on: %w", err)
	}
	for _, dir := range []string{"box", "root", "low", "layer", "dev", "empty"} {
		if err := os.Mkdir(b.at(dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(b.at("none"), nil, 0o444); err != nil {
		return err
	}
	b.box = b.at("box")
	if err := attach(box, b.box); err != nil {
		return err
	}
	unix.Close(box)
	return b.workspace(work)
}

func (b *builder) at(names ...string) string {
	return filepath.Join(append([]string{b.scaffold}, names...)...)
}

// source is a mount of a folder of the host that is not in any tree yet: the
// one that the server sent, or one that is made from its path. A whole one has
// the mounts below it, too.
func (b *builder) source(tree int, path string, whole bool) (int, error) {
	if tree > 0 {
		if tree > len(b.fds) {
			return -1, fmt.Errorf("the server did not send folder %d", tree)
		}
		return b.fds[tree-1], nil
	}
	return cloneTree(path, whole)
}

func cloneTree(path string, whole bool) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if whole {
		flags |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, flags)
	if errors.Is(err, unix.EINVAL) && !whole {
		// A user namespace may not show what lies under a mount of its parent's.
		fd, err = unix.OpenTree(unix.AT_FDCWD, path, flags|unix.AT_RECURSIVE)
	}
	if err != nil {
		return -1, fmt.Errorf("opening %s for mounting: %w", path, err)
	}
	return fd, nil
}

// attach puts a mount into its place, which may be a link to it.
func attach(fd int, target string) error {
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS); err != nil {
		return fmt.Errorf("mounting on %s: %w", target, err)
	}
	return nil
}

// restrict adds flags to a mount. Those it has stay. The mount becomes private: one that the server sent may be shared with
// the machine, and a shared mount cannot be the root.
func restrict(fd int, flags uint64) error {
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: flags, Propagation: unix.MS_PRIVATE})
}

const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// bind prepares a part of the scaffold for being seen at target.
func (b *builder) bind(path, target string, flags uint64) error {
	fd, err := cloneTree(path, false)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	return b.keep(fd, target, flags)
}

func (b *builder) keep(fd int, target string, flags uint64) error {
	if err := restrict(fd, flags); err != nil {
		return fmt.Errorf("restricting the mount for %s: %w", target, err)
	}
	b.pieces = append(b.pieces, piece{fd, target})
	return nil
}

func (b *builder) workspace(fd int) error {
	flags := uint64(quiet)
	if b.setup.WorkReadOnly {
		flags |= unix.MOUNT_ATTR_RDONLY
	}
	if fd >= 0 {
		return b.keep(fd, Workspace, flags)
	}
	return b.bind(filepath.Join(b.box, WorkDir), Workspace, flags)
}

// folders prepares what is the sandbox's own on disk, and opens what is the runner's.
func (b *builder) folders() error {
	if err := b.bind(filepath.Join(b.box, HomeDir), Home, quiet); err != nil {
		return err
	}
	for _, d := range TmpDirs {
		if err := b.bind(filepath.Join(b.box, TmpDir, d.Name), d.Target, quiet); err != nil {
			return err
		}
	}
	if err := b.bind(filepath.Join(b.box, OutputDir), Output, quiet|unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC); err != nil {
		return err
	}
	for dir, fd := range map[string]*int{StateDir: &b.state, OutputDir: &b.output} {
		var err error
		if *fd, err = unix.Open(filepath.Join(b.box, dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("opening the runner's folder %s: %w", dir, err)
		}
	}
	for _, dir := range Written {
		fd, err := unix.Open(filepath.Join(b.box, dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("opening the folder %s: %w", dir, err)
		}
		b.written = append(b.written, ownPath(fd)+"/.")
	}
	return nil
}

func (b *builder) openMount(m *Mount) error {
	fd, err := b.source(m.Tree, m.Source, true)
	if err != nil {
		return err
	}
	flags := uint64(quiet)
	if m.ReadOnly {
		flags |= unix.MOUNT_ATTR_RDONLY
	}
	if err := restrict(fd, flags); err != nil {
		return fmt.Errorf("restricting the mount for %s: %w", m.Target, err)
	}
	b.extra = append(b.extra, piece{fd, m.Target})
	return nil
}

// pivot makes the new tree the root. The old one stays below the working
// directory until leave, since a new /proc is granted only while there is one.
func (b *builder) pivot() error {
	old, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b.fds = []int{old} // the others are mounted by now, or pieces
	if err := unix.Chdir(b.at("root")); err != nil {
		return fmt.Errorf("going to the new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	return nil
}

// place puts the pieces where they are seen.
func (b *builder) place() error {
	for _, p := range append(b.pieces, b.extra...) {
		if err := placeOne(p); err != nil {
			return err
		}
		unix.Close(p.fd)
	}
	return b.mask()
}

func placeOne(p piece) error {
	err := attach(p.fd, p.target)
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	// A file is shown on a file, everything else on a folder.
	var st unix.Stat_t
	if e := unix.Fstat(p.fd, &st); e != nil {
		return e
	}
	dir := p.target
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		dir = filepath.Dir(p.target)
	}
	if e := os.MkdirAll(dir, 0o755); e != nil {
		return fmt.Errorf("making a place to mount on: %w", e)
	}
	if dir != p.target {
		if e := os.WriteFile(p.target, nil, 0o644); e != nil {
			return fmt.Errorf("making a place to mount on: %w", e)
		}
	}
	return attach(p.fd, p.target)
}

// mask covers what must not be readable inside. What the sandbox itself has removed or replaced
// is not there to be covered.
func (b *builder) mask() error {
	for _, path := range b.setup.Masked {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
				continue
			}
			return fmt.Errorf("masking %s: %w", path, err)
		}
		cover := "none"
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			cover = "empty"
		case unix.S_IFLNK:
			continue
		}
		fd, err := b.coverOf(cover)
		if err != nil {
			return err
		}
		err = attach(fd, path)
		unix.Close(fd)
		if err != nil && !errors.Is(err, unix.ENOENT) { // it may have gone just now
			return fmt.Errorf("masking: %w", err)
		}
	}
	return nil
}

// coverOf is something empty that cannot be written to. It is found in the
// scaffold, below the old root.
func (b *builder) coverOf(name string) (int, error) {
	rel := strings.TrimPrefix(b.at(name), "/")
	fd, err := unix.OpenTree(b.fds[0], rel, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("opening the empty overmount: %w", err)
	}
	return fd, restrict(fd, quiet|unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC)
}

// leave lets go of the old tree.
func (b *builder) leave() error {
	if err := unix.Fchdir(b.fds[0]); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the host's tree: %w", err)
	}
	unix.Close(b.fds[0])
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Chdir(Workspace)
}
