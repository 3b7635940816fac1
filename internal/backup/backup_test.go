package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/datadir"
)

// fakeDatabase is a file, so that these tests are about the rest.
type fakeDatabase struct{ path string }

func (fakeDatabase) Kind() string { return "test" }

func (d fakeDatabase) Dump(_ context.Context, w io.Writer) (int64, error) {
	b, err := os.ReadFile(d.path)
	if err == nil {
		_, err = w.Write(b)
	}
	return 7, err
}

func (d fakeDatabase) Empty(context.Context) error {
	if _, err := os.Stat(d.path); err == nil {
		return errors.New("there is a database")
	}
	return nil
}

func (fakeDatabase) Joins(_ context.Context, installation, server string) error {
	if installation != "instance" || server != "NAME" {
		return fmt.Errorf("%s is not in %s", server, installation)
	}
	return nil
}

func (d fakeDatabase) Load(_ context.Context, schema int64, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil || schema != 7 {
		return errors.Join(err, errors.New("a wrong schema"))
	}
	return os.WriteFile(d.path, b, 0o600)
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

// data is a data directory with a database and a workspace.
func data(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{DataDir: dir, Database: fakeDatabase{filepath.Join(dir, "db")}, Version: "test"}
	put(t, filepath.Join(dir, "db"), random(1, 5<<20))
	put(t, filepath.Join(dir, "master.key"), []byte("key\n"))
	put(t, filepath.Join(dir, "server.name"), []byte("NAME"))
	put(t, filepath.Join(dir, "boxes", ".database"), []byte("instance"))
	put(t, filepath.Join(dir, "boxes", ".base", "shared"), []byte("made again"))
	put(t, filepath.Join(dir, "boxes", "one", "ws", "big"), random(2, 3<<20))
	put(t, filepath.Join(dir, "boxes", "one", "meta.json"), []byte(`{"user":65536,"pid":12,"started":"9","boot":"b","groups":["g"],"generation":3}`))
	return o
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, dir string) *Repository {
	t.Helper()
	r, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func makeBackup(t *testing.T, r *Repository, o Options) Manifest {
	t.Helper()
	r.added.Store(0)
	m, err := r.Make(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func restore(t *testing.T, r *Repository, m Manifest) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new")
	return dir, r.Restore(t.Context(), m, Target{DataDir: dir, Database: fakeDatabase{filepath.Join(dir, "db")}})
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := os.ReadFile(b); err != nil || !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ: %v", a, b, err)
	}
}

// A second backup adds only what has changed, both can be restored, and pruning removes what only
// the first one needs.
func TestIncremental(t *testing.T) {
	t.Parallel()
	o, dir := data(t), filepath.Join(t.TempDir(), "backups")
	r := create(t, dir)
	first := makeBackup(t, r, o)
	db := filepath.Join(o.DataDir, "db")
	b := random(1, 5<<20)
	copy(b[2<<20:], "changed")
	put(t, db, slices.Insert(b, 1<<20, []byte("inserted")...))
	second := makeBackup(t, r, o)
	if first.Added < 8<<20 || second.Added > 5<<20 || second.Added == 0 {
		t.Errorf("the first added %d bytes, the second %d", first.Added, second.Added)
	}
	if third := makeBackup(t, r, o); third.Added != 0 {
		t.Errorf("without a change, %d bytes were added", third.Added)
	}
	for i, m := range []Manifest{first, second} {
		to, err := restore(t, r, m)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			same(t, db, filepath.Join(to, "db"))
		}
		same(t, filepath.Join(o.DataDir, "boxes", "one", "ws", "big"), filepath.Join(to, "boxes", "one", "ws", "big"))
		same(t, filepath.Join(o.DataDir, "boxes", ".database"), filepath.Join(to, "boxes", ".database"))
		meta, _ := os.ReadFile(filepath.Join(to, "boxes", "one", "meta.json"))
		if string(meta) != `{"generation":3,"user":65536}` {
			t.Errorf("meta is %s", meta)
		}
		for _, gone := range []string{"master.key", "boxes/.base", unfinished} {
			if _, err := os.Lstat(filepath.Join(to, gone)); err == nil {
				t.Errorf("%s was restored", gone)
			}
		}
	}
	before := chunks(t, dir)
	removed, err := r.Prune(1)
	if err != nil || len(removed) != 2 || removed[0] != first.Name {
		t.Fatalf("removed %q: %v", removed, err)
	}
	if after := chunks(t, dir); after >= before || after == 0 {
		t.Errorf("%d chunks before, %d after", before, after)
	}
	if m, err := r.Find(""); err != nil || r.Verify(t.Context(), m) != nil {
		t.Errorf("%v: the last backup is not valid any more", err)
	}
}

func chunks(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		if !d.IsDir() {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The key is stored only if it is asked for, and is restored for its owner alone.
func TestKey(t *testing.T) {
	t.Parallel()
	o := data(t)
	o.Key = true
	r := create(t, t.TempDir())
	m := makeBackup(t, r, o)
	to, err := restore(t, r, m)
	if err != nil || !m.HasKey() {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(to, "master.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// A damaged or a missing chunk is found before anything is written, and a damaged manifest too.
func TestDamage(t *testing.T) {
	t.Parallel()
	o, dir := data(t), t.TempDir()
	r := create(t, dir)
	m := makeBackup(t, r, o)
	damaged := r.chunk(m.Streams[1].Chunks[0])
	b, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	put(t, damaged, b)
	to, err := restore(t, r, m)
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged chunk: %v", err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("something was written")
	}
	if _, err := r.Make(t.Context(), o); err == nil || !strings.Contains(err.Error(), "make the backup again") {
		t.Errorf("a backup on a damaged chunk: %v", err)
	}
	again := makeBackup(t, r, o)
	if _, err := restore(t, r, again); err != nil {
		t.Errorf("after it was made again: %v", err)
	}
	manifest := filepath.Join(dir, manifestDir, m.Name+suffix)
	if b, err = os.ReadFile(manifest); err != nil {
		t.Fatal(err)
	}
	put(t, manifest, bytes.Replace(b, []byte(`"version":"test"`), []byte(`"version":"tesu"`), 1))
	if _, err := r.List(); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged manifest: %v", err)
	}
	if _, err := r.Prune(1); err == nil {
		t.Error("chunks were removed although a manifest cannot be read")
	}
}

// What is no folder for backups is not used as one, and no two commands use one at once.
func TestFolders(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	put(t, filepath.Join(other, "file"), nil)
	if _, err := Create(other); err == nil || !strings.Contains(err.Error(), "contains other files") {
		t.Errorf("a folder with files: %v", err)
	}
	if _, err := Open("/missing"); err == nil || err.Error() != "the folder /missing does not exist" {
		t.Errorf("a missing folder: %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("an empty folder was opened")
	}
	dir := t.TempDir()
	r := create(t, dir)
	if _, err := Create(dir); err == nil || !strings.Contains(err.Error(), "is using") {
		t.Errorf("a second writer: %v", err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a reader beside a writer")
	}
	makeBackup(t, r, data(t))
	m, err := r.Find("")
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	put(t, filepath.Join(to, "mine"), nil)
	if err := r.Restore(t.Context(), m, Target{DataDir: to, Database: fakeDatabase{filepath.Join(to, "db")}}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a data directory with files: %v", err)
	}
}

// A restore that was killed can be repeated.
func TestRestoreAgain(t *testing.T) {
	t.Parallel()
	r := create(t, t.TempDir())
	m := makeBackup(t, r, data(t))
	dir := filepath.Join(t.TempDir(), "new")
	put(t, filepath.Join(dir, unfinished), nil)
	put(t, filepath.Join(dir, "boxes", "one", "ws", "half"), nil)
	if err := r.Restore(t.Context(), m, Target{DataDir: dir, Database: fakeDatabase{filepath.Join(dir, "db")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "boxes", "one", "ws", "half")); err == nil {
		t.Error("the half of before is still there")
	}
}

// What an unfinished backup left is removed by the next one.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	o, dir := data(t), t.TempDir()
	r := create(t, dir)
	makeBackup(t, r, o)
	whole := chunks(t, dir)
	put0600(t, filepath.Join(dir, chunkDir, "00", tempPrefix+"x"))
	put0600(t, filepath.Join(dir, manifestDir, tempPrefix+"x.json"))
	unneeded := Hash(sha256.Sum256([]byte("unneeded")))
	put0600(t, r.chunk(unneeded))
	makeBackup(t, r, o)
	if _, err := r.Prune(0); err != nil {
		t.Fatal(err)
	}
	if got := chunks(t, dir); got != whole+1 { // the second manifest
		t.Errorf("%d files, then %d", whole, got)
	}
}

func put0600(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A folder with backups from a stranger leads nowhere else: nothing is removed or written through a link, and nothing is read that
// does not end.
func TestHostileFolder(t *testing.T) {
	t.Parallel()
	o := data(t)
	elsewhere := t.TempDir()
	for name, harm := range map[string]func(dir string) error{
		"chunks": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, chunkDir)), os.Symlink(filepath.Dir(elsewhere), filepath.Join(dir, chunkDir)))
		},
		"folder of chunks": func(dir string) error { return os.Symlink(elsewhere, filepath.Join(dir, chunkDir, "zz")) },
		"manifests": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, manifestDir)), os.Symlink(elsewhere, filepath.Join(dir, manifestDir)))
		},
		"lock": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, lockFile)), os.Symlink(filepath.Join(elsewhere, "made"), filepath.Join(dir, lockFile)))
		},
	} {
		put(t, filepath.Join(elsewhere, "precious"), []byte("x"))
		put(t, filepath.Join(elsewhere, tempPrefix+"precious"), []byte("x"))
		dir := filepath.Join(t.TempDir(), "backups")
		r := create(t, dir)
		makeBackup(t, r, o)
		if err := errors.Join(r.Close(), harm(dir)); err != nil {
			t.Fatal(err)
		}
		r, err := Create(dir)
		if err == nil {
			_, err = r.Make(t.Context(), o)
			err = errors.Join(err, r.Close())
		}
		if err == nil {
			t.Errorf("a link in place of the %s is not noticed", name)
		}
		names, _ := filepath.Glob(filepath.Join(elsewhere, "*recious"))
		if made, _ := filepath.Glob(filepath.Join(elsewhere, "made")); len(names) != 2 || len(made) > 0 {
			t.Errorf("a link in place of the %s was followed: %v %v", name, names, made)
		}
	}

	dir := filepath.Join(t.TempDir(), "backups")
	r := create(t, dir)
	m := makeBackup(t, r, o)
	chunk := r.chunk(m.Streams[0].Chunks[0])
	for name, replace := range map[string]func() error{
		"a pipe": func() error { return syscall.Mkfifo(chunk, 0o600) },
		"a link": func() error { return os.Symlink("/dev/zero", chunk) },
		"a huge file": func() error {
			return errors.Join(os.WriteFile(chunk, nil, 0o600), os.Truncate(chunk, 1<<40))
		},
	} {
		if err := errors.Join(os.RemoveAll(chunk), replace()); err != nil {
			t.Fatal(err)
		}
		if err := r.Verify(t.Context(), m); err == nil || !strings.Contains(err.Error(), "not a file") {
			t.Errorf("%s in place of a chunk: %v", name, err)
		}
	}
	m.Database = "\x1b]0;owned\a"
	if err := r.commit(m); err != nil {
		t.Fatal(err)
	}
	if _, err := r.List(); err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("a manifest that controls the terminal: %v", err)
	}
}

// A backup of root is recorded for the user of the server, even if root created the file.
func TestRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner := os.Geteuid()
	if owner == 0 {
		owner = 65534
	}
	file := filepath.Join(dir, recordFile)
	if err := errors.Join(os.Chown(dir, owner, -1), os.WriteFile(file, nil, 0o600), os.Chtimes(file, time.Time{}, time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	if err := Record(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; int(uid) != owner || info.ModTime().Unix() == 1 {
		t.Errorf("the file belongs to %d, wanted %d, and is of %v", uid, owner, info.ModTime())
	}
}

// A server does not start where a restore has not finished, and the last moment of a restore can be repeated by hand.
func TestNoServerDuringARestore(t *testing.T) {
	t.Parallel()
	r := create(t, filepath.Join(t.TempDir(), "backups"))
	m := makeBackup(t, r, data(t))
	dir := t.TempDir()
	db := fakeDatabase{filepath.Join(t.TempDir(), "db")}
	put(t, filepath.Join(dir, unfinished), nil)
	if _, err := datadir.Lock(dir); err == nil || !strings.Contains(err.Error(), "deckhand restore") {
		t.Errorf("a server starts: %v", err)
	}
	put(t, db.path, []byte("restored"))
	if err := r.Restore(t.Context(), m, Target{DataDir: dir, Database: db}); err == nil || !strings.Contains(err.Error(), "delete "+filepath.Join(dir, unfinished)) {
		t.Errorf("a restore over its own database: %v", err)
	}
	if err := os.Remove(db.path); err != nil {
		t.Fatal(err)
	}
	if err := r.Restore(t.Context(), m, Target{DataDir: dir, Database: db}); err != nil {
		t.Fatal(err)
	}
	unlock, err := datadir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// The workspaces of a server are restored with its name while other servers use the database.
func TestWorkspacesOnly(t *testing.T) {
	t.Parallel()
	o := data(t)
	r := create(t, filepath.Join(t.TempDir(), "backups"))
	m := makeBackup(t, r, o)
	target := Target{DataDir: filepath.Join(t.TempDir(), "new"), Database: o.Database, WorkspacesOnly: true}
	if err := r.Restore(t.Context(), m, target); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server.name", "boxes/.database", "boxes/one/ws/big"} {
		same(t, filepath.Join(o.DataDir, name), filepath.Join(target.DataDir, name))
	}
	if _, err := os.Stat(filepath.Join(target.DataDir, "db")); err == nil {
		t.Error("the database was restored")
	}
	put(t, filepath.Join(o.DataDir, "boxes", ".database"), []byte("another"))
	target.DataDir = filepath.Join(t.TempDir(), "other")
	if err := r.Restore(t.Context(), makeBackup(t, r, o), target); err == nil || !strings.Contains(err.Error(), "NAME is not in another") {
		t.Errorf("a backup of another installation: %v", err)
	}
	if err := os.Remove(filepath.Join(o.DataDir, "server.name")); err != nil {
		t.Fatal(err)
	}
	if err := r.Restore(t.Context(), makeBackup(t, r, o), target); err == nil || !strings.Contains(err.Error(), "older version") {
		t.Errorf("a backup without a name: %v", err)
	}
}
