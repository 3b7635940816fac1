package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/privatefiles"
	"deckhand/internal/sandbox/local/rights"
)

// A file of the machine's root that appears after the server has started stays closed
// to the root of sandboxes that start later.
func TestPrivateFilesThatAppearLater(t *testing.T) {
	if !rights.Find(firstUser, lastUser+rangeSize).Trees {
		t.Skip("SKIPPED: owners are not mapped, so there is nothing to mask")
	}
	d := newDriver(t)
	dir, err := os.MkdirTemp("/usr/local/share", "deckhand-test-")
	if err != nil {
		t.Skipf("SKIPPED: the system's folders cannot be written to: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "new"), 0o755), os.WriteFile(filepath.Join(dir, "new/key"), []byte("root-only-canary"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, d, sandbox.Spec{ID: "later"})
	if got := sh(t, s, "id -u; cat "+dir+"/new/key"); strings.Contains(got, "canary") || !strings.HasPrefix(got, "0") {
		t.Errorf("inside: %q", got)
	}
}

// A machine with many private files does without the mapping that would open them.
func TestTooManyPrivateFiles(t *testing.T) {
	b := &base{data: "/opt/deckhand/data", layers: systemLayers()}
	b.setMasked(privatefiles.Found{Many: true, Paths: []string{"/usr/x"}})
	if masked, unmapped := b.hidden(); len(masked) != 0 || unmapped == "" {
		t.Errorf("masked %v, unmapped %q", masked, unmapped)
	}
	b = &base{data: "/usr/lib/deckhand", layers: systemLayers()}
	b.setMasked(privatefiles.Found{Paths: []string{"/usr/x"}})
	if masked, _ := b.hidden(); !slices.Equal(masked, []string{"/usr/lib/deckhand", "/usr/x"}) {
		t.Errorf("sandboxes in the system's folder are masked as %v", masked)
	}
}

func TestSecretNames(t *testing.T) {
	for name, want := range map[string]bool{
		"/etc/shadow": true, "/etc/shadow-": true, "/etc/gshadow": true, "/etc/sudoers": true, "/etc/ssl/private": true, "/etc/ssh": true,
		"/etc/nginx/site.key": true, "/etc/krb5.keytab": true, "/etc/app/Credentials.json": true, "/etc/deckhand.env": true,
		"/etc/passwd": false, "/etc/hosts": false, "/etc/ssl/certs": false, "/etc/apt/trusted.gpg.d/archive.asc": false, "/etc/apt/keyrings": false, "/etc/profile": false,
	} {
		if got := secret(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTemplateIsStable(t *testing.T) {
	dir := t.TempDir()
	a, err := makeTemplate(dir, systemLayers(), nil, "/nowhere")
	if err != nil {
		t.Fatal(err)
	}
	b, err := makeTemplate(dir, systemLayers(), nil, "/nowhere")
	if err != nil || a != b {
		t.Errorf("made twice: %s, %s, %v", a, b, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
	passwd, err := os.ReadFile(filepath.Join(a, "etc/passwd"))
	if err != nil || !strings.Contains(string(passwd), "root:x:0:0:") {
		t.Errorf("users: %s, %v", passwd, err)
	}
	for line := range strings.Lines(string(passwd)) {
		if f := strings.Split(line, ":"); len(f[2]) == 4 {
			t.Errorf("%s is a person", f[0])
		}
	}
}

func TestUsersAreUnique(t *testing.T) {
	u := &users{dir: "/x", taken: map[uint32]string{}}
	first, err := u.take("a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := u.take("a") // the same start of the search
	if err != nil || second == first || first < firstUser || first > lastUser || first%rangeSize != 0 {
		t.Errorf("%d, %d, %v", first, second, err)
	}
	u.free(first)
	if again, err := u.take("a"); err != nil || again != first {
		t.Errorf("a free range is not used again: %d, %v", again, err)
	}
}
