package access

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func bootstrap(t *testing.T, g *Gate, dir string, wantPath bool, wantMade bool) {
	t.Helper()
	path, made, err := g.Bootstrap(t.Context(), dir)
	good(t, err)
	want := ""
	if wantPath {
		want = filepath.Join(dir, "admin.key")
	}
	if path != want || made != wantMade {
		t.Fatalf("got %q, %v; want %q, %v", path, made, want, wantMade)
	}
}

// opens checks that the file's key is admin's.
func opens(t *testing.T, g *Gate, dir string) Identity {
	t.Helper()
	plain, err := ReadKeyFile(filepath.Join(dir, "admin.key"))
	good(t, err)
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	if id.User != "admin" || !id.Admin || id.ExpiresAt != nil {
		t.Fatalf("got %+v", id)
	}
	return id
}

func TestFirstStart(t *testing.T) {
	g, s, _ := newTestGate(t)
	dir := t.TempDir()
	bootstrap(t, g, dir, true, true)
	info, err := os.Stat(filepath.Join(dir, "admin.key"))
	good(t, err)
	if info.Mode() != 0o600 || info.Size() != 47 {
		t.Errorf("mode %v, size %d", info.Mode(), info.Size())
	}
	opens(t, g, dir)
	bootstrap(t, g, dir, true, false)
	keys, err := s.Keys(t.Context(), "")
	good(t, err)
	if len(keys) != 1 {
		t.Errorf("two starts made %d keys", len(keys))
	}
}

func TestFileTakenAway(t *testing.T) {
	g, _, _ := newTestGate(t)
	dir := t.TempDir()
	bootstrap(t, g, dir, true, true)
	good(t, os.Remove(filepath.Join(dir, "admin.key")))
	bootstrap(t, g, dir, false, false)
	if _, err := os.Stat(filepath.Join(dir, "admin.key")); !os.IsNotExist(err) {
		t.Errorf("the file came back: %v", err)
	}
}

func TestFirstKeyRevoked(t *testing.T) {
	g, _, _ := newTestGate(t)
	dir := t.TempDir()
	bootstrap(t, g, dir, true, true)
	id := opens(t, g, dir)
	_, err := g.Revoke(t.Context(), id.KeyID, true)
	good(t, err)
	bootstrap(t, g, dir, false, false)
	plain, err := ReadKeyFile(filepath.Join(dir, "admin.key"))
	good(t, err)
	_, err = g.Authenticate(t.Context(), plain)
	refused(t, err, ErrUnauthorized)
}

// dying fails at one step, as a crash there would leave things.
type dying struct {
	Store
	at string
}

func (d dying) CreateUser(ctx context.Context, u User) error {
	if d.at == "CreateUser" {
		return errDisk
	}
	return d.Store.CreateUser(ctx, u)
}

func (d dying) CreateKey(ctx context.Context, k Key) error {
	if d.at == "CreateKey" {
		return errDisk
	}
	return d.Store.CreateKey(ctx, k)
}

func TestFirstStartIsRepaired(t *testing.T) {
	for _, at := range []string{"CreateUser", "CreateKey"} {
		t.Run(at, func(t *testing.T) {
			g, s, _ := newTestGate(t)
			dir := t.TempDir()
			g.store = dying{s, at}
			_, _, err := g.Bootstrap(t.Context(), dir)
			refused(t, err, errDisk)
			before, err := os.ReadFile(filepath.Join(dir, "admin.key"))
			good(t, err)
			g.store = s
			bootstrap(t, g, dir, true, true)
			after, err := os.ReadFile(filepath.Join(dir, "admin.key"))
			good(t, err)
			if string(before) != string(after) {
				t.Error("the file was changed")
			}
			opens(t, g, dir)
		})
	}
}

func TestUnfinishedFileIsReplaced(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "cut": newKey()[:20], "prefix": "d", "zeros": strings.Repeat("\x00", 47),
	} {
		t.Run(name, func(t *testing.T) {
			g, _, _ := newTestGate(t)
			dir := t.TempDir()
			good(t, os.WriteFile(filepath.Join(dir, "admin.key"), []byte(content), 0o600))
			bootstrap(t, g, dir, true, true)
			opens(t, g, dir)
		})
	}
}

func TestForeignFileIsLeftAlone(t *testing.T) {
	for name, content := range map[string]string{"text": "my notes\n", "two keys": newKey() + "\n" + newKey() + "\n"} {
		t.Run(name, func(t *testing.T) {
			g, s, _ := newTestGate(t)
			dir := t.TempDir()
			path := filepath.Join(dir, "admin.key")
			good(t, os.WriteFile(path, []byte(content), 0o600))
			_, _, err := g.Bootstrap(t.Context(), dir)
			if err == nil || strings.Contains(err.Error(), content) {
				t.Errorf("got error %v", err)
			}
			if left, _ := os.ReadFile(path); string(left) != content {
				t.Error("the file was changed")
			}
			if users, _ := s.Users(t.Context()); len(users) != 0 {
				t.Error("a user was made")
			}
		})
	}
}

// A key file from another database must not open this one.
func TestStrayFileOpensNothing(t *testing.T) {
	g, _, _ := newTestGate(t)
	create(t, g, "root", true, 0)
	dir := t.TempDir()
	plain := newKey()
	good(t, os.WriteFile(filepath.Join(dir, "admin.key"), []byte(plain+"\n"), 0o600))
	bootstrap(t, g, dir, false, false)
	_, err := g.Authenticate(t.Context(), plain)
	refused(t, err, ErrUnauthorized)
}

// An operator made an ordinary user between the crash and the next start.
func TestRepairBesideOrdinaryUsers(t *testing.T) {
	g, _, _ := newTestGate(t)
	create(t, g, "bob", false, time.Hour)
	dir := t.TempDir()
	good(t, os.WriteFile(filepath.Join(dir, "admin.key"), []byte(newKey()+"\n"), 0o600))
	bootstrap(t, g, dir, true, true)
	opens(t, g, dir)
}

func TestNoDataDir(t *testing.T) {
	g, s, _ := newTestGate(t)
	_, _, err := g.Bootstrap(t.Context(), filepath.Join(t.TempDir(), "missing"))
	if err == nil {
		t.Error("want an error")
	}
	if users, _ := s.Users(t.Context()); len(users) != 0 {
		t.Error("a user was made with an unknown key")
	}
}
