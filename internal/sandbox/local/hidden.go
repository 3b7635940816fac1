package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// When owners are mapped, the sandbox's root owns the files of the machine's
// root, so it could read those that are only for root to read. The same goes
// for a sandbox whose user is the server's. There are few of them in a system's
// folders; they are found once and masked.

// maxMasked is how many files are masked at most: each is a mount in every sandbox.
const maxMasked = 100

// maskedFile keeps what was found, for the next server.
const maskedFile = "masked.json"

// mask is what was found, and a sign that it still holds.
type mask struct {
	Sign  string   `json:"sign"`
	Paths []string `json:"paths"`
	Many  bool     `json:"many,omitempty"`
}

// sign changes when software is installed or removed: what package managers
// write, and the folders where people put things by hand.
func (b *base) sign() string {
	var s strings.Builder
	fmt.Fprintf(&s, "1 %d %v", os.Geteuid(), b.rights.trees)
	for _, path := range []string{"/var/lib/dpkg/status", "/var/lib/rpm", "/lib/apk/db", "/usr", "/usr/bin", "/usr/lib", "/usr/share", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/local/share", "/opt"} {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			fmt.Fprintf(&s, " %d.%d.%d", st.Ino, st.Ctim.Sec, st.Ctim.Nsec)
		}
	}
	return s.String()
}

// recallMasked takes over what an earlier server found, if nothing was
// installed since.
func (b *base) recallMasked() bool {
	body, err := os.ReadFile(filepath.Join(b.dir, maskedFile))
	if err != nil {
		return false
	}
	var m mask
	if json.Unmarshal(body, &m) != nil || m.Sign != b.sign() {
		return false
	}
	b.setMasked(m)
	return true
}

func (b *base) setMasked(m mask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.masked = m.Paths
	if m.Many {
		// Without mapping, the files are closed by their modes.
		b.masked = nil
		b.unmapped = fmt.Sprintf("more than %d files in the system's folders are not for everybody to read", maxMasked)
	}
	for _, l := range b.layers {
		if covers(l.Source, b.data) {
			b.masked = append([]string{b.data}, b.masked...)
		}
	}
}

// private are the folders in which the sandbox's users would own files.
func (b *base) private() []string {
	if b.rights.ranges && !b.rights.trees {
		return nil
	}
	var folders []string
	for _, l := range b.layers {
		folders = append(folders, l.Source)
	}
	if !b.rights.ranges {
		for _, m := range b.mounts {
			folders = append(folders, m.Source)
		}
	}
	return folders
}

// errMany ends a search.
var errMany = errors.New("too many")

// findMasked looks for what is to be masked, and remembers it.
func (b *base) findMasked() {
	m := mask{Sign: b.sign()}
	for _, folder := range b.private() {
		err := b.search(folder, &m)
		if errors.Is(err, errMany) {
			m.Many = true
			break
		}
		if errors.Is(err, context.Canceled) {
			return
		}
		if err != nil {
			b.log.Warn("a system folder could not be looked through", "folder", folder, "error", err)
		}
	}
	if m.Many && !b.rights.ranges {
		// There is no mapping to do without, so it is the best that can be done.
		m.Many = false
		b.log.Warn("there are many private files of the server's user in the system's folders; sandboxes can read some of them", "folders", "/usr, /opt")
	}
	b.setMasked(m)
	if body, err := json.Marshal(m); err == nil {
		file := filepath.Join(b.dir, maskedFile)
		if err := os.WriteFile(file+".new", body, 0o600); err == nil {
			_ = os.Rename(file+".new", file)
		}
	}
}

// search looks through one folder.
func (b *base) search(root string, m *mask) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		if err != nil {
			// What we cannot read ourselves, nobody inside can.
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if path == b.data {
			return fs.SkipDir // masked as a whole
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		open := info.Mode()&0o004 != 0 || info.Size() == 0 // locks have to be written to, and tell nothing
		if d.IsDir() {
			open = info.Mode()&0o005 == 0o005
		}
		if open || !b.rights.ranges && unix.Access(path, unix.R_OK) != nil {
			return nil
		}
		if m.Paths = append(m.Paths, path); len(m.Paths) > maxMasked {
			return errMany
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}
