package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lower is a layer with its folder of the host opened.
type lower struct {
	Layer
	fd int
	// plain is the same without the mapping of owners, -1 if there is none.
	plain int
}

// openLayers opens the lower folders while the paths of the host still hold.
func (b *builder) openLayers() error {
	all := append([]Layer{b.setup.Root}, b.setup.Layers...)
	b.lowers = make([]lower, 0, len(all))
	for _, l := range all {
		fd, err := b.source(l.Tree, l.Source, false)
		if err != nil {
			return err
		}
		low := lower{Layer: l, fd: fd, plain: -1}
		if l.Tree > 0 && l.Target != "/" && !b.setup.Plain && !b.setup.Mapped {
			if low.plain, err = cloneTree(l.Source, false); err != nil {
				low.plain = -1 // the host's path may be closed to us; the tree is what counts
			} else if err := restrict(low.plain, quiet|unix.MOUNT_ATTR_RDONLY); err != nil {
				return fmt.Errorf("making %s read-only: %w", l.Source, err)
			}
		}
		if err := restrict(fd, quiet|unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("making %s read-only: %w", l.Source, err)
		}
		b.lowers = append(b.lowers, low)
	}
	return nil
}

// root mounts what becomes the root.
func (b *builder) root() error {
	l := b.lowers[0]
	up := filepath.Join(b.box, UpDir, l.Name)
	if b.setup.Plain {
		fd, err := cloneTree(up, false)
		if err != nil {
			return err
		}
		if err := restrict(fd, quiet); err != nil {
			return err
		}
		unix.Close(l.fd)
		defer unix.Close(fd)
		return attach(fd, b.at("root"))
	}
	if err := b.overlay(l, b.at("root")); err != nil {
		return fmt.Errorf("%w: %w", errNoOverlay, err)
	}
	return nil
}

// layers mounts the rest. Where an overlay is refused, the folder is shown as
// it is and cannot be changed.
func (b *builder) layers() error {
	for _, l := range b.lowers[1:] {
		if b.setup.Plain {
			if err := b.keep(l.fd, l.Target, quiet|unix.MOUNT_ATTR_RDONLY); err != nil {
				return err
			}
			continue
		}
		at := b.at("layer", l.Name)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		err := b.overlay(l, at)
		if err != nil {
			b.notes = append(b.notes, fmt.Sprintf("%s cannot be changed inside: %v", l.Target, err))
			if err := b.bind(b.at("low", l.Name), l.Target, quiet|unix.MOUNT_ATTR_RDONLY); err != nil {
				return err
			}
			continue
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("opening the overlay for %s: %w", l.Target, err)
		}
		b.pieces = append(b.pieces, piece{fd, l.Target})
	}
	return nil
}

// overlay mounts a layer with the sandbox's changes over it.
func (b *builder) overlay(l lower, at string) error {
	low := b.at("low", l.Name)
	if err := os.Mkdir(low, 0o755); err != nil {
		return err
	}
	if err := attach(l.fd, low); err != nil {
		return err
	}
	unix.Close(l.fd)
	up := filepath.Join(b.box, UpDir, l.Name)
	work := up + ".w"
	data := fmt.Sprintf("userxattr,lowerdir=%s,upperdir=%s,workdir=%s", low, up, work)
	err := mountOverlay(at, data, work)
	if err == nil && l.plain >= 0 {
		unix.Close(l.plain)
	}
	if err == nil || l.plain < 0 {
		return wrap("mounting overlay on "+l.Target, err)
	}
	// Some kernels refuse a lower folder whose owners are mapped. Without the mapping it has no
	// owner inside, and cannot be changed there.
	b.notes = append(b.notes, fmt.Sprintf("%s cannot be changed inside, since the kernel refuses an overlay over a mapped folder: %v", l.Target, err))
	if err := attach(l.plain, low); err != nil {
		return err
	}
	unix.Close(l.plain)
	return wrap("mounting overlay on "+l.Target, mountOverlay(at, data, work))
}

// mountOverlay mounts an overlay whose changes the kernel writes back as for any other folder, and not when the overlay ends.
// Without volatile, the kernel flushes the whole file system of the host whenever a sandbox ends, and each durable write of
// the server waits for that. The kernel leaves a mark that refuses a second mount of the changes. The mark is moved away,
// because removing it would free blocks, which takes long on some disks.
func mountOverlay(at, data, work string) error {
	if unix.Mount("overlay", at, "overlay", noSuid, data+",volatile") != nil {
		return unix.Mount("overlay", at, "overlay", noSuid, data)
	}
	mark, away := filepath.Join(work, "work", "incompat"), filepath.Join(work, "mark")
	if unix.Rename(mark, away) == nil {
		return nil
	}
	// An earlier mount has left a mark there.
	return errors.Join(os.RemoveAll(away), os.RemoveAll(mark))
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
