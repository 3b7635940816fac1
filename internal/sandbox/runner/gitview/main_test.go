package gitview

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox/runner/spawn"
)

// spawner starts every process of this test: there can be only one.
var spawner *spawn.Spawner

func TestMain(m *testing.M) {
	var err error
	if spawner, err = spawn.New(spawn.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	spawner.Close()
	if err := goleak.Find(goleak.IgnoreTopFunction("os/signal.signal_recv"), goleak.IgnoreTopFunction("os/signal.loop")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// space is a workspace.
type space struct {
	*testing.T
	*View
	dir, home string
}

func newSpace(t *testing.T) *space {
	t.Helper()
	s := &space{T: t, dir: filepath.Join(t.TempDir(), "work space"), home: t.TempDir()}
	s.ok(os.Mkdir(s.dir, 0o755))
	s.View = New(Config{Spawner: spawner, Workspace: s.dir, Env: s.environ})
	if _, err := s.work(t.Context(), s.dir, "version"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: git is not here: %v", err)
	}
	return s
}

// environ has what might mislead git.
func (s *space) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_INDEX_FILE=/nonexistent", "GIT_TRACE=/nonexistent/trace", "LC_ALL=de_DE.UTF-8",
	}
}

func (s *space) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// work runs git like a user of the repository.
func (s *space) work(ctx context.Context, dir string, args ...string) (string, error) {
	r, w, err := os.Pipe()
	s.ok(err)
	defer r.Close()
	env := slices.DeleteFunc(s.environ(), func(e string) bool {
		return strings.HasPrefix(e, "GIT_INDEX") || strings.HasPrefix(e, "GIT_TRACE") || strings.HasPrefix(e, "LC_")
	})
	flags := []string{"git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false", "-c", "commit.gpgsign=false"}
	p, err := spawner.Start(spawn.Attr{Args: append(flags, args...), Dir: dir, Env: env, Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		return "", err
	}
	out, err := io.ReadAll(r)
	s.ok(err)
	if st := p.Wait(); st.Code != 0 {
		return string(out), fmt.Errorf("git %q: %v: %s", args, st, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (s *space) git(dir string, args ...string) string {
	s.Helper()
	out, err := s.work(s.Context(), filepath.Join(s.dir, dir), args...)
	s.ok(err)
	return out
}

func (s *space) put(name, text string) {
	s.Helper()
	full := filepath.Join(s.dir, name)
	s.ok(os.MkdirAll(filepath.Dir(full), 0o755))
	s.ok(os.WriteFile(full, []byte(text), 0o644))
}

func (s *space) remove(name string) { s.Helper(); s.ok(os.RemoveAll(filepath.Join(s.dir, name))) }

// commit adds everything in a repository.
func (s *space) commit(dir string) {
	s.Helper()
	s.git(dir, "add", "-A")
	s.git(dir, "commit", "-qm", "x", "--allow-empty")
}

// clone makes a repository at name whose origin has the files.
func (s *space) clone(name string, files ...string) {
	s.Helper()
	from := filepath.Join(s.home, "origin-"+filepath.Base(name))
	s.ok(os.Mkdir(from, 0o755))
	at := func(args ...string) {
		s.Helper()
		_, err := s.work(s.Context(), from, args...)
		s.ok(err)
	}
	at("init", "-q")
	at("config", "receive.denyCurrentBranch", "ignore")
	for _, f := range files {
		full := filepath.Join(from, f)
		s.ok(os.MkdirAll(filepath.Dir(full), 0o755))
		s.ok(os.WriteFile(full, []byte("original "+f+"\n"), 0o644))
	}
	at("add", "-A")
	at("commit", "-qm", "first", "--allow-empty")
	s.ok(os.MkdirAll(filepath.Join(s.dir, name), 0o755))
	s.git(name, "clone", "-q", from, ".")
}

// changed lists the changes in short.
func (s *space) changed() []string {
	s.Helper()
	list, err := s.Changes(s.Context())
	s.ok(err)
	out := []string{}
	for _, c := range list {
		out = append(out, c.Status+" "+string(c.Path))
	}
	return out
}

func (s *space) want(want ...string) {
	s.Helper()
	if got := s.changed(); !slices.Equal(got, want) {
		s.Errorf("got  %q\nwant %q", got, want)
	}
}

// diff is a file before and now, in short.
func (s *space) diff(name string) string {
	s.Helper()
	d, err := s.Diff(s.Context(), []byte(name))
	s.ok(err)
	show := func(t *string) string {
		if t == nil {
			return "-"
		}
		return *t
	}
	return show(d.Original) + "|" + show(d.Modified)
}
