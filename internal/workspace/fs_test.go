package workspace_test

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// furnish fills a workspace with what a repository can hold, good and bad.
const furnish = `mkdir -p repo/.agents/skills/x deep/er && printf 'Use make.' > repo/AGENTS.md && ln -s AGENTS.md repo/CLAUDE.md && ln -s repo/.agents agents && printf body > repo/.agents/skills/x/SKILL.md
ln -s /etc/passwd repo/out; ln -s / repo/root; ln -s ../../../../etc/passwd deep/er/up; ln -s nothing repo/dangling; ln -s loop loop; mkfifo pipe
head -c 100000 /dev/zero | tr '\0' a > large; truncate -s 17M huge; printf x > $'odd\xff'`

// both looks into the workspace while its sandbox runs and when it was stopped.
func both(t *testing.T, look func(t *testing.T, fsys fs.FS)) {
	r := newRig(t)
	r.claim()
	r.run("1", furnish)
	at := func(t *testing.T) {
		v, err := r.keeper.View(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		look(t, v.FS(t.Context()))
	}
	t.Run("running", at)
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("the sandbox ends", func() bool { return !r.running() })
	t.Run("stopped", at)
	if r.running() {
		t.Error("looking started the sandbox")
	}
}

func TestFS(t *testing.T) {
	both(t, func(t *testing.T, fsys fs.FS) {
		readsFiles(t, fsys)
		refusesFiles(t, fsys)
		walks(t, fsys)
		sub, err := fs.Sub(fsys, "repo/.agents")
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(sub, "skills/x/SKILL.md"); err != nil {
			t.Error(err)
		}
	})
}

func readsFiles(t *testing.T, fsys fs.FS) {
	t.Helper()
	for name, want := range map[string]string{
		"repo/AGENTS.md": "Use make.", "repo/CLAUDE.md": "Use make.", "agents/skills/x/SKILL.md": "body", "large": strings.Repeat("a", 100000),
	} {
		if b, err := fs.ReadFile(fsys, name); err != nil || string(b) != want {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
		f, err := fsys.Open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := io.ReadAll(f)
		if err != nil || string(b) != want {
			t.Errorf("%s, piece by piece: %d bytes, %v", name, len(b), err)
		}
		info, err := f.Stat()
		if err != nil || info.Size() != int64(len(want)) || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if f.Close() != nil {
			t.Error("it cannot be closed")
		}
		if _, err := f.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s after it was closed: %v", name, err)
		}
	}
	if info, err := fs.Stat(fsys, "agents"); err != nil || !info.IsDir() {
		t.Errorf("a link to a folder: %v, %v", info, err)
	}
}

func refusesFiles(t *testing.T, fsys fs.FS) {
	t.Helper()
	for name, want := range map[string]error{
		"repo/out": fs.ErrPermission, "repo/root": fs.ErrPermission, "repo/root/etc/passwd": fs.ErrPermission, "deep/er/up": fs.ErrPermission,
		"repo/dangling": fs.ErrNotExist, "nothing": fs.ErrNotExist, "loop": sandbox.ErrInvalid,
		"../x": fs.ErrInvalid, "/etc/passwd": fs.ErrInvalid, "": fs.ErrInvalid, "repo/../large": fs.ErrInvalid, "odd\xff": fs.ErrInvalid,
	} {
		if f, err := fsys.Open(name); !errors.Is(err, want) {
			t.Errorf("%q was opened: %v, %v; want %v", name, f, err, want)
		}
		if b, err := fs.ReadFile(fsys, name); !errors.Is(err, want) {
			t.Errorf("%q was read: %q, %v; want %v", name, b, err, want)
		}
		var as *fs.PathError
		if _, err := fs.Stat(fsys, name); !errors.As(err, &as) || as.Path != name {
			t.Errorf("%q: %v does not name it", name, err)
		}
	}
	for name, want := range map[string]error{"huge": sandbox.ErrTooBig, "pipe": sandbox.ErrInvalid} {
		if b, err := fs.ReadFile(fsys, name); !errors.Is(err, want) {
			t.Errorf("%s: %d bytes, %v; want %v", name, len(b), err, want)
		}
	}
}

// walks goes through the whole workspace; links are met, and not followed.
func walks(t *testing.T, fsys fs.FS) {
	t.Helper()
	var seen []string
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			seen = append(seen, p)
		}
		return nil
	})
	if want := []string{"huge", "large", "odd\xff", "repo/.agents/skills/x/SKILL.md", "repo/AGENTS.md"}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("met %q, %v", seen, err)
	}
	if _, err := fs.ReadDir(fsys, "large"); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("a file was listed: %v", err)
	}
	if _, err := fs.ReadDir(fsys, "repo/root"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("what is outside was listed: %v", err)
	}
}
