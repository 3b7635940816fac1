// Package dockertest gives tests a container engine and images to use with it,
// without a registry: they are made of static busybox.
package dockertest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// Missing says that something a test needs is not there: a loud skip for a
// person, a failure where everything has to run.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("MISSING: %s", why)
	}
	t.Skipf("SKIPPED: %s", why)
}

// Engine is the address of an engine that answers: DOCKER_HOST, or the default
// socket.
func Engine(t testing.TB) string {
	t.Helper()
	engine := Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := engine.Ping(ctx, client.PingOptions{}); err != nil {
		Missing(t, "no container engine answers at "+engine.DaemonHost()+" (scripts/engine starts one): "+err.Error())
	}
	return engine.DaemonHost()
}

// Client speaks to the engine, for what a test does behind the driver's back.
func Client(t testing.TB) *client.Client {
	t.Helper()
	engine, err := client.New(client.FromEnv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// Sandboxes are the IDs of all sandboxes of which the engine has a container or a volume.
func Sandboxes(t testing.TB) map[string]bool {
	t.Helper()
	return sandboxesOn(t, Client(t))
}

func sandboxesOn(t testing.TB, engine *client.Client) map[string]bool {
	t.Helper()
	ours := make(client.Filters).Add("label", "deckhand=1")
	containers, err := engine.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := engine.VolumeList(t.Context(), client.VolumeListOptions{Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, c := range containers.Items {
		ids[cmp.Or(c.Labels["deckhand.id"], c.Labels["deckhand.helper"])] = true
	}
	for _, v := range volumes.Items {
		ids[cmp.Or(v.Labels["deckhand.id"], v.Labels["deckhand.checkpoints"])] = true
	}
	return ids
}

// File is one file of an image: a folder if its name ends with a slash, a
// symbolic link if Link is set.
type File struct {
	Name string
	Data []byte
	Link string
	Mode int64 // default 0755
	UID  int
}

// Tar packs files.
func Tar(t testing.TB, files ...File) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.Name, Mode: f.Mode, Uid: f.UID, Gid: f.UID, Typeflag: tar.TypeReg, Size: int64(len(f.Data))}
		switch {
		case strings.HasSuffix(f.Name, "/"):
			h.Typeflag = tar.TypeDir
		case f.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var importing sync.Mutex

// Import makes an image of files and returns its name. The same content has the
// same name, so it is made once for each engine; it is left there for next time.
// Changes are lines of a Dockerfile, such as "USER 1000".
func Import(t testing.TB, name string, files []File, changes ...string) string {
	t.Helper()
	return importTo(t, Client(t), name, files, changes)
}

func importTo(t testing.TB, engine *client.Client, name string, files []File, changes []string) string {
	t.Helper()
	importing.Lock()
	defer importing.Unlock()
	pack := Tar(t, files...)
	sum := sha256.New()
	sum.Write(pack)
	io.WriteString(sum, strings.Join(changes, "\n"))
	ref := "deckhand-test/" + name + ":" + hex.EncodeToString(sum.Sum(nil)[:6])
	if _, err := engine.ImageInspect(t.Context(), ref); err == nil {
		return ref
	}
	got, err := engine.ImageImport(t.Context(), client.ImageImportSource{Source: bytes.NewReader(pack), SourceName: "-"}, ref, client.ImageImportOptions{Changes: changes})
	if err != nil {
		t.Fatalf("importing %s: %v", ref, err)
	}
	defer got.Close()
	said, err := io.ReadAll(got)
	if err != nil || bytes.Contains(said, []byte(`"error"`)) {
		t.Fatalf("importing %s: %v %s", ref, err, said)
	}
	return ref
}

// Busybox is a small system: a shell and the usual programs.
func Busybox(t testing.TB) []File {
	t.Helper()
	program, err := exec.LookPath("busybox")
	if err != nil {
		Missing(t, "busybox is not installed; Debian has it in: busybox-static")
	}
	if f, err := elf.Open(program); err == nil {
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				Missing(t, "busybox needs libraries; Debian has one that does not in: busybox-static")
			}
		}
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	list, err := exec.Command(program, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := []File{
		{Name: "bin/"}, {Name: "etc/"}, {Name: "root/", Mode: 0o700}, {Name: "tmp/", Mode: 0o1777},
		{Name: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1001:agent:/tmp:/bin/sh\n")},
		{Name: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nagent:x:1001:\nstaff:x:1002:\n")},
		{Name: "bin/busybox", Data: content},
	}
	for _, name := range strings.Fields(string(list)) {
		if name != "busybox" {
			files = append(files, File{Name: "bin/" + name, Link: "busybox"})
		}
	}
	return files
}

const shell = `CMD ["/bin/sh"]`

// BusyboxImage is an image of Busybox.
func BusyboxImage(t testing.TB, changes ...string) string {
	t.Helper()
	return Import(t, "busybox", Busybox(t), append([]string{shell}, changes...)...)
}

// Build builds a program of this module as a static file.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, said)
	}
	return out
}
