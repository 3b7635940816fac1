// Package npmtest installs Node.js packages for tests, so that Deckhand is tested with
// real third-party programs instead of imitations.
package npmtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"deckhand/internal/sandbox/runner/spawn"
)

// The real tool servers, in the version that all tests of them have.
const (
	Everything = "@modelcontextprotocol/server-everything"
	Filesystem = "@modelcontextprotocol/server-filesystem"
	version    = "2026.8.31"
)

// Runner runs a program in a folder to its end, and gives what it printed.
type Runner func(dir string, args ...string) (output []byte, err error)

// Servers is the folder of modules with the real tool servers. run is nil, or
// Spawned.
func Servers(t testing.TB, run Runner) string {
	t.Helper()
	return install(t, run, "mcp-"+version, Everything+"@"+version, Filesystem+"@"+version)
}

// Program is the program of a tool server below a folder of modules.
func Program(modules, pkg string) string { return filepath.Join(modules, pkg, "dist", "index.js") }

// Install gives a folder of modules with the packages, each as name@version. It is kept
// under name, which has to say the versions too: what is installed for one test is there
// for all on this machine.
func Install(t testing.TB, name string, packages ...string) string {
	t.Helper()
	return install(t, nil, name, packages...)
}

// install does it once; who comes while another installs waits.
func install(t testing.TB, run Runner, name string, packages ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: what needs packages of Node.js is left out of the short round")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, program+" is not installed: install Node.js 20 or newer")
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		missing(t, "there is no cache folder to install into: "+err.Error())
	}
	dir := filepath.Join(cache, "deckhand-test", name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		missing(t, "nothing can be installed: "+err.Error())
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		missing(t, "nothing can be installed: "+err.Error())
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(dir); err == nil {
		return modules
	}
	half, err := os.MkdirTemp(filepath.Dir(dir), "half-") // half of an installation must not be taken for a whole one
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(half)
	if run == nil {
		run = program
	}
	args := append([]string{"npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", half}, packages...)
	if words, err := run(half, args...); err != nil {
		missing(t, fmt.Sprintf("npm cannot install %v: %v\n%s", packages, err, words))
	}
	if err := os.Rename(half, dir); err != nil {
		t.Fatal(err)
	}
	return modules
}

// Spawned runs programs in a process whose children s collects, where os/exec would wait in vain.
func Spawned(t testing.TB, s *spawn.Spawner) Runner {
	return func(dir string, args ...string) ([]byte, error) {
		output, err := os.Create(filepath.Join(t.TempDir(), "output"))
		if err != nil {
			return nil, err
		}
		defer output.Close()
		p, err := s.Start(spawn.Attr{Args: args, Dir: dir, Env: os.Environ(), Files: []*os.File{nil, output, output}})
		if err != nil {
			return nil, err
		}
		if st := p.Wait(); st.Code != 0 {
			words, _ := os.ReadFile(output.Name())
			return words, fmt.Errorf("it %v", st)
		}
		return nil, nil
	}
}

func program(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// missing is a loud skip for a person, and a failure where everything has to run.
func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("MISSING: %s", why)
	}
	t.Skipf("SKIPPED: %s", why)
}
