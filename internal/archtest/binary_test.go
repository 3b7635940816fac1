package archtest

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestBinaryIsStatic looks at what make build made. One file that needs nothing
// on the machine is what the README promises.
func TestBinaryIsStatic(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("SKIPPED: a program on %s always links the system's library", runtime.GOOS)
	}
	file := filepath.Join(root(t), "bin", "deckhand")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if os.Getenv("CI") == "true" {
			t.Fatal("bin/deckhand is not there: make build comes first")
		}
		t.Skip("SKIPPED: bin/deckhand is not there; make test builds it first")
	}
	report(t, dynamic(t, file))

	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]string{}
	for _, s := range info.Settings {
		built[s.Key] = s.Value
	}
	for key, want := range map[string]string{"CGO_ENABLED": "0", "-trimpath": "true"} {
		if built[key] != want {
			t.Errorf("bin/deckhand was built with %s=%q, wanted %q", key, built[key], want)
		}
	}
	stat, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if size := stat.Size(); size > maxBinary {
		t.Errorf("bin/deckhand has %d bytes, wanted at most %d; docs/decisions/0040-fewer-dependency-trees.md says how to find what came in", size, maxBinary)
	}
}

// maxBinary is how large the program may be, in bytes.
const maxBinary = 52_000_000

// TestStaticCheckSeesLibraries shows that the check can fail: git, without which
// nobody got here, is linked with the system's libraries.
func TestStaticCheckSeesLibraries(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("SKIPPED: %s has no ELF programs to try", runtime.GOOS)
	}
	linked, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	found := dynamic(t, linked)
	caught(t, found, linked, "dynamic loader")
	caught(t, found, linked, "needs lib")
}

// dynamic finds what a program asks of the machine that starts it.
func dynamic(tb testing.TB, file string) []finding {
	tb.Helper()
	const why = "a static program runs on any Linux of its architecture, in a bare container too; build it with CGO_ENABLED=0"
	f, err := elf.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var found []finding
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			found = append(found, finding{file, "asks for a dynamic loader", why})
		}
	}
	libs, err := f.ImportedLibraries()
	if err != nil {
		tb.Fatal(err)
	}
	for _, lib := range libs {
		found = append(found, finding{file, "needs " + lib, why})
	}
	return found
}
