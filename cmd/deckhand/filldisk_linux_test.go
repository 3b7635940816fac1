package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/client"
	"deckhand/internal/soak"
)

// disk is a file system of its own for a data dir, with 300 MB and 40,000 inodes.
func disk(t *testing.T, kind string) string {
	t.Helper()
	dir := t.TempDir()
	missing := func(err error, out []byte) {
		if os.Getenv("CI") != "" {
			t.Fatalf("a disk cannot be mounted for this test: %v %s", err, out)
		}
		t.Skipf("NOT TESTED: sandboxes that fill a disk with %s, which needs root: %v %s", kind, err, out)
	}
	switch kind {
	case "tmpfs":
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=300m,nr_inodes=40000,mode=711"); err != nil {
			missing(err, nil)
		}
	case "ext4":
		image := filepath.Join(t.TempDir(), "disk")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 300<<20); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"mkfs.ext4", "-q", "-N", "40000", image}, {"mount", "-o", "loop", image, dir}} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				missing(err, out)
			}
		}
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func left(t *testing.T, dir string) (bytes, inodes int64) {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Ffree)
}

// saidAny waits for the answer to a command that has one of the texts.
func (b *box) saidAny(id string, texts ...string) (found string) {
	b.t.Helper()
	b.follow(id, 0, func(it client.LegacyItem) bool {
		for _, text := range texts {
			if it.Event != nil && it.Event.Observation == "run" && strings.Contains(string(it.Raw), text) {
				found = string(it.Raw)
			}
		}
		return found != ""
	})
	return found
}

// overshoot is how far above its limit a sandbox may get, as docs/troubleshooting.md says.
const overshoot = 64 << 20

// writeRate is what a sandbox may write in a second while the server waits for a processor.
const writeRate = 1 << 30

// lateness measures for how long this process has to wait for a processor, until the
// function that it returns is called.
func lateness(ctx context.Context) (longest func() time.Duration) {
	const step = time.Millisecond
	ctx, end := context.WithCancel(ctx)
	result := make(chan time.Duration, 1)
	go func() {
		var longest time.Duration
		last := time.Now()
		for {
			select {
			case <-time.After(step):
				longest = max(longest, time.Since(last)-step)
				last = time.Now()
			case <-ctx.Done():
				result <- longest
				return
			}
		}
	}()
	return func() time.Duration { end(); return <-result }
}

// Ways to fill a disk. The limits of the sandboxes are 20 MB, or more than the disk has. A
// fast writer may meet the end of the disk before the server ends it: with a limit of 20 MB
// only if the server waits long for a processor, which is measured. They print something on
// the way: a command that is silent for ten seconds is reported as such.
var fillings = map[string]struct{ limit, command, says string }{
	"deleted files":    {"20M", "for i in $(seq 40); do exec {n}> f; rm f; head -c 15000000 /dev/zero >&$n; echo; done; echo all'' written", "Disk limit reached|No space left on device"},
	"bytes":            {"20M", "for i in $(seq 40); do head -c 15000000 /dev/zero > f$i; echo; done; echo all'' written", "Disk limit reached|No space left on device"},
	"reserved space":   {"20M", "/usr/bin/python3 -c 'import os; [os.posix_fallocate(os.open(\"f%d\" % i, os.O_CREAT | os.O_RDWR), 0, 15000000) for i in range(40)]'; for i in $(seq 40); do fallocate -l 15M f$i & done; wait; for i in $(seq 40); do fallocate -x -l 15M fx$i & done; wait; echo all'' written", "Disk limit reached|No space left on device"},
	"inodes":           {"20M", "mkdir f && cd f && for i in $(seq 60); do touch $(seq $((i*1000)) $((i*1000+999))); echo; done; cd ..; echo all'' written", "Disk limit reached|No space left on device"},
	"the whole disk":   {"10G", "for i in $(seq 40); do head -c 15000000 /dev/zero > f$i; echo; done; echo all'' written", "disk is nearly full|No space left on device"},
	"all inodes of it": {"10G", "mkdir f && cd f && for i in $(seq 60); do touch $(seq $((i*1000)) $((i*1000+999))); echo; done; cd ..; echo all'' written", "disk is nearly full|No space left on device"},
}

// One sandbox that writes without end is ended soon, with a result that says why. The
// server can still store things, the agent can delete its files, and deleting the
// conversation gives the space back.
func TestSandboxCannotFillTheDisk(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts sandboxes")
	for _, kind := range []string{"tmpfs", "ext4"} {
		for name, filling := range fillings {
			if kind == "ext4" && (filling.limit == "10G" || name == "deleted files") && !soak.On() {
				continue // as on tmpfs
			}
			t.Run(kind+"/"+name, func(t *testing.T) {
				dir := disk(t, kind)
				b := serve(t, dir, append(withSandbox(t, "local"), "--sandbox-disk", filling.limit)...)
				b.demo("scripted/demo")
				id := b.create("$ echo ready")
				b.said(id, 0, "ready")
				bytes, inodes := left(t, dir)

				late := lateness(t.Context())
				b.post("/api/conversations/"+id+"/message", `{"message":"$ `+strings.ReplaceAll(filling.command, `"`, `\"`)+`"}`)
				got := b.saidAny(id, strings.Split(filling.says, "|")...)
				if strings.Contains(got, "all written") && !strings.Contains(got, "No space left") {
					t.Errorf("it was not ended: %s", got)
				}
				now, files := left(t, dir)
				waited := late()
				t.Logf("%d MB and %d files were written; the longest wait for a processor was %s", (bytes-now)>>20, inodes-files, waited)
				// The server waits as long as this process, each time: to look, to measure, to freeze.
				most := 20<<20 + overshoot + int64(3*waited.Seconds()*writeRate)
				if filling.limit == "20M" && (bytes-now > most || inodes-files > 40000*most/(300<<20)) {
					t.Errorf("%d bytes and %d files were written", bytes-now, inodes-files)
				}
				if !strings.Contains(got, "No space left") { // or nothing can be stored but a stop and the end
					b.demo("scripted/demo") // settings can be stored
					b.post("/api/conversations/"+id+"/message", `{"message":"$ rm -rf f*; echo is'' empty: $(ls | wc -l)"}`)
					b.said(id, 0, "is empty: 0")
				}
				b.post("/api/conversations/"+id+"/stop", "")
				b.remove(id)
				b.until("the space is back", func() bool {
					now, files := left(t, dir)
					return now > bytes-(4<<20) && files > inodes-200
				})
			})
		}
	}
}

// Many short commands cannot do what one long one cannot: above the limit, commands may only
// read and delete, until there is room again.
func TestManyCommandsCannotFillTheDisk(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts sandboxes")
	for name, command := range map[string]string{"bytes": "head -c 15000000 /dev/zero > f%d", "inodes": "mkdir -p d%d; cd d%[1]d && touch $(seq 3000); cd .."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := disk(t, "tmpfs")
			b := serve(t, dir, append(withSandbox(t, "local"), "--sandbox-disk", "20M")...)
			b.demo("scripted/demo")
			id := b.create("$ echo ready")
			b.said(id, 0, "ready")
			bytes, inodes := left(t, dir)
			ran := 1
			say := func(command string) (result string) {
				t.Helper()
				b.post("/api/conversations/"+id+"/message", `{"message":"$ `+command+`"}`)
				ran++
				seen := 0
				b.follow(id, 0, func(it client.LegacyItem) bool {
					if it.Event != nil && it.Event.Observation == "run" {
						seen, result = seen+1, string(it.Raw)
					}
					return seen == ran
				})
				return result
			}
			late := lateness(t.Context())
			refused := 0
			for i := range 15 {
				if strings.Contains(say(fmt.Sprintf(command, i)), "above its disk limit") {
					refused++
				}
			}
			now, files := left(t, dir)
			waited := late()
			t.Logf("%d MB and %d files were written, %d commands refused; the longest wait for a processor was %s", (bytes-now)>>20, inodes-files, refused, waited)
			most := 20<<20 + overshoot + int64(3*waited.Seconds()*writeRate)
			if bytes-now > most || inodes-files > 40000*most/(300<<20) || refused < 5 {
				t.Errorf("%d bytes and %d files were written, %d commands refused", bytes-now, inodes-files, refused)
			}
			if got := say("rm -rf f* d*; echo is'' empty: $(ls | wc -l)"); !strings.Contains(got, "is empty: 0") {
				t.Errorf("deleting gave %s", got)
			}
			if got := say("echo back > f; cat f f"); !strings.Contains(got, `back\nback`) {
				t.Errorf("writing gave %s", got)
			}
			b.remove(id)
			b.until("the space is back", func() bool { now, _ := left(t, dir); return now > bytes-(4<<20) })
		})
	}
}

// What takes up no space is not counted: holes in files, and further names of a file.
// The command prints all the time, so that it is waited for on a busy machine too.
func TestHolesAndLinksAreNoDiskUse(t *testing.T) {
	soak.NotShort(t, "starts sandboxes")
	b := serve(t, "", append(withSandbox(t, "local"), "--sandbox-disk", "20M")...)
	b.demo("scripted/demo")
	id := b.create("$ head -c 10000000 /dev/zero > f; for i in $(seq 40); do ln f l$i; truncate -s 15M h$i; echo $i; done; for i in 1 2 3; do sleep 1; echo $i; done; echo all'' written")
	if got := b.said(id, 0, "all written"); strings.Contains(got, "Disk limit") {
		t.Error(got)
	}
	b.remove(id)
	b.until("the sandbox goes", func() bool {
		_, err := os.Stat(filepath.Join(b.dir, "boxes", id))
		return os.IsNotExist(err)
	})
}

// A command that goes on without a server is held to the limit by its runner, and the next
// server finds the result that says so.
func TestDiskLimitWithoutAServer(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts sandboxes")
	dir := disk(t, "tmpfs")
	args := append(withSandbox(t, "local"), "--sandbox-disk", "20M")
	b := serve(t, dir, args...)
	b.demo("scripted/demo")
	id := b.create("$ echo begun; until [ -e go ]; do sleep 0.01; done; for i in $(seq 40); do head -c 15000000 /dev/zero > f$i; done; echo all'' written")
	b.begun(id)
	pid := b.pid(id)
	bytes, _ := left(t, dir)
	b.stop()
	late := lateness(t.Context())
	if err := os.WriteFile(filepath.Join(dir, "boxes", id, "ws", "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var now int64
	b.until("the runner ends the command", func() bool {
		now, _ = left(t, dir)
		return !hasChildren(pid) || now < 10<<20
	})
	waited := late()
	t.Logf("%d MB were written; the longest wait for a processor was %s", (bytes-now)>>20, waited)
	if most := 20<<20 + overshoot + int64(3*waited.Seconds()*writeRate); bytes-now > most || now < 10<<20 {
		t.Fatalf("%d bytes were written", bytes-now)
	}
	b = serve(t, dir, args...)
	if got := b.said(id, 0, "Disk limit reached"); strings.Contains(got, "all written") {
		t.Error(got)
	}
	b.post("/api/conversations/"+id+"/message", `{"message":"$ rm -rf f*; echo is'' empty: $(ls | wc -l)"}`)
	b.said(id, 0, "is empty: 1")
	b.remove(id)
}

// hasChildren reports whether a process has others that it started.
func hasChildren(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		if children, err := os.ReadFile(thread); err == nil && len(children) > 0 {
			return true
		}
	}
	return false
}

// Ten sandboxes that are each below their limit cannot fill a disk together: they are ended
// before the server cannot store things any more.
func TestTenSandboxesOnASmallDisk(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts sandboxes")
	dir := disk(t, "tmpfs")
	b := serve(t, dir, append(withSandbox(t, "local"), "--sandbox-disk", "60M")...)
	b.demo("scripted/demo")
	bytes, _ := left(t, dir)
	var ids []string
	for range 10 {
		ids = append(ids, b.create("$ touch begun; until [ -e go ]; do sleep 0.1; echo; done; for i in $(seq 40); do head -c 5000000 /dev/zero > f$i; echo; done; echo all'' written"))
	}
	in := func(id, name string) string { return filepath.Join(dir, "boxes", id, "ws", name) }
	for _, id := range ids {
		b.until("a command runs", func() bool { _, err := os.Stat(in(id, "begun")); return err == nil })
	}
	late := lateness(t.Context())
	for _, id := range ids {
		if err := os.WriteFile(in(id, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ended, filled := 0, false
	for _, id := range ids {
		// On a disk that was filled, nothing but a stop and the end can be stored.
		b.until("a command was ended, or the disk is full", func() bool {
			now, _ := left(t, dir)
			_, events, _ := b.raw("GET", "/api/conversations/"+id+"/events?limit=100", "")
			done := strings.Contains(events, "disk is nearly full") || strings.Contains(events, "Disk limit reached")
			if done {
				ended++
			}
			filled = filled || now < 1<<20
			return done || filled
		})
	}
	now, _ := left(t, dir)
	waited := late()
	t.Logf("%d were ended in time, %d MB are left; the longest wait for a processor was %s", ended, now>>20, waited)
	if 3*waited.Seconds()*writeRate < 75<<20 { // what is left alone of this disk
		if filled || ended < len(ids) {
			t.Error("the disk was filled")
		}
		b.demo("scripted/demo") // settings can be stored
	}
	for i, id := range ids {
		if i%2 == 0 {
			b.post("/api/conversations/"+id+"/stop", "")
		}
	}
	b.remove(ids...)
	b.until("the space is back", func() bool { now, _ := left(t, dir); return now > bytes-(4<<20) })
}
