package backup

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A tree with everything that a workspace may have comes back the same.
func TestTree(t *testing.T) {
	t.Parallel()
	from := filepath.Join(t.TempDir(), "tree")
	put(t, filepath.Join(from, "a", "file"), []byte("content"))
	put(t, filepath.Join(from, "a", "\xff\xfe name"), []byte("not UTF-8"))
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Link(filepath.Join(from, "a", "file"), filepath.Join(from, "z-again")))
	check(os.Symlink("/etc/passwd", filepath.Join(from, "out")))
	check(os.Symlink("nowhere", filepath.Join(from, "dangling")))
	check(unix.Mkfifo(filepath.Join(from, "pipe"), 0o640))
	check(os.Mkdir(filepath.Join(from, "empty"), 0o710))
	sparse, err := os.Create(filepath.Join(from, "sparse"))
	check(err)
	_, err = sparse.WriteAt([]byte("far"), 512<<20)
	check(err)
	check(sparse.Close())
	check(unix.Setxattr(filepath.Join(from, "a", "file"), "user.note", []byte("x\x00y"), 0))
	check(unix.Setxattr(filepath.Join(from, "a"), "user.folder", []byte("z"), 0))
	check(unix.Chmod(filepath.Join(from, "a", "file"), 0o4751))
	if os.Geteuid() == 0 {
		check(os.Lchown(filepath.Join(from, "a", "file"), 70001, 70002))
		check(unix.Chmod(filepath.Join(from, "a", "file"), 0o4751))
		check(os.Lchown(filepath.Join(from, "out"), 70003, 70003))
		check(unix.Mknod(filepath.Join(from, "removed"), unix.S_IFCHR, 0))
	}
	check(os.Chmod(from, 0o750))
	old := time.Unix(1_700_000_000, 123)
	check(os.Chtimes(filepath.Join(from, "a"), old, old))
	var stream bytes.Buffer
	check(pack(from, &stream))
	if stream.Len() > 1<<20 {
		t.Errorf("the stream has %d bytes: holes were filled", stream.Len())
	}
	to := filepath.Join(t.TempDir(), "tree")
	want, err := unpack(bytes.NewReader(stream.Bytes()), to)
	check(err)
	got, err := printOf(to)
	check(err)
	original, err := printOf(from)
	check(err)
	if got != want || got != original {
		t.Errorf("the prints are %v, %v and %v", original, want, got)
	}
	var a, b, c syscall.Stat_t
	check(syscall.Lstat(filepath.Join(to, "a", "file"), &a))
	check(syscall.Lstat(filepath.Join(to, "z-again"), &b))
	check(syscall.Lstat(filepath.Join(to, "sparse"), &c))
	if a.Ino != b.Ino || a.Mode&0o7777 != 0o4751 || os.Geteuid() == 0 && (a.Uid != 70001 || a.Gid != 70002) || c.Blocks > 1<<12 {
		t.Errorf("%+v, %+v, %+v", a, b, c)
	}
	info, err := os.Stat(filepath.Join(to, "a"))
	check(err)
	if !info.ModTime().Equal(old) {
		t.Errorf("the folder was changed at %v", info.ModTime())
	}
	if _, err := os.Lstat(to + ".links"); err == nil {
		t.Error("a folder was left behind")
	}
	put(t, filepath.Join(to, "dangling2"), nil)
	if changed, _ := printOf(to); changed == want {
		t.Error("a new file does not change the print")
	}
}

// Entries that lead out of the tree are refused, and nothing is written outside.
func TestHostileTrees(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	name := func(s string) []byte { return []byte(s) }
	root := entry{Op: opEnter, Name: name("workspace"), Mode: 0o755}
	leave := entry{Op: opLeave}
	link := entry{Op: opLink, Name: name("out"), Target: name(outside)}
	for what, entries := range map[string][]entry{
		"a path":              {root, {Op: opFile, Name: name("../x")}, leave},
		"the folder above":    {root, {Op: opEnter, Name: name("..")}, leave, leave},
		"an absolute path":    {root, {Op: opFile, Name: name("/tmp/x")}, leave},
		"no name":             {root, {Op: opFile}, leave},
		"a zero byte":         {root, {Op: opFile, Name: name("x\x00y")}, leave},
		"through a link":      {root, link, {Op: opEnter, Name: name("out")}, {Op: opFile, Name: name("x")}, leave, leave},
		"a file on a link":    {root, link, {Op: opFile, Name: name("out")}, leave},
		"twice":               {root, {Op: opFile, Name: name("x")}, {Op: opFile, Name: name("x")}, leave},
		"an unknown link":     {root, {Op: opAgain, Name: name("x"), Link: 3}, leave},
		"a device":            {root, {Op: "device", Name: name("x")}, leave},
		"odd modes":           {root, {Op: opFile, Name: name("x"), Mode: unix.S_IFCHR | 0o666}, leave},
		"odd extents":         {root, {Op: opFile, Name: name("x"), Size: 4, Extents: [][2]int64{{2, 8}}}, leave},
		"negative extents":    {root, {Op: opFile, Name: name("x"), Size: 4, Extents: [][2]int64{{0, 2}, {1, 1}}}, leave},
		"trusted attributes":  {root, {Op: opFile, Name: name("x"), Attributes: map[string][]byte{"security.capability": name("x")}}, leave},
		"more after the end":  {root, leave, {Op: opFile, Name: name("x")}},
		"no folder":           {{Op: opFile, Name: name("x")}},
		"an unfinished tree":  {root, {Op: opEnter, Name: name("x")}},
		"only the end":        {leave},
		"a link that is long": {root, {Op: opLink, Name: name("x"), Target: name("a\x00b")}, leave},
	} {
		var stream bytes.Buffer
		for _, e := range entries {
			if err := e.write(&stream); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := unpack(&stream, filepath.Join(t.TempDir(), "tree")); err == nil {
			t.Errorf("%s was not refused", what)
		}
	}
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Errorf("files outside: %v", names)
	}
	var stream bytes.Buffer
	for _, e := range []entry{root, {Op: opFile, Name: name("x"), Mode: 0o4755}, leave} {
		_ = e.write(&stream)
	}
	to := filepath.Join(t.TempDir(), "tree")
	if _, err := unpack(&stream, to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(to, "x")); err != nil || os.Geteuid() == 0 && info.Mode()&os.ModeSetuid != 0 {
		t.Errorf("a program that runs as root was restored: %v %v", info, err)
	}
}

// A manifest with names of workspaces that lead elsewhere is refused.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	r := create(t, t.TempDir())
	m := makeBackup(t, r, data(t))
	for _, bad := range []string{"..", "../x", "/x", ".base", ""} {
		for i := range m.Streams {
			if m.Streams[i].Kind == kindWorkspace {
				m.Streams[i].Name = bad
			}
		}
		if _, err := restore(t, r, m); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%q: %v", base64.StdEncoding.EncodeToString([]byte(bad)), err)
		}
	}
}
