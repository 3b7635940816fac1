package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/soak"
)

// The test binary runs itself as a child that appends and says so, line by
// line, after each append was answered. childAppends bounds it to one session
// and that many appends; otherwise it goes on until it is killed.
const (
	childPath    = "DECKHAND_SQLITE_CHILD"
	childAppends = "DECKHAND_SQLITE_APPENDS"
	childClaims  = "DECKHAND_SQLITE_CLAIMS" // it claims what is due, says so and waits
)

// childSessions is how many sessions it appends to at once.
const childSessions = 6

func child(path string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	db, err := Open(context.Background(), path, Options{})
	if err != nil {
		fail(err)
	}
	db.UseChain([32]byte{1}, 0)
	if n := os.Getenv(childAppends); n != "" {
		count := 0
		fmt.Sscan(n, &count)
		if err := childLoop(db, "s0", count); err != nil {
			fail(err)
		}
		return // without Close: a fsync must have been made before, not now
	}
	if os.Getenv(childClaims) != "" {
		if err := childClaim(db); err != nil {
			fail(err)
		}
		select {}
	}
	failed := make(chan error)
	for i := range childSessions {
		go func() { failed <- childLoop(db, session.ID(fmt.Sprint("s", i)), -1) }()
	}
	fail(<-failed)
}

func childLoop(db *DB, id session.ID, count int) error {
	ctx := context.Background()
	row, err := db.Row(ctx, id)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	first := newSession()
	first.ID, first.Row.ID = id, id
	for last := row.Last; count != 0; count-- {
		b := first
		if last > 0 {
			b = batch(first, last, 1+int(last)%3)
		}
		if err = db.Append(ctx, b); err != nil {
			return err
		}
		last = b.Row.Last
		if _, err := fmt.Fprintf(os.Stdout, "ack %s %d\n", id, last); err != nil {
			return err
		}
	}
	return nil
}

// A process that is killed at any moment loses nothing that it had answered.
func TestKill(t *testing.T) {
	rounds := soak.Times(10, 100)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "deckhand.db")
	acked, checked := map[session.ID]int64{}, map[session.ID]int64{}
	acks := 0
	for round := range rounds {
		acks += killAfter(t, path, random.IntN(120), acked)
		db, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for id, last := range acked {
			checked[id] = verify(t, db, id, checked[id], last)
		}
		must(t, db.Close())
	}
	db := openAt(t, path)
	must(t, quickCheck(db))
	total := int64(0)
	for id, last := range acked {
		total += verify(t, db, id, 0, last)
	}
	t.Logf("%d events after %d acknowledged appends and %d kills", total, acks, rounds)
}

// killAfter runs the child until it has said so many lines, kills it, and notes
// everything it has said.
func killAfter(t *testing.T, path string, lines int, acked map[session.ID]int64) (n int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if lines == 0 { // perhaps while it opens the file
		must(t, cmd.Process.Kill())
	}
	for scan := bufio.NewScanner(out); scan.Scan(); {
		var id session.ID
		var last int64
		if _, err := fmt.Sscanf(scan.Text(), "ack %s %d", &id, &last); err != nil {
			continue // cut off by the kill
		}
		acked[id] = max(acked[id], last)
		if n++; n == lines {
			must(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || n < lines {
		t.Fatalf("the child ended by itself after %d lines: %v", n, err)
	}
	return n
}

// verify reads a session from a number on and returns its end.
func verify(t *testing.T, db *DB, id session.ID, from, acked int64) int64 {
	t.Helper()
	at := from
	for e, err := range db.Read(t.Context(), id, from) {
		must(t, err)
		if e.Number != at+1 {
			t.Fatalf("session %s: event %d follows event %d", id, e.Number, at)
		}
		at = e.Number
	}
	row, err := db.Row(t.Context(), id)
	must(t, err)
	if at < acked || row.Last != at {
		t.Fatalf("session %s: event %d was acknowledged, the log ends at %d and the row says %d", id, acked, at, row.Last)
	}
	return at
}

// Every answer is preceded by a fsync of its own when they are given one by one.
func TestFsync(t *testing.T) {
	const appends = 50
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("strace is needed to see that data reaches the disk before the answer: install it")
		}
		t.Skip("NOT TESTED: that data reaches the disk before the answer. Install strace")
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	cmd := exec.Command(strace, "-f", "-qq", "-s", "16", "-e", "trace=fsync,fdatasync,write", "-o", trace, os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+filepath.Join(dir, "deckhand.db"), childAppends+"="+fmt.Sprint(appends))
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "ack ") != appends {
		if strings.Contains(string(out), "ptrace") && os.Getenv("CI") != "true" {
			t.Skipf("NOT TESTED: that data reaches the disk before the answer. strace may not trace here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(trace)
	must(t, err)
	defer f.Close()
	acks, syncs, since := 0, 0, 0
	for scan := bufio.NewScanner(f); scan.Scan(); {
		line := scan.Text()
		switch {
		case strings.Contains(line, "sync") && strings.HasSuffix(line, "= 0"): // at once, or "resumed"
			syncs++
			since++
		case strings.Contains(line, `write(1, "ack `):
			acks++
			if since == 0 {
				t.Errorf("answer %d was given without a fsync before it", acks)
			}
			since = 0
		}
	}
	if acks != appends || syncs < appends {
		t.Errorf("%d answers and %d fsyncs, want %d answers and at least as many fsyncs", acks, syncs, appends)
	}
	t.Logf("%d answers, %d fsyncs", acks, syncs)
}
