package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands that manage a server use the service of the package, unless they name another server or the user has a data directory of their own.
func TestServiceOfThePackage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "home"))
	t.Setenv("DECKHAND_CONFIG", "")
	t.Setenv("DECKHAND_DATA_DIR", "")
	s := Service{Config: filepath.Join(dir, "deckhand.yaml"), Data: filepath.Join(dir, "data")}
	used := func(args ...string) bool {
		r := Resolver{Args: args, Service: s}
		if err := r.Load(); err != nil {
			t.Fatal(err)
		}
		return r.service
	}
	if used("key", "create") {
		t.Error("used a service that is not installed")
	}
	if err := os.WriteFile(s.Config, []byte("addr: 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if !used("key", "create") || !used("--config", s.Config, "config", "show") || !used("health") {
		t.Error("did not use the service")
	}
	for _, args := range [][]string{{"serve"}, {"run", "key"}, {}, {"key", "list", "--data-dir", dir}, {"key", "list", "--data-dir=" + dir}} {
		if used(args...) {
			t.Errorf("%v used the service", args)
		}
	}
	r := Resolver{Args: []string{"key", "create"}, Service: s}
	if err := r.Load(); err != nil || r.file.flags["addr"] != "127.0.0.1:1" {
		t.Errorf("the config file of the service was not read: %v %v", r.file.flags, err)
	}
	s.Environment, s.Credentials = filepath.Join(dir, "environment"), filepath.Join(dir, "credentials")
	if err := os.WriteFile(s.Environment, []byte("# DECKHAND_C=3\nDECKHAND_A=\"x y\"\n  DECKHAND_B=2\nPATH=/none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.Credentials, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	t.Setenv("DECKHAND_A", "") // unset again after the test
	t.Setenv("DECKHAND_B", "own")
	if err := os.Unsetenv("DECKHAND_A"); err != nil {
		t.Fatal(err)
	}
	if used("serve"); os.Getenv("DECKHAND_A") != "" {
		t.Error("serve has the environment of the service")
	}
	if used("doctor"); os.Getenv("DECKHAND_A") != "x y" || os.Getenv("DECKHAND_B") != "own" || os.Getenv("DECKHAND_C") != "" || os.Getenv("PATH") == "/none" {
		t.Errorf("environment: %q", os.Environ())
	}
	if got := os.Getenv("CREDENTIALS_DIRECTORY"); got != s.Credentials {
		t.Errorf("credentials: %q", got)
	}
	if got := s.Hint(dir); !strings.Contains(got, "--data-dir "+s.Data) || s.Hint(s.Data) != "" {
		t.Errorf("hint: %q", got)
	}
	if err := os.MkdirAll(DefaultDataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if used("key", "create") {
		t.Error("used the service, but the user has a data directory")
	}
}
