//go:build linux

package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/soak"
)

// dig makes folders in folders and returns to where it was.
func dig(t *testing.T, top string, levels int) {
	t.Helper()
	dir, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range levels {
		if err := unix.Mkdirat(dir, "deep", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(dir, "deep", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(dir)
		dir = next
	}
	fd, err := unix.Openat(dir, "bottom", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	unix.Close(dir)
}

func TestDeepTrees(t *testing.T) {
	soak.NotShort(t, "makes thousands of folders")
	top := filepath.Join(t.TempDir(), "top")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	dig(t, top, 5000)
	n, _, err := Usage(top)
	if err != nil || n < 1<<20 {
		t.Errorf("Usage: %d, %v", n, err)
	}
	other := top + "2"
	if err := Copy(top, other, IDs{}); err != nil {
		t.Fatal(err)
	}
	if m, _, err := Usage(other); err != nil || m != n {
		t.Errorf("the copy takes %d, the original %d (%v)", m, n, err)
	}
	for _, path := range []string{top, other} {
		for range 2 {
			if err := Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRemoveStaysInside(t *testing.T) {
	dir := t.TempDir()
	keep := filepath.Join(dir, "keep")
	top := filepath.Join(dir, "top")
	must(t, os.MkdirAll(keep, 0o755), os.WriteFile(filepath.Join(keep, "f"), nil, 0o644), os.MkdirAll(filepath.Join(top, "closed", "more"), 0o755),
		os.Symlink(keep, filepath.Join(top, "l")), os.Symlink(keep, filepath.Join(top, "closed", "l")), os.Chmod(filepath.Join(top, "closed"), 0))
	must(t, Remove(top))
	if _, err := os.Stat(filepath.Join(keep, "f")); err != nil {
		t.Error(err)
	}
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(keep, link), Remove(link))
	if _, err := os.Stat(filepath.Join(keep, "f")); err != nil {
		t.Error(err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Many empty files take up as large a part of the disk as they take of the files that it can have.
func TestUsageByFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if st.Files == 0 {
		t.Skip("SKIPPED: this file system can have any number of files")
	}
	n, files, err := Usage(dir)
	if least := 300 * (int64(st.Blocks) * int64(st.Bsize) / int64(st.Files)); err != nil || n < least || files != 300 {
		t.Errorf("%d for %d files, %v; want at least %d", n, files, err, least)
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, files, err := Usage(dir); err != nil || n < 64<<20 || n > 80<<20 || files != 0 {
		t.Errorf("with a large File: %d for %d files, %v", n, files, err)
	}
}

// In a tmpfs each name of a file takes up one of the files that there can be.
func TestUsageByNames(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "names")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer os.RemoveAll(dir)
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st), os.WriteFile(filepath.Join(dir, "first"), nil, 0o600))
	if st.Type != unix.TMPFS_MAGIC || st.Files == 0 {
		t.Skip("SKIPPED: /dev/shm is not a tmpfs with a limit on files")
	}
	for i := range 300 {
		must(t, os.Link(filepath.Join(dir, "first"), filepath.Join(dir, strconv.Itoa(i))))
	}
	n, _, err := Usage(dir)
	if least := 300 * (int64(st.Blocks) * int64(st.Bsize) / int64(st.Files)); err != nil || n < least {
		t.Errorf("%d, %v; want at least %d", n, err, least)
	}
}

func TestUsageOfNothing(t *testing.T) {
	if n, _, err := Usage(filepath.Join(t.TempDir(), "nothing")); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	at := func(base string, names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	long := time.Unix(1_000_000_000, 5)
	must(t, os.MkdirAll(at(from, "d", "empty"), 0o755), os.WriteFile(at(from, "d", "f"), []byte("hello"), 0o640),
		os.Link(at(from, "d", "f"), at(from, "hard")), os.Symlink("/etc/passwd", at(from, "soft")), unix.Mkfifo(at(from, "pipe"), 0o600),
		os.WriteFile(at(from, "closed"), []byte("mine"), 0o400), os.Chmod(at(from, "closed"), 0), os.Chtimes(at(from, "d", "f"), long, long),
		unix.Setxattr(at(from, "d"), "user.overlay.opaque", []byte("y"), 0), unix.Mknod(at(from, "removed"), unix.S_IFCHR, 0), os.Chmod(at(from, "d"), 0o711))
	sparse, err := os.Create(at(from, "sparse"))
	must(t, err, sparse.Truncate(64<<20))
	_, err = sparse.WriteAt([]byte("middle"), 32<<20)
	must(t, err, sparse.Close(), os.Chtimes(at(from, "d"), long, long))

	must(t, Copy(from, to, IDs{}))
	if got, want := describe(t, to), describe(t, from); got != want {
		t.Errorf("the copy has\n%s\nand the original\n%s", got, want)
	}
	a, _, errA := Usage(from)
	b, _, errB := Usage(to)
	if a != b || errA != nil || errB != nil {
		t.Errorf("the original takes %d (%v), the copy %d (%v)", a, errA, b, errB)
	}
	if value := make([]byte, 8); true {
		if n, err := unix.Getxattr(at(to, "d"), "user.overlay.opaque", value); err != nil || string(value[:n]) != "y" {
			t.Errorf("attribute: %q, %v", value[:n], err)
		}
	}
	if err := Copy(from, to, IDs{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an existing folder: %v", err)
	}
}

// describe lists a tree with all that a copy keeps.
func describe(t *testing.T, root string) string {
	t.Helper()
	var out strings.Builder
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		link, _ := os.Readlink(path)
		fmt.Fprintf(&out, "%s %o %d %d.%d %q", rel, st.Mode, st.Rdev, st.Mtim.Sec, st.Mtim.Nsec, link)
		if !d.IsDir() {
			fmt.Fprintf(&out, " %d links, %d bytes", st.Nlink, st.Size)
		}
		out.WriteString("\n")
		return nil
	}))
	return out.String()
}

func TestCopyShiftsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can give files away; TestCopy is for them
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	must(t, os.MkdirAll(filepath.Join(from, "d"), 0o755), os.WriteFile(filepath.Join(from, "f"), nil, 0o644), os.Symlink("x", filepath.Join(from, "l")),
		os.Chown(from, 100_000, 100_000), os.Chown(filepath.Join(from, "d"), 100_005, 100_006), os.Lchown(filepath.Join(from, "l"), 100_007, 100_000), os.Chown(filepath.Join(from, "f"), 7, 7))
	must(t, Copy(from, to, IDs{From: 100_000, To: 300_000, Size: 65536}))
	for name, want := range map[string][2]uint32{"": {300_000, 300_000}, "d": {300_005, 300_006}, "l": {300_007, 300_000}, "f": {300_000, 300_000}} {
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(to, name), &st))
		if got := [2]uint32{st.Uid, st.Gid}; got != want {
			t.Errorf("%q belongs to %v, wanted %v", name, got, want)
		}
	}
}

// A folder that is moved away while it is read must not lead the reader out.
func TestMovedAway(t *testing.T) {
	dir := t.TempDir()
	top := filepath.Join(dir, "top")
	must(t, os.MkdirAll(filepath.Join(top, "a", "b", "c"), 0o755), os.WriteFile(filepath.Join(dir, "outside"), nil, 0o644))
	root, err := openRoot(top)
	must(t, err)
	defer unix.Close(root)
	err = Walk(root, Visitor{
		File: func(_ int, name string, _ *unix.Stat_t) error { t.Errorf("met %s", name); return nil },
		Enter: func(_ int, name string, _ *unix.Stat_t) error {
			if name == "c" {
				return os.Rename(filepath.Join(top, "a", "b", "c"), filepath.Join(top, "c"))
			}
			return nil
		},
	})
	if !errors.Is(err, ErrMoved) {
		t.Errorf("walking: %v", err)
	}
}
