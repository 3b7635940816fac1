package secret

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, dir, env string, store KeyStore) *Keyring {
	t.Helper()
	k, err := OpenKeyring(t.Context(), dir, env, store)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustSeal(t *testing.T, k *Keyring, user, field, value string) []byte {
	t.Helper()
	b, err := k.Seal(t.Context(), user, field, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantOpen(t *testing.T, k *Keyring, user, field string, sealed []byte, want string) {
	t.Helper()
	got, err := k.Open(t.Context(), user, field, sealed)
	if err != nil || string(got) != want {
		t.Fatalf("Open = %q, %v; want %q", got, err, want)
	}
}

func TestSealOpen(t *testing.T) {
	k := open(t, t.TempDir(), "", NewMemKeys())
	for _, v := range []string{"", "x", canary, strings.Repeat("long", 10000)} {
		sealed := mustSeal(t, k, "ann", "llm_api_key", v)
		wantOpen(t, k, "ann", "llm_api_key", sealed, v)
		if v != "" && strings.Contains(string(sealed), v) && len(v) > 3 {
			t.Error("the value is readable")
		}
		if again := mustSeal(t, k, "ann", "llm_api_key", v); string(again) == string(sealed) {
			t.Error("sealing twice gave the same bytes")
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	k := open(t, t.TempDir(), "", NewMemKeys())
	sealed := mustSeal(t, k, "ann", "llm_api_key", canary)
	mustSeal(t, k, "bob", "llm_api_key", canary)
	edit := func(fn func([]byte) []byte) []byte { return fn(append([]byte{}, sealed...)) }
	tests := []struct {
		name, user, field string
		sealed            []byte
	}{
		{"other user", "bob", "llm_api_key", sealed},
		{"user without a key", "eve", "llm_api_key", sealed},
		{"other field", "ann", "search_api_key", sealed},
		{"moved border", "annl", "lm_api_key", sealed},
		{"empty", "ann", "llm_api_key", nil},
		{"header only", "ann", "llm_api_key", sealed[:headerSize]},
		{"cut", "ann", "llm_api_key", sealed[:len(sealed)-1]},
		{"longer", "ann", "llm_api_key", edit(func(b []byte) []byte { return append(b, 0) })},
	}
	for i := range sealed {
		tests = append(tests, struct {
			name, user, field string
			sealed            []byte
		}{fmt.Sprintf("byte %d", i), "ann", "llm_api_key", edit(func(b []byte) []byte { b[i] ^= 1; return b })})
	}
	for _, tt := range tests {
		if _, err := k.Open(t.Context(), tt.user, tt.field, tt.sealed); !errors.Is(err, ErrTampered) {
			t.Errorf("%s: %v", tt.name, err)
		} else if strings.Contains(err.Error(), canary) {
			t.Errorf("%s: the error shows the value", tt.name)
		}
	}
	if string(valueContext("ab", "c")) == string(valueContext("a", "bc")) {
		t.Error("the context is ambiguous")
	}
}

func TestTamperedDataKey(t *testing.T) {
	dir, store := t.TempDir(), NewMemKeys()
	sealed := mustSeal(t, open(t, dir, "", store), "ann", "f", canary)
	good := store.keys["ann"]
	other := good
	other.User = "bob"
	store.keys["bob"] = other
	if _, err := open(t, dir, "", store).Open(t.Context(), "bob", "f", sealed); !errors.Is(err, ErrTampered) {
		t.Errorf("a data key moved to another user: %v", err)
	}
	for i := range good.Wrapped {
		bad := good
		bad.Wrapped = append([]byte{}, good.Wrapped...)
		bad.Wrapped[i] ^= 1
		store.keys["ann"] = bad
		if _, err := open(t, dir, "", store).Open(t.Context(), "ann", "f", sealed); !errors.Is(err, ErrTampered) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	for _, id := range []string{"", "zz", "0011223344556677"} {
		bad := good
		bad.ID = id
		store.keys["ann"] = bad
		if _, err := open(t, dir, "", store).Open(t.Context(), "ann", "f", sealed); !errors.Is(err, ErrTampered) {
			t.Errorf("id %q: %v", id, err)
		}
	}
}

func TestConcurrentFirstSeals(t *testing.T) {
	dir, store := t.TempDir(), NewMemKeys()
	rings := []*Keyring{open(t, dir, "", store), open(t, dir, "", store)}
	sealed := make([][]byte, 32)
	var wg sync.WaitGroup
	for i := range sealed {
		wg.Go(func() {
			var err error
			if sealed[i], err = rings[i%2].Seal(t.Context(), "ann", "f", []byte(canary)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	fresh := open(t, dir, "", store)
	for _, b := range sealed {
		wantOpen(t, fresh, "ann", "f", b, canary)
	}
}

func TestCacheIsBounded(t *testing.T) {
	k := open(t, t.TempDir(), "", NewMemKeys())
	for i := range maxCached {
		k.cache[fmt.Sprint(i)] = &openKey{}
	}
	sealed := mustSeal(t, k, "ann", "f", canary)
	if len(k.cache) > maxCached {
		t.Errorf("%d keys in memory", len(k.cache))
	}
	wantOpen(t, k, "ann", "f", sealed, canary)
}

// A user who was removed and made again by another process has a new data key.
func TestKeyReplacedElsewhere(t *testing.T) {
	dir, store := t.TempDir(), NewMemKeys()
	a, b := open(t, dir, "", store), open(t, dir, "", store)
	mustSeal(t, a, "ann", "f", "old")
	mustSeal(t, b, "ann", "f", "old")
	store.mu.Lock()
	delete(store.keys, "ann")
	store.mu.Unlock()
	b.Forget("ann")
	wantOpen(t, a, "ann", "f", mustSeal(t, b, "ann", "f", canary), canary)
}

func TestMasterFromEnv(t *testing.T) {
	key := []byte(strings.Repeat("k3Y?", 8))
	forms := []string{
		base64.StdEncoding.EncodeToString(key), base64.RawStdEncoding.EncodeToString(key),
		base64.URLEncoding.EncodeToString(key), hex.EncodeToString(key), " " + hex.EncodeToString(key) + "\n",
	}
	store := NewMemKeys()
	sealed := mustSeal(t, open(t, "", forms[0], store), "ann", "f", canary)
	for _, f := range forms {
		wantOpen(t, open(t, "", f, store), "ann", "f", sealed, canary)
	}
	for _, bad := range []string{"short-Passw0rd", strings.Repeat("a", 63), strings.Repeat("zz", 32), base64.StdEncoding.EncodeToString(key[:31])} {
		_, err := OpenKeyring(t.Context(), t.TempDir(), bad, store)
		if err == nil || strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), EnvMaster) {
			t.Errorf("a bad key gave %v", err)
		}
	}
	_, err := OpenKeyring(t.Context(), "", hex.EncodeToString([]byte(strings.Repeat("else", 8))), store)
	if !errors.Is(err, ErrWrongMaster) {
		t.Errorf("another key gave %v", err)
	}
	if _, err := ParseMaster(forms[0]); err != nil {
		t.Error(err)
	}
}

func TestMasterFile(t *testing.T) {
	dir, store := t.TempDir(), NewMemKeys()
	path := filepath.Join(dir, keyFile)
	sealed := mustSeal(t, open(t, dir, "", store), "ann", "f", canary)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	wantOpen(t, open(t, dir, "", store), "ann", "f", sealed, canary)
	m, err := readMaster(path)
	if err != nil || m.ID() != store.master {
		t.Errorf("readMaster: %v, %v", m.ID(), err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o610} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeyring(t.Context(), dir, "", store); err == nil || !strings.Contains(err.Error(), "chmod 600") || strings.Contains(err.Error(), "another master key") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if err := os.WriteFile(path, []byte("not a Key"), 0o600); err != nil || os.Chmod(path, 0o600) != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeyring(t.Context(), dir, "", store); err == nil || strings.Contains(err.Error(), "not a Key") || strings.Contains(err.Error(), "another master key") || !strings.Contains(err.Error(), "does not contain a master key") {
		t.Errorf("a damaged file gave %v", err)
	}
	// With data that needs the key, no new one may be made in its place.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeyring(t.Context(), dir, "", store); !errors.Is(err, ErrNoMaster) || !strings.Contains(err.Error(), "restore the master.key") {
		t.Errorf("a missing file gave %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a new key was made though data needs the old one")
	}
}

// Reading needs the same key and leaves nothing in the data directory.
func TestReadKeyring(t *testing.T) {
	t.Parallel()
	dir, other, store := t.TempDir(), t.TempDir(), NewMemKeys()
	if _, err := ReadKeyring(t.Context(), dir, "", store); !errors.Is(err, ErrUnused) {
		t.Errorf("without data: %v", err)
	}
	sealed := mustSeal(t, open(t, other, "", store), "ann", "f", canary)
	if _, err := ReadKeyring(t.Context(), dir, "", store); !errors.Is(err, ErrNoMaster) {
		t.Errorf("without the file: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	k, err := ReadKeyring(t.Context(), other, "", store)
	if err != nil {
		t.Fatal(err)
	}
	wantOpen(t, k, "ann", "f", sealed, canary)
	if _, err := ReadKeyring(t.Context(), "", strings.Repeat("0f", 32), store); !errors.Is(err, ErrWrongMaster) || !strings.Contains(err.Error(), "set "+EnvMaster) {
		t.Errorf("another key: %v", err)
	}
}

func TestConcurrentFirstOpen(t *testing.T) {
	dir, store := t.TempDir(), NewMemKeys()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := OpenKeyring(context.Background(), dir, "", store); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
