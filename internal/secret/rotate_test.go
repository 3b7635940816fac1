package secret

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var errCrash = errors.New("crash")

// crashKeys dies before or after the rewrapping transaction.
type crashKeys struct {
	*MemKeys
	before, after bool
}

func (c *crashKeys) Rewrap(ctx context.Context, oldID, newID string, fn func(DataKey) (DataKey, error)) error {
	if c.before {
		return errCrash
	}
	if err := c.MemKeys.Rewrap(ctx, oldID, newID, fn); err != nil {
		return err
	}
	if c.after {
		return errCrash
	}
	return nil
}

func TestRotate(t *testing.T) {
	dir, store := t.TempDir(), NewMemKeys()
	k := open(t, dir, "", store)
	first := k.MasterID()
	sealed := mustSeal(t, k, "ann", "f", canary)
	wrapped := string(store.keys["ann"].Wrapped)
	for range 3 {
		if err := k.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if k.MasterID() == first || string(store.keys["ann"].Wrapped) == wrapped || store.master != k.MasterID() {
		t.Error("nothing was rotated")
	}
	wantOpen(t, k, "ann", "f", sealed, canary)
	wantOpen(t, open(t, dir, "", store), "ann", "f", sealed, canary)
	if _, err := os.Stat(filepath.Join(dir, nextFile)); err == nil {
		t.Error("the new key file is left over")
	}
	if info, err := os.Stat(filepath.Join(dir, keyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestRotateCrash(t *testing.T) {
	for _, at := range []string{"written", "before rewrap", "after rewrap", "rewrapped", "torn new file"} {
		t.Run(at, func(t *testing.T) {
			dir, store := t.TempDir(), NewMemKeys()
			k := open(t, dir, "", store)
			sealed := mustSeal(t, k, "ann", "f", canary)
			dying := open(t, dir, "", &crashKeys{MemKeys: store, before: at == "before rewrap", after: at == "after rewrap"})
			dying.step = func(name string) error {
				if name == at {
					return errCrash
				}
				return nil
			}
			if at == "torn new file" {
				if err := os.WriteFile(filepath.Join(dir, nextFile), []byte("AAA"), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if err := dying.Rotate(t.Context()); !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			// The live one goes on, for users it knows and for new ones.
			wantOpen(t, k, "ann", "f", sealed, canary)
			wantOpen(t, k, "new", "f", mustSeal(t, k, "new", "f", "v"), "v")
			// So does one that starts, and rotating again works.
			again := open(t, dir, "", store)
			wantOpen(t, again, "ann", "f", sealed, canary)
			if err := again.Rotate(t.Context()); err != nil {
				t.Fatal(err)
			}
			last := open(t, dir, "", store)
			wantOpen(t, last, "ann", "f", sealed, canary)
			if _, err := os.Stat(filepath.Join(dir, nextFile)); err == nil {
				t.Error("the new key file is left over")
			}
		})
	}
}

// A rotation that died may be followed by another rotation without an opening between.
func TestRotateAfterCrashWithoutOpen(t *testing.T) {
	for _, at := range []string{"written", "rewrapped"} {
		dir, store := t.TempDir(), NewMemKeys()
		k := open(t, dir, "", store)
		sealed := mustSeal(t, k, "ann", "f", canary)
		k.step = func(name string) error {
			if name == at {
				return errCrash
			}
			return nil
		}
		if err := k.Rotate(t.Context()); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		k.step = func(string) error { return nil }
		if err := k.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantOpen(t, open(t, dir, "", store), "ann", "f", sealed, canary)
	}
}

func TestRotateBesideLiveKeyring(t *testing.T) {
	dir, store := t.TempDir(), NewMemKeys()
	live := open(t, dir, "", store)
	sealed := mustSeal(t, live, "ann", "f", canary)
	mustSeal(t, open(t, dir, "", store), "bob", "f", canary)
	if err := open(t, dir, "", store).Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOpen(t, live, "ann", "f", sealed, canary)
	// A new user: AddDataKey refuses. A user not in the cache: unwrapping refuses.
	wantOpen(t, live, "new", "f", mustSeal(t, live, "new", "f", "v"), "v")
	if err := open(t, dir, "", store).Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOpen(t, live, "bob", "f", mustSeal(t, live, "bob", "f", "v"), "v")
	if live.MasterID() != store.master {
		t.Error("the live keyring did not follow")
	}
}

func TestConcurrentRotations(t *testing.T) {
	dir, store := t.TempDir(), NewMemKeys()
	live := open(t, dir, "", store)
	sealed := mustSeal(t, live, "ann", "f", canary)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			k, err := OpenKeyring(t.Context(), dir, "", store)
			if err == nil {
				err = k.Rotate(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
		// The live one may lose one race against a rotation, not two; more would be a refusal that
		// the caller sees, never wrong data.
		wg.Go(func() {
			user := fmt.Sprint("user", i)
			b, err := live.Seal(t.Context(), user, "f", []byte("v"))
			if errors.Is(err, ErrWrongMaster) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			wantOpen(t, live, user, "f", b, "v")
		})
	}
	wg.Wait()
	wantOpen(t, open(t, dir, "", store), "ann", "f", sealed, canary)
}

func TestRotateEnv(t *testing.T) {
	oldKey, newKey := hex.EncodeToString([]byte(strings.Repeat("old!", 8))), hex.EncodeToString([]byte(strings.Repeat("new!", 8)))
	store := NewMemKeys()
	k, live := open(t, "", oldKey, store), open(t, "", oldKey, store)
	sealed := mustSeal(t, k, "ann", "f", canary)
	if err := k.Rotate(t.Context()); err == nil {
		t.Error("a key from the environment was rotated into a file")
	}
	if err := k.RotateTo(t.Context(), "short"); err == nil {
		t.Error("a short key was taken")
	}
	if err := k.RotateTo(t.Context(), newKey); err != nil {
		t.Fatal(err)
	}
	wantOpen(t, k, "ann", "f", sealed, canary)
	wantOpen(t, open(t, "", newKey, store), "ann", "f", sealed, canary)
	if _, err := OpenKeyring(t.Context(), "", oldKey, store); !errors.Is(err, ErrWrongMaster) {
		t.Errorf("the old key gave %v", err)
	}
	if _, err := live.Seal(t.Context(), "new", "f", nil); !errors.Is(err, ErrWrongMaster) {
		t.Errorf("a live keyring with the old key gave %v", err)
	}
	file := open(t, t.TempDir(), "", NewMemKeys())
	if err := file.RotateTo(t.Context(), newKey); err == nil {
		t.Error("a file key was rotated to a given one")
	}
}
