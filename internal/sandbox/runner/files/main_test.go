package files

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret is what lies outside of the workspace and must never be seen.
const secret = "outside"

// place is a workspace in a folder that has more in it.
type place struct {
	*testing.T
	outer, dir string
	root       *os.Root
	disconnect func() // waits for all calls
}

func newPlace(t *testing.T) *place {
	t.Helper()
	outer := t.TempDir()
	p := &place{T: t, outer: outer, dir: filepath.Join(outer, "workspace")}
	p.ok(os.Mkdir(p.dir, 0o755))
	p.ok(os.WriteFile(filepath.Join(outer, "secret"), []byte(secret), 0o644))
	p.ok(os.Mkdir(filepath.Join(outer, "other"), 0o755))
	p.ok(os.WriteFile(filepath.Join(outer, "other", "file"), []byte(secret), 0o644))
	root, err := os.OpenRoot(p.dir)
	p.ok(err)
	t.Cleanup(func() { root.Close() })
	p.root = root
	return p
}

func (p *place) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// put writes a file, and the folders it needs.
func (p *place) put(name, text string) {
	p.Helper()
	full := filepath.Join(p.dir, name)
	p.ok(os.MkdirAll(filepath.Dir(full), 0o755))
	p.ok(os.WriteFile(full, []byte(text), 0o644))
}

func (p *place) link(target, name string) {
	p.Helper()
	p.ok(os.Symlink(target, filepath.Join(p.dir, name)))
}

func (p *place) get(name string) string {
	p.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	p.ok(err)
	return string(b)
}

// untouched fails if something outside was changed.
func (p *place) untouched() {
	p.Helper()
	for _, name := range []string{"secret", "other/file"} {
		if b, err := os.ReadFile(filepath.Join(p.outer, name)); err != nil || string(b) != secret {
			p.Errorf("%s outside is %q, %v", name, b, err)
		}
	}
	for _, dir := range []string{"", "other"} {
		entries, err := os.ReadDir(filepath.Join(p.outer, dir))
		p.ok(err)
		if want := map[string]int{"": 3, "other": 1}[dir]; len(entries) != want {
			p.Errorf("outside, %q now has %v", dir, entries)
		}
	}
}

// connect speaks to the handlers as the server does.
func (p *place) connect() (*sandbox.Sandbox, *Files) {
	p.Helper()
	f := New(Config{Workspace: "/workspace", FS: p.outer})
	handlers := f.Handlers()
	handlers["hello"] = hello
	here, there := net.Pipe()
	peer, err := rpc.Accept(there, rpc.Handlers{Calls: handlers})
	p.ok(err)
	s, err := sandbox.Connect(p.Context(), sandbox.Link{Conn: here})
	p.ok(err)
	p.disconnect = sync.OnceFunc(func() { s.Close(); peer.Close() })
	p.Cleanup(p.disconnect)
	return s, f
}
