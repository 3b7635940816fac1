package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// disk is a file system of its own for a data dir, with so many MB and inodes.
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

// Ways to fill a disk. The limits of the sandboxes are 20 MB, or more than the disk has.
var fillings = map[string]struct{ limit, command, says string }{
	"bytes":            {"20M", "for i in $(seq 40); do head -c 15000000 /dev/zero > f$i; done; echo all'' written", "Disk limit reached"},
	"inodes":           {"20M", "mkdir f && cd f && for i in $(seq 60); do touch $(seq $((i*1000)) $((i*1000+999))); done; cd ..; echo all'' written", "Disk limit reached"},
	"the whole disk":   {"10G", "for i in $(seq 40); do head -c 15000000 /dev/zero > f$i; done; echo all'' written", "disk is nearly full"},
	"all inodes of it": {"10G", "mkdir f && cd f && for i in $(seq 60); do touch $(seq $((i*1000)) $((i*1000+999))); done; cd ..; echo all'' written", "disk is nearly full"},
}

// One sandbox that writes without end is ended soon, with a result that says why. The
// server can still store things, the agent can delete its files, and deleting the
// conversation gives the space back.
func TestSandboxCannotFillTheDisk(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4"} {
		for name, filling := range fillings {
			t.Run(kind+"/"+name, func(t *testing.T) {
				dir := disk(t, kind)
				b := serve(t, dir, append(withHands(t, "local"), "--sandbox-disk", filling.limit)...)
				b.demo("scripted/demo")
				id := b.create("$ echo ready")
				b.said(id, 0, "ready")
				bytes, inodes := left(t, dir)

				b.post("/api/conversations/"+id+"/message", `{"message":"$ `+strings.ReplaceAll(filling.command, `"`, `\"`)+`"}`)
				if got := b.said(id, 0, filling.says); strings.Contains(got, "all written") {
					t.Errorf("it was not ended: %s", got)
				}
				now, files := left(t, dir)
				if limit := int64(20 << 20); filling.limit == "20M" && bytes-now > 6*limit {
					t.Errorf("%d bytes were written, and %d are allowed", bytes-now, limit)
				}
				if files < 100 || now < 1<<20 {
					t.Errorf("%d bytes and %d files are left", now, files)
				}
				b.demo("scripted/demo") // settings can be stored
				b.post("/api/conversations/"+id+"/message", `{"message":"$ rm -rf f*; echo is'' empty: $(ls | wc -l)"}`)
				b.said(id, 0, "is empty: 0")
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
