package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/hex"
	"os"
	"runtime"
	"testing"
	"time"

	"deckhand/internal/session"
)

// fill stores a session with a log of many bytes.
func fill(t *testing.T, db *DB, size int) session.Batch {
	t.Helper()
	b := listedSession(db.NewID(), 1, noon)
	must(t, db.Append(t.Context(), b))
	for stored := 0; stored < size; stored += 1 << 20 {
		text := make([]byte, 512<<10)
		_, _ = rand.Read(text)
		b.After, b.Row.Last = b.Row.Last, b.Row.Last+1
		b.Events = []session.Event{{Number: b.Row.Last, At: noon, Payload: session.ToolReturned{Output: hex.EncodeToString(text)}}}
		must(t, db.Append(t.Context(), b))
	}
	return b
}

func remove(t *testing.T, db *DB, b session.Batch) {
	t.Helper()
	b.After, b.Row.Last, b.Row.Deleted = b.Row.Last, b.Row.Last+1, true
	b.Events = []session.Event{{Number: b.Row.Last, At: noon, Payload: session.Deleted{}}}
	must(t, db.Append(t.Context(), b))
}

// size is how large the file is, with all that was written.
func size(t *testing.T, db *DB) int64 {
	t.Helper()
	must(t, db.write(t.Context(), 0, func(*conn) error { return nil }))
	c, err := connect(t.Context(), dsn(db.path, nil))
	must(t, err)
	defer c.close()
	for busy := int64(1); busy != 0; runtime.Gosched() { // with the database's own checkpoint
		must(t, c.query("PRAGMA wal_checkpoint(TRUNCATE)", func(v []driver.Value) error { busy = number(v[0]); return nil }))
	}
	info, err := os.Stat(db.path)
	must(t, err)
	return info.Size()
}

// A database becomes smaller when conversations were deleted, and keeps the others.
func TestDeletedConversationsFreeDiskSpace(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first, kept := fill(t, db, 40<<20), fill(t, db, 2<<20)
	before := size(t, db)
	if before < 40<<20 {
		t.Fatalf("it has only %d bytes", before)
	}
	remove(t, db, first)
	must(t, db.Tend(t.Context(), noon.Add(-time.Hour)))
	if after := size(t, db); after > 10<<20 {
		t.Errorf("it has %d bytes after %d", after, before)
	}
	n := 0
	for e, err := range db.Read(t.Context(), kept.ID, 0) {
		must(t, err)
		if r, ok := e.Payload.(session.ToolReturned); ok && len(r.Output) == 1<<20 {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d of 2 events of the other conversation are left", n)
	}
}

// A file from before keeps its size, and becomes smaller after the command that docs/backup.md names.
func TestOldFilesCanBeShrunk(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/old.db"
	c, err := connect(t.Context(), dsn(path, nil), "journal_mode = wal")
	must(t, err)
	_, err = c.exec("CREATE TABLE other (n INTEGER)")
	must(t, err)
	must(t, c.close())
	db, err := Open(t.Context(), path, Options{})
	must(t, err)
	remove(t, db, fill(t, db, 40<<20))
	must(t, db.Tend(t.Context(), noon.Add(-time.Hour)))
	if after := size(t, db); after < 40<<20 {
		t.Errorf("it has %d bytes, though nothing could free them", after)
	}
	must(t, db.Close())
	command, err := os.ReadFile("../../../docs/backup.md")
	must(t, err)
	const vacuum = "PRAGMA auto_vacuum = INCREMENTAL; VACUUM"
	if !bytes.Contains(command, []byte(vacuum)) {
		t.Error("docs/backup.md does not name the command")
	}
	c, err = connect(t.Context(), dsn(path, nil))
	must(t, err)
	_, err = c.exec(vacuum)
	must(t, err)
	must(t, c.close())
	db, err = Open(context.Background(), path, Options{})
	must(t, err)
	defer db.Close()
	if after := size(t, db); after > 1<<20 {
		t.Errorf("it has %d bytes after the command", after)
	}
	remove(t, db, fill(t, db, 40<<20))
	must(t, db.Tend(t.Context(), noon.Add(-time.Hour)))
	if after := size(t, db); after > 10<<20 {
		t.Errorf("it has %d bytes after a deletion", after)
	}
}
