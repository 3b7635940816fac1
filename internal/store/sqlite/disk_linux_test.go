package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/session/logtest"
)

// A full disk refuses writes and nothing else; with space everything goes on.
func TestFull(t *testing.T) {
	t.Run("pages", func(t *testing.T) { // SQLite's own limit stands for a disk's, on any machine
		db := openNew(t)
		limit := func(pages int64) {
			must(t, db.write(t.Context(), 0, func(c *conn) error {
				return c.query(fmt.Sprintf("PRAGMA max_page_count = %d", pages), func([]driver.Value) error { return nil })
			}))
		}
		full(t, db, func() { limit(1) }, func() { limit(1 << 30) })
	})
	t.Run("disk", func(t *testing.T) {
		dir := t.TempDir()
		mount(t, "tmpfs", dir, "tmpfs", 0, "size=2m")
		db := openAt(t, filepath.Join(dir, "deckhand.db"))
		filler := filepath.Join(dir, "filler")
		full(t, db, func() {
			f, err := os.Create(filler)
			must(t, err)
			defer f.Close()
			for err == nil {
				_, err = f.Write(make([]byte, 4096))
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
		}, func() { must(t, os.Remove(filler)) })
	})
}

func full(t *testing.T, db *DB, fill, drain func()) {
	first := newSession()
	must(t, db.Append(t.Context(), first))
	fill()
	big := batch(first, 2, 1)
	big.Events[0].Payload = session.UserSaid{Text: strings.Repeat("x", 200_000)}
	for range 3 {
		err := db.Append(t.Context(), big)
		if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "disk is full") {
			t.Fatalf("got %v, want ErrFull", err)
		}
		if err := db.Healthy(); !errors.Is(err, ErrFull) {
			t.Errorf("healthy: %v, want ErrFull", err)
		}
	}
	verify(t, db, first.ID, 0, 2)
	must(t, db.Ping(t.Context()))
	drain()
	must(t, db.Append(t.Context(), big))
	must(t, db.Append(t.Context(), newSession()))
	must(t, db.Healthy())
	verify(t, db, first.ID, 0, 3)
	must(t, quickCheck(db))
}

// mount is undone at the end of the test. Without the right to mount, the test
// is skipped, loudly.
func mount(t *testing.T, source, target, kind string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount(source, target, kind, flags, options); err != nil {
		t.Skipf("NOT TESTED on a real disk: mounting needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// A file on a read-only disk can be read, however its last owner left it.
func TestReadOnlyDisk(t *testing.T) {
	first := newSession()
	for name, leave := range map[string]func(t *testing.T, dir string){
		"closed": func(t *testing.T, dir string) {
			db := openAt(t, filepath.Join(dir, "deckhand.db"))
			must(t, db.Append(t.Context(), first))
			must(t, db.Close())
		},
		"killed": func(t *testing.T, dir string) {
			db := openNew(t)
			must(t, db.Append(t.Context(), first))
			for _, suffix := range []string{"", "-wal", "-shm"} {
				data, err := os.ReadFile(db.path + suffix)
				must(t, err)
				must(t, os.WriteFile(filepath.Join(dir, "deckhand.db"+suffix), data, 0o600))
			}
		},
		"in use": func(t *testing.T, dir string) {
			must(t, openAt(t, filepath.Join(dir, "deckhand.db")).Append(t.Context(), first))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, frozen := t.TempDir(), t.TempDir()
			leave(t, dir)
			mount(t, dir, frozen, "", syscall.MS_BIND, "")
			must(t, syscall.Mount("", frozen, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
			db := openAt(t, filepath.Join(frozen, "deckhand.db"))
			if !db.ReadOnly() {
				t.Error("the database does not say that it is read-only")
			}
			readOnly(t, db, first)
		})
	}
}

func readOnly(t *testing.T, db *DB, first session.Batch) {
	t.Helper()
	must(t, db.Ping(t.Context()))
	verify(t, db, first.ID, 0, 2)
	rows, err := db.Rows(t.Context(), session.Query{Owner: "maria", Limit: 10})
	must(t, err)
	if len(rows) != 1 {
		t.Errorf("%d rows, want 1", len(rows))
	}
	if err := db.Append(t.Context(), newSession()); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("append: got %v, want ErrReadOnly", err)
	}
	if err := db.Healthy(); !errors.Is(err, ErrReadOnly) {
		t.Errorf("healthy: got %v, want ErrReadOnly", err)
	}
}

// A log that cannot be read without writing is not silently left out.
func TestReadOnlyNeedsRecovery(t *testing.T) {
	source := openNew(t)
	must(t, source.Append(t.Context(), newSession()))
	dir, frozen := t.TempDir(), t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(source.path + suffix)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "deckhand.db"+suffix), data, 0o600))
	}
	mount(t, dir, frozen, "", syscall.MS_BIND, "")
	must(t, syscall.Mount("", frozen, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	if db, err := Open(t.Context(), filepath.Join(frozen, "deckhand.db"), Options{}); err == nil {
		if ids := logtest.Wanting(t, db, nil, 10); len(ids) != 1 {
			t.Errorf("opened without what is in the write-ahead log: %v", ids)
		}
		must(t, db.Close())
	}
}

// The disk fails under a running server: the file system's answer to that is to
// become read-only.
func TestDiskFails(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(t.TempDir(), "disk")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 16<<20))
	for _, command := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("NOT TESTED on a real disk: %s: %v: %s", strings.Join(command, " "), err, out)
		}
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	db, err := Open(t.Context(), filepath.Join(dir, "deckhand.db"), Options{})
	must(t, err)
	defer db.Close()
	first := newSession()
	must(t, db.Append(t.Context(), first))
	if out, err := exec.Command("mount", "-o", "remount,abort", dir).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED on a real disk: %v: %s", err, out)
	}
	readOnly(t, db, first)
}

// The same on any machine, and the disk can be written again: a server that
// gets no work, because it says that it cannot work, notices that.
func TestBecomesReadOnly(t *testing.T) {
	db := openNew(t)
	first := newSession()
	must(t, db.Append(t.Context(), first))
	freeze := func(on string) { // the writer is idle, so its connection may be used here
		must(t, db.writer.conn.query("PRAGMA query_only = "+on, func([]driver.Value) error { return nil }))
	}
	freeze("on")
	readOnly(t, db, first)
	if db.ReadOnly() {
		t.Error("ReadOnly is about how the file was opened")
	}
	settle := func() { // the probe's turn has come when its successor's has
		_ = db.write(t.Context(), 0, func(*conn) error { return refuse(nil) })
	}
	settle()
	freeze("off")
	_ = db.Healthy()
	settle()
	must(t, db.Healthy())
	must(t, db.Append(t.Context(), newSession()))
}

// Where there is nothing and nothing can be made, the error says so.
func TestCannotCreate(t *testing.T) {
	if db, err := Open(t.Context(), filepath.Join(t.TempDir(), "no", "such", "folder", "deckhand.db"), Options{}); err == nil {
		_ = db.Close()
		t.Error("a file in a folder that does not exist was opened")
	}
}
