package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/store/sqlite/reserve"
)

// On a full disk, messages can be recorded for a while, then ends and nothing else. With space,
// everything can.
func TestReserve(t *testing.T) {
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0, "size=16m")
	path := filepath.Join(dir, "deckhand.db")
	open := func() *DB {
		db, err := Open(t.Context(), path, Options{Reserve: 1 << 20})
		must(t, err)
		return db
	}
	db := open()
	defer func() { must(t, db.Close()) }()
	first := newSession()
	must(t, db.Append(t.Context(), first))
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	must(t, err)
	must(t, db.Healthy())
	for low := false; err == nil; { // it is said before a write fails
		_, err = f.Write(make([]byte, 4096))
		if free, _, _ := reserve.Space(dir); free < 1<<20 && !low {
			low = true
			if err := db.Healthy(); !errors.Is(err, errLow) {
				t.Errorf("healthy with %d bytes left: %v", free, err)
			}
		}
	}
	must(t, f.Close())
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	n := int64(2)
	for err = nil; err == nil && n < 1000; {
		said := batch(first, n, 1)
		said.Events[0].Payload = session.UserSaid{Text: strings.Repeat("x", 200_000)}
		if err = db.Append(t.Context(), said); err == nil {
			n++
		}
	}
	if !errors.Is(err, ErrFull) || n < 6 {
		t.Fatalf("after %d messages on a full disk: %v", n-2, err)
	}
	if info, err := os.Stat(path + "-reserve"); err != nil || info.Size() != 1<<20 {
		t.Errorf("the reserve was used: %v, %v", info, err)
	}
	note := batch(first, n, 1)
	note.Events[0].Payload = session.Noted{Message: strings.Repeat("x", 200_000)}
	must(t, db.Append(t.Context(), note))
	n++
	said := batch(first, n, 1)
	said.Events[0].Payload = session.UserSaid{Text: "small"}
	if err := db.Append(t.Context(), said); !errors.Is(err, ErrFull) {
		t.Errorf("the reserve is used for a message: %v", err)
	}
	if err := db.Healthy(); !errors.Is(err, ErrFull) {
		t.Errorf("healthy: %v", err)
	}
	// Results may use most of it, and leave enough for a stop.
	for _, size := range []int{100_000, 1} { // the small ones use what a large one has left
		for err = nil; err == nil && n < 1000; {
			result := batch(first, n, 1)
			result.Events[0].Payload = session.ToolReturned{Output: strings.Repeat("x", size)}
			if err = db.Append(t.Context(), result); err == nil {
				n++
			}
		}
		if !errors.Is(err, ErrFull) {
			t.Fatalf("after %d results: %v", n, err)
		}
	}
	stopped := batch(first, n, 2) // with a command that a person typed
	stopped.Events[0].Payload, stopped.Events[1].Payload = session.CommandEnded{Cause: 2}, session.Stopped{}
	must(t, db.Append(t.Context(), stopped))
	must(t, db.Close())

	db = open() // a server that is started on the full disk
	deleted := batch(first, n+2, 1)
	deleted.Events[0].Payload = session.Deleted{}
	must(t, db.Append(t.Context(), deleted))
	must(t, os.Remove(filler))
	must(t, db.Append(t.Context(), newSession()))
	must(t, db.Healthy())
	if info, err := os.Stat(path + "-reserve"); err != nil || info.Size() != 1<<20 {
		t.Errorf("the reserve was not made again: %v, %v", info, err)
	}
}
