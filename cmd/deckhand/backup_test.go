package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/soak"
	"deckhand/internal/store/postgres/pgtest"
)

// worker keeps a conversation working.
type worker struct {
	id string
	mu sync.Mutex
	// done is how many lines the agent has written, as far as it was said so.
	done int
}

func (w *worker) lines() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// work lets the agent write line after line until ctx ends. Each is a turn of its own.
func (w *worker) work(ctx context.Context, b *box) error {
	last := int64(0)
	for i := 1; ; i++ {
		for it, err := range b.client.FollowLegacy(ctx, w.id, last) {
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			if last = max(last, it.ID); agentIs("awaiting_user_input")(it) {
				break
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		w.mu.Lock()
		w.done = i
		w.mu.Unlock()
		if err := b.client.Say(ctx, w.id, fmt.Sprintf("$ echo %d >> lines.txt", i+1), ""); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// workers starts conversations that work until stop is called.
func workers(t *testing.T, b *box, n int) (all []*worker, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for range n {
		w := &worker{id: b.create("$ echo 1 >> lines.txt")}
		all = append(all, w)
		wait.Go(func() {
			if err := w.work(ctx, b); err != nil {
				t.Errorf("conversation %s: %v", w.id, err)
			}
		})
	}
	return all, func() { cancel(); wait.Wait() }
}

// reach waits until each conversation has written so many more lines.
func reach(t *testing.T, all []*worker, more int) []int {
	t.Helper()
	var want []int
	for _, w := range all {
		want = append(want, w.lines()+more)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i < len(all); {
		if all[i].lines() >= want[i] {
			i++
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("conversation %s has written %d lines, wanted %d", all[i].id, all[i].lines(), want[i])
		}
	}
	return want
}

// Conversations work while backups are made, one of which is killed. A backup is restored into another data directory and another
// database; every conversation there is that of the original up to the backup, and works on.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts servers as processes")
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		backupUnderLoad(t, nil, nil)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		pgtest.Available(t)
		server, err := pgtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Stop() })
		backupUnderLoad(t, []string{"--database-url", server.Database(t)}, []string{"--database-url", server.Database(t)})
	})
}

func backupUnderLoad(t *testing.T, from, to []string) {
	driver := bestDriver(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // users of sandboxes pass through
		t.Fatal(err)
	}
	b, _ := spawn(t, dir, append(withSandbox(t, driver), from...)...)
	b.demo("scripted/demo")
	t.Cleanup((&person{box: b}).dropAll)
	all, stop := workers(t, b, 3)
	defer stop()
	reach(t, all, 1)

	folder := filepath.Join(t.TempDir(), "backups")
	create := append([]string{"backup", folder, "--data-dir", dir}, from...)
	killBackup(t, folder, create)
	succeeds(t, create...)
	before := reach(t, all, 1)
	if out := succeeds(t, create...); !strings.Contains(out, "verified") || !strings.Contains(out, "master key is not included") {
		t.Errorf("it printed %s", out)
	}
	info, err := os.Stat(filepath.Join(dir, "last-backup"))
	if err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("the backup is not recorded: %v %v", info, err)
	}
	reach(t, all, 1) // which is not in the backup
	stop()

	fresh := filepath.Join(t.TempDir(), "restored")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		t.Fatal(err)
	}
	if out := succeeds(t, append([]string{"restore", folder, "--data-dir", fresh}, to...)...); !strings.Contains(out, "master key") {
		t.Errorf("it printed %s", out)
	}
	if code, _, errs := command(t, append([]string{"restore", folder, "--data-dir", fresh}, to...)...); code == 0 || !strings.Contains(errs, "use") {
		t.Errorf("a second restore into the same place: %d %s", code, errs)
	}
	for _, key := range []string{"master.key", "admin.key"} {
		text, err := os.ReadFile(filepath.Join(dir, key))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(fresh, key), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compareRestored(t, b, fresh, all, before, append(withSandbox(t, driver), to...))
}

// succeeds runs a command that may print its progress.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := command(t, args...)
	if code != 0 {
		t.Fatalf("%q: %d %s", args, code, errs)
	}
	return out
}

// killBackup starts a backup and kills it as soon as it has stored something.
func killBackup(t *testing.T, folder string, args []string) {
	t.Helper()
	cmd := process(args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	for begun := false; !begun; <-tick.C {
		stored, _ := filepath.Glob(filepath.Join(folder, "chunks", "*", "*"))
		begun = len(stored) > 0 || syscall.Kill(cmd.Process.Pid, 0) != nil
	}
	_ = cmd.Process.Kill()
	err := cmd.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		t.Logf("the backup was quicker than its end: %v", err)
	}
}

// compareRestored starts a server on the restored data and compares every conversation with the original.
func compareRestored(t *testing.T, b *box, fresh string, all []*worker, before []int, args []string) {
	t.Helper()
	r, _ := spawn(t, fresh, args...)
	old, restored := &person{box: b}, &person{box: r}
	t.Cleanup(restored.dropAll)
	for i, w := range all {
		had := old.events(w.id)
		// The restored server goes on where the backup was made, and waits then.
		r.follow(w.id, 0, agentIs("awaiting_user_input"))
		has := restored.events(w.id)
		same := 0
		for same < min(len(had), len(has)) && string(had[same].Raw) == string(has[same].Raw) {
			same++
		}
		said := strings.Count(describe(had[:same]), `echo `)
		if said < before[i] {
			t.Errorf("conversation %s is the same for %d events only, with %d commands of at least %d:\n%s\ninstead of:\n%s", w.id, same, said, before[i], describe(has[same:]), describe(had[same:]))
		}
		if !inOrder(has) {
			t.Errorf("conversation %s has gaps", w.id)
		}
		lines, err := os.ReadFile(filepath.Join(fresh, "boxes", w.id, "ws", "lines.txt"))
		if n := strings.Count(string(lines), "\n"); err != nil || n < before[i] {
			t.Errorf("the workspace of %s has %d lines of at least %d: %v", w.id, n, before[i], err)
		}
		seen := restored.ask(w.id, "$ echo ahoy >> lines.txt; tail -n 1 lines.txt", "awaiting_user_input")
		if !strings.Contains(observed(t, seen, "run"), "ahoy") {
			t.Errorf("conversation %s does not work on:\n%s", w.id, describe(seen))
		}
	}
}

// A missing data directory is named, whatever the database is.
func TestBackupWithoutDataDirectory(t *testing.T) {
	t.Parallel()
	nope := filepath.Join(t.TempDir(), "nope")
	for _, more := range [][]string{nil, {"--database-url", "postgres://deckhand@127.0.0.1:1/deckhand"}} {
		code, _, errs := command(t, append([]string{"backup", t.TempDir(), "--data-dir", nope}, more...)...)
		if code != 1 || !strings.Contains(errs, "the data directory "+nope+" does not exist") {
			t.Errorf("%v: %d %s", more, code, errs)
		}
	}
}
