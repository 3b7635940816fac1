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
	for _, args := range [][]string{
		{"key", "create"}, {"--config", s.Config, "config", "show"}, {"health"}, {"backup", dir}, {"restore", dir},
		{"key", "list", "--data-dir", s.Data}, {"key", "list", "--data-dir=" + s.Data + "/"},
	} {
		if !used(args...) {
			t.Errorf("%v did not use the service", args)
		}
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
	if got := s.ClientHint(dir); !strings.Contains(got, "--key-file") || s.ClientHint(s.Data) != "" {
		t.Errorf("hint for clients: %q", got)
	}
	if err := os.MkdirAll(filepath.Join(DefaultDataDir(), "run"), 0o700); err != nil { // as deckhand run does
		t.Fatal(err)
	}
	if !used("key", "create") {
		t.Error("did not use the service after deckhand run")
	}
	for _, name := range []string{"deckhand.db", "server.lock"} {
		file := filepath.Join(DefaultDataDir(), name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if used("key", "create") || !used("key", "create", "--data-dir", s.Data) {
			t.Errorf("%s: the user has a server, which must be used by default, and the service if it is named", name)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(s.Data); err != nil {
		t.Fatal(err)
	}
	if !used("restore", dir) || used("backup", dir) {
		t.Error("only restore is for the service if its data is missing")
	}
}

// Folders are created for the owner of the data, or for the user of the service if there is no data.
func TestSwitchUserCreatesFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := Service{Data: filepath.Join(dir, "data"), User: "root"}
	if uid, gid, err := s.owner(); uid != 0 || gid != 0 || err != nil {
		t.Errorf("the owner of missing data: %d %d %v", uid, gid, err)
	}
	made := filepath.Join(dir, "a", "b")
	if err := createFor(os.Getuid(), os.Getgid(), made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("created %v %v", info, err)
	}
	if err := createFor(os.Getuid(), os.Getgid(), dir); err != nil {
		t.Errorf("an existing folder: %v", err)
	}
	if _, _, err := (Service{Data: s.Data, User: "no such user"}).owner(); err == nil {
		t.Error("found a user that does not exist")
	}
}
