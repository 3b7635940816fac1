package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/soak"
)

// smallDisk is a disk of its own for a data dir.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,mode=700"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("a disk cannot be mounted for this test: %v", err)
		}
		t.Skipf("NOT TESTED: a full disk, because mounting one needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// A full disk refuses changes in words, reads go on, and with space so does everything.
func TestServerOnFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	b := serve(t, dir)
	b.demo("scripted/demo")
	id := b.create("before")
	b.follow(id, 0, agentIs("awaiting_user_input"))

	filler := fill(t, dir)
	big := `{"initial_user_msg":"` + strings.Repeat("x", 300_000) + `"}`
	status, body, _ := b.raw("POST", "/api/conversations", big)
	for n := 0; status == 200 && n < 100; n++ { // into the room that the server has kept for itself
		status, body, _ = b.raw("POST", "/api/conversations", big)
	}
	if status != 507 || !strings.Contains(body, "disk is full") {
		t.Errorf("create: %d %s", status, body)
	}
	if status, body, _ := b.raw("GET", "/ready", ""); status != 503 || !strings.Contains(body, "full") {
		t.Errorf("ready: %d %s", status, body)
	}
	if _, err := b.client.Conversation(t.Context(), id); err != nil {
		t.Errorf("reading: %v", err)
	}
	b.follow(id, 0, agentIs("awaiting_user_input"))

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if status, body, _ := b.raw("POST", "/api/conversations", big); status != 200 {
		t.Errorf("with space again: %d %s", status, body)
	}
	if status, body, _ := b.raw("GET", "/ready", ""); status != 200 {
		t.Errorf("ready again: %d %s", status, body)
	}
}

// fill writes a file until the disk is full, and returns its path.
func fill(t *testing.T, dir string) string {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return filler
}

// Every conversation can be stopped and deleted on a full disk, before and after a restart. A
// server that was started on one runs commands as soon as there is room.
func TestConversationsEndOnAFullDisk(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts sandboxes")
	dir := disk(t, "tmpfs")
	b := serve(t, dir, withSandbox(t, "local")...)
	b.demo("scripted/demo")
	var ids []string
	for range 4 {
		id := b.create("$ echo hello")
		b.follow(id, 0, agentIs("awaiting_user_input"))
		ids = append(ids, id)
	}
	end := func(id string) {
		t.Helper()
		if status, body, _ := b.raw("POST", "/api/conversations/"+id+"/stop", ""); status != 200 {
			t.Errorf("stop: %d %s", status, body)
		}
		if status, body, _ := b.raw("DELETE", "/api/conversations/"+id, ""); status != 200 {
			t.Errorf("delete: %d %s", status, body)
		}
	}
	filler := fill(t, dir)
	end(ids[0])
	end(ids[1])
	b.stop()
	key := b.key
	b = serve(t, dir, withSandbox(t, "local")...)
	b.key, b.client = key, client.New(b.base, key)
	end(ids[2])
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if status, body, _ := b.raw("POST", "/api/settings", `{"language":"de"}`); status != 200 { // the reserve is made again
		t.Errorf("settings: %d %s", status, body)
	}
	b.stop()
	// The system that sandboxes see is made anew, as after an upgrade.
	if err := os.RemoveAll(filepath.Join(dir, "boxes", ".base")); err != nil {
		t.Fatal(err)
	}
	fill(t, dir)
	b = serve(t, dir, withSandbox(t, "local")...)
	b.key, b.client = key, client.New(b.base, key)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	id := b.create("$ echo room 'again'")
	ran := false
	b.follow(id, 0, func(it client.LegacyItem) bool {
		ran = ran || it.Event != nil && it.Event.Observation == "run" && strings.Contains(string(it.Raw), "room again")
		return agentIs("awaiting_user_input")(it) || agentIs("error")(it)
	})
	if !ran {
		t.Error("no command runs although there is room")
	}
	end(id)
	end(ids[3])
}

// On a disk that cannot be written the server reads.
func TestServerOnReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	b := serve(t, dir)
	b.demo("scripted/demo")
	id := b.create("before")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	b.stop()
	readOnly(t, dir)
	key := b.key
	b = serve(t, dir)
	b.client = client.New(b.base, key)
	if got, err := b.client.Conversation(t.Context(), id); err != nil || got.Title != "before" {
		t.Errorf("%+v %v", got, err)
	}
	if page, err := b.client.LegacyEvents(t.Context(), id, nil); err != nil || len(page.Events) == 0 {
		t.Errorf("%+v %v", page, err)
	}
	status, body, _ := b.raw("POST", "/api/conversations", "{}")
	if status != 507 || !strings.Contains(body, "read-only") {
		t.Errorf("create: %d %s", status, body)
	}
}

// A server that is told to stop finishes what it acknowledges.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := serve(t, dir)
	b.demo("scripted/demo")
	var mu sync.Mutex
	var made []string
	var wg sync.WaitGroup
	enough := make(chan struct{}, 1)
	for range 8 {
		wg.Go(func() {
			for {
				res, err := b.client.Create(context.Background(), api.CreateConversation{InitialUserMsg: api.Some("hello")})
				if err != nil {
					return
				}
				mu.Lock()
				if made = append(made, res.ConversationID); len(made) == 40 {
					enough <- struct{}{}
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	if code := b.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, b.logs)
	}
	wg.Wait()
	b = serve(t, dir)
	for _, id := range made {
		if _, err := b.client.Conversation(t.Context(), id); err != nil {
			t.Errorf("acknowledged and lost: %s: %v", id, err)
		}
	}
}

// readOnly makes a disk read-only. A process that another test is starting has our files
// open until it runs, so the disk may be busy for a moment.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	for range 1000 {
		err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.EBUSY) {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatal("the disk stays busy")
}
