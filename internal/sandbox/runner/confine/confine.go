// Package confine restricts the thread that starts a sandbox's processes with landlock,
// which needs no privileges. It is for environments that others have built, such as
// containers.
package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From keeps what the calling thread starts from signalling the runner and,
// where that takes nothing else away, from touching the runner's own folders;
// their names can still be listed.
//
// Landlock can only list what is allowed, so everything at the top of the tree is allowed but
// the runner's folders. Entries made there later would be missing: users that can make entries
// there are not confined this way. The folders are then protected by their mode alone; see Own.
func From(private ...string) func() error {
	return func() error {
		if err := dropCapabilities(); err != nil {
			return err
		}
		abi := Version()
		if abi == 0 {
			return nil
		}
		attr := unix.LandlockRulesetAttr{}
		if abi >= scopedABI {
			attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		}
		files := unix.Access("/", unix.W_OK) != nil
		if files {
			attr.Access_fs = rights(abi)
		}
		if attr == (unix.LandlockRulesetAttr{}) {
			return nil
		}
		return restrict(attr, func(ruleset int) error {
			if !files {
				return nil
			}
			return allowAllBut(ruleset, attr.Access_fs, "/", private)
		})
	}
}

// Scope keeps what the calling thread starts from signalling anything that this
// thread did not start. Kernels before 6.12 cannot do that.
func Scope() error {
	if Version() < scopedABI {
		return nil
	}
	return restrict(unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}, func(int) error { return nil })
}

// Shrink keeps what the calling thread starts from making and writing files. It may read, run
// and delete them, and write to devices. The error is errors.ErrUnsupported without landlock.
func Shrink() error {
	abi := Version()
	if abi == 0 {
		return errors.ErrUnsupported
	}
	const make = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	denied := uint64(make | unix.LANDLOCK_ACCESS_FS_WRITE_FILE)
	if abi >= 3 {
		denied |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	return restrict(unix.LandlockRulesetAttr{Access_fs: denied}, func(ruleset int) error {
		return allow(ruleset, denied&(unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_TRUNCATE), "/dev")
	})
}

// scopedABI is the version of landlock that can keep signals off.
const scopedABI = 6

// Scoped is true when signals can be kept off.
func Scoped() bool { return Version() >= scopedABI }

// Version is the kernel's landlock, 0 if it has none.
func Version() int {
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(abi)
}

// rights are all that a version of landlock knows about files. Moving between
// folders came with the second and is refused without being listed.
func rights(abi int) uint64 {
	all := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1)
	if abi >= 2 {
		all |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		all |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		all |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all
}

// restrict makes a ruleset, fills it and enters it.
func restrict(attr unix.LandlockRulesetAttr, fill func(ruleset int) error) error {
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if e != 0 {
		return fmt.Errorf("making a landlock ruleset: %w", e)
	}
	defer unix.Close(int(fd))
	if err := fill(int(fd)); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return fmt.Errorf("entering landlock: %w", e)
	}
	return nil
}

// allowAllBut allows everything below dir except what lies in private.
func allowAllBut(ruleset int, all uint64, dir string, private []string) error {
	if err := allow(ruleset, unix.LANDLOCK_ACCESS_FS_READ_DIR, dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case slices.Contains(private, path), e.Type()&os.ModeSymlink != 0:
			continue
		case slices.ContainsFunc(private, func(p string) bool { return within(p, path) }):
			err = allowAllBut(ruleset, all, path, private)
		case e.IsDir():
			err = allow(ruleset, all, path)
		default:
			err = allow(ruleset, all&forFiles, path)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EACCES) {
			return err
		}
	}
	return nil
}

// within is true when path leads through dir.
func within(path, dir string) bool {
	return len(path) > len(dir) && path[:len(dir)] == dir && path[len(dir)] == '/'
}

// forFiles are the rights that make sense for what is not a folder.
const forFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
	unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

func allow(ruleset int, rights uint64, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return fmt.Errorf("allowing %s: %w", path, e)
	}
	return nil
}
