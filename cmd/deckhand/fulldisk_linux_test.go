package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/soak"
)

// What each sandbox does to fill a disk: forty writers at once. Those of "again" never give up.
var floods = map[string]string{
	"bytes":  "for i in $(seq 40); do dd if=/dev/zero of=f$i bs=1M count=15 2>/dev/null & done; wait",
	"again":  "for i in $(seq 40); do while :; do dd if=/dev/zero of=f$i bs=1M count=15 2>/dev/null; done & done; wait",
	"inodes": "for i in $(seq 40); do (mkdir f$i && cd f$i && touch $(seq 1500)) 2>/dev/null & done; wait",
}

// However many sandboxes write at once, and even if nothing at all is left on the disk: messages
// are stored, the agents can delete files, also after a restart of the server, and conversations
// can be stopped and deleted.
func TestMessagesOnADiskThatSandboxesFill(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts sandboxes")
	for _, kind := range []string{"tmpfs", "ext4"} {
		for name, flood := range floods {
			t.Run(kind+"/"+name, func(t *testing.T) {
				dir := disk(t, kind)
				args := append(withSandbox(t, "local"), "--sandbox-disk", "20M")
				b := serve(t, dir, args...)
				b.demo("scripted/demo")
				fill, drain := newFiller(t, dir)
				idle := b.create("$ echo ready")
				b.said(idle, 0, "ready")
				bytes, inodes := left(t, dir)
				var ids []string
				in := func(id, name string) string { return filepath.Join(dir, "boxes", id, "ws", name) }
				for range soak.Times(4, 10) {
					id := b.create("$ touch begun; until [ -e go ]; do sleep 0.1; done; " + flood + "; echo all'' written")
					b.until("a command runs", func() bool { _, err := os.Stat(in(id, "begun")); return err == nil })
					ids = append(ids, id)
				}
				say := func(id, command string) {
					t.Helper()
					status, body, _ := b.raw("POST", "/api/conversations/"+id+"/message", fmt.Sprintf(`{"message":%q}`, "$ "+command))
					if status != http.StatusOK {
						now, files := left(t, dir)
						t.Fatalf("a message with %d bytes and %d files left: %d %s", now, files, status, body)
					}
				}
				least, fewest := left(t, dir)
				for _, id := range ids {
					if err := os.WriteFile(in(id, "go"), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				t.Cleanup(func() {
					for _, id := range ids {
						if t.Failed() {
							_, events, _ := b.raw("GET", "/api/conversations/"+id+"/events?limit=100&reverse=true", "")
							t.Logf("%s: %s", id, clipTail(events, 1500))
						}
					}
				})
				for i, id := range ids {
					// Each command has an end, whatever it is.
					b.until("a command was ended", func() bool {
						now, files := left(t, dir)
						least, fewest = min(least, now), min(fewest, files)
						_, events, _ := b.raw("GET", "/api/conversations/"+id+"/events?limit=100", "")
						return strings.Contains(events, "disk is nearly full") || strings.Contains(events, "Disk limit reached") || strings.Contains(events, "all written")
					})
					say(idle, fmt.Sprintf("echo still'' here %d", i))
				}
				t.Logf("at least %d MB and %d files were left", least>>20, fewest)
				b.said(idle, 0, fmt.Sprintf("still here %d", len(ids)-1))
				fill()
				for i, id := range ids {
					if i == len(ids)/2 {
						fill()
						b.stop()
						b = serve(t, dir, args...)
					}
					say(idle, fmt.Sprintf("echo still'' full %d", i))
					say(id, "rm -rf f*; echo is'' empty: $(ls | wc -l)")
					b.said(id, 0, "is empty: 2")
				}
				b.said(idle, 0, fmt.Sprintf("still full %d", len(ids)-1))
				drain()
				for i, id := range ids {
					if i%2 == 0 {
						b.post("/api/conversations/"+id+"/stop", "")
					}
				}
				b.remove(append(ids, idle)...)
				b.until("the space is back", func() bool {
					now, files := left(t, dir)
					return now > bytes-(32<<20) && files > inodes-200 // the log of the database has grown
				})
			})
		}
	}
}

// newFiller returns functions that use all bytes and inodes that are left, and give them back.
func newFiller(t *testing.T, dir string) (fill, drain func()) {
	t.Helper()
	dir = filepath.Join(dir, "filler")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o700))
	bytes, err := os.Create(filepath.Join(dir, "bytes"))
	must(err)
	t.Cleanup(func() { _ = bytes.Close() })
	full := func(write func() error) {
		t.Helper()
		err := write()
		for err == nil {
			err = write()
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	files := 0
	fill = func() {
		t.Helper()
		for size := 1 << 20; size > 0; size /= 16 {
			full(func() error { _, err := bytes.Write(make([]byte, size)); return err })
		}
		full(func() error {
			files++
			return os.WriteFile(filepath.Join(dir, strconv.Itoa(files)), nil, 0o600)
		})
	}
	return fill, func() { t.Helper(); must(os.Truncate(bytes.Name(), 0)); must(os.RemoveAll(dir)) }
}
