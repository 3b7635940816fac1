package box

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// devices prepares /dev: a handful of nodes of the host, terminals of its own,
// and shared memory.
func (b *builder) devices() error {
	dev := b.at("dev")
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("mounting /dev: %w", err)
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		node := b.at("dev", name)
		if err := os.WriteFile(node, nil, 0o666); err != nil {
			return err
		}
		// The node is read-only, not the device: programs inside must not change the mode of the
		// machine's device.
		fd, err := cloneTree("/dev/"+name, false)
		if err == nil {
			err = restrict(fd, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
		}
		if err == nil {
			err = attach(fd, node)
		}
		if err != nil {
			return fmt.Errorf("mounting /dev/%s: %w", name, err)
		}
		unix.Close(fd)
	}
	for _, name := range []string{"pts", "shm"} {
		if err := os.Mkdir(b.at("dev", name), 0o755); err != nil {
			return err
		}
	}
	err := unix.Mount("devpts", b.at("dev", "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	if err != nil {
		return fmt.Errorf("mounting /dev/pts: %w", err)
	}
	if err := unix.Mount("tmpfs", b.at("dev", "shm"), "tmpfs", noSuid|unix.MS_NOEXEC, "mode=1777,size=64m"); err != nil {
		return fmt.Errorf("mounting /dev/shm: %w", err)
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, b.at("dev", name)); err != nil {
			return err
		}
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, dev, unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("opening /dev for mounting: %w", err)
	}
	b.pieces = append(b.pieces, piece{fd, "/dev"})
	return nil
}

// What of /proc says something about the host, or would change it.
var (
	procHidden = []string{"acpi", "asound", "kcore", "keys", "latency_stats", "sched_debug", "scsi", "sysrq-trigger", "timer_list", "timer_stats", "interrupts"}
	procFrozen = []string{"bus", "fs", "irq", "sys"}
)

// proc mounts /proc for the new process namespace.
func (b *builder) proc() error {
	if err := os.MkdirAll("/proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", noSuid|unix.MS_NOEXEC, ""); err != nil {
		err = fmt.Errorf("mounting /proc: %w", err)
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w (in a container, it needs an unmasked /proc: --security-opt systempaths=unconfined)", err)
		}
		return err
	}
	for _, name := range procHidden {
		path := "/proc/" + name
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil {
			continue
		}
		cover := "none"
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			cover = "empty"
		}
		fd, err := b.coverOf(cover)
		if err != nil {
			return err
		}
		err = attach(fd, path)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	for _, name := range procFrozen {
		path := "/proc/" + name
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			continue // not every kernel has all of them
		}
		if err := restrict(fd, quiet|unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return fmt.Errorf("making %s read-only: %w", path, err)
		}
		err = attach(fd, path)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// network brings loopback up, the only interface there is.
func network() error {
	if err := unix.Sethostname([]byte(Hostname)); err != nil {
		return fmt.Errorf("setting the host's name: %w", err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bringing loopback up: %w", err)
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bringing loopback up: %w", err)
	}
	return nil
}
