package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/tree"
)

// ownFolders are the folders of a sandbox that its users write to.
var ownFolders = []string{box.HomeDir, box.StateDir, box.OutputDir, box.TmpDir, box.UpDir, box.WorkDir}

// repairOwner gives a folder of a sandbox to its users, if it belongs to others: a
// server that died between making a folder and giving it away leaves it behind like
// that, and so does a restored backup. Then everything below is given away, too.
func repairOwner(dir int, name string, first uint32) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if inRange(st.Uid, first) && inRange(st.Gid, first) || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	// The folder itself is the last one, so that a crash on the way is noticed again.
	if err := tree.Give(fd, func(id uint32) uint32 { return ownedBy(id, first) }); err != nil {
		return &os.PathError{Op: "change the owner of", Path: name, Err: err}
	}
	return nil
}

// ownedBy is the user of the range from first on that a file of the user id is given to.
func ownedBy(id, first uint32) uint32 {
	switch {
	case inRange(id, first):
		return id
	case id >= firstUser && id < lastUser+rangeSize: // the same user of another sandbox
		return first + id%rangeSize
	}
	return first
}

func inRange(id, first uint32) bool { return id >= first && id-first < rangeSize }

// repair checks the folders of a sandbox that was started by another server.
func (d *Driver) repair(dir string, m meta) error {
	if !d.rights.Ranges || m.User == 0 {
		return nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, name := range ownFolders {
		if err := repairOwner(int(folder.Fd()), name, m.User); err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("the owner of a sandbox's folder cannot be repaired", "folder", filepath.Join(dir, name), "error", err)
			return err
		}
	}
	return nil
}
