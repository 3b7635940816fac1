//go:build linux

package tree

import "golang.org/x/sys/unix"

// Spread tells ext4 that the folders in dir have nothing to do with each other, as those in /home: it puts
// each into a part of the disk of its own. In one part, a new sandbox would be looked for room among the remains of all
// that were deleted. Other file systems do not know that.
func Spread(dir string) {
	const topDir = 0x00020000 // FS_TOPDIR_FL
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|topDir)
	}
}
