package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRPM installs, upgrades and removes the rpm packages with rpm in a separate root. Scripts of the packages are not run: they are the same
// as in the deb packages. DECKHAND_RPM_OLD and DECKHAND_RPM_NEW are the paths of the two packages.
func TestRPM(t *testing.T) {
	before, after := os.Getenv("DECKHAND_RPM_OLD"), os.Getenv("DECKHAND_RPM_NEW")
	if before == "" || after == "" {
		t.Skip("SKIPPED: use make package-test, which builds the packages and runs this test")
	}
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("SKIPPED: rpm is not installed; Debian has it in: rpm")
	}
	root := t.TempDir()
	rpm := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("rpm", append([]string{"--root", root, "--nosignature"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("rpm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	config := filepath.Join(root, "etc/deckhand/deckhand.yaml")
	rpm("-K", before)
	rpm("-i", "--nodeps", "--noscripts", before)
	rpm("-V", "--nodeps", "--noscripts", "deckhand")
	if err := os.WriteFile(config, []byte("log-level: debug\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	rpm("-U", "--nodeps", "--noscripts", after)
	if got := rpm("-q", "--qf", "%{VERSION}", "deckhand"); got != "0.2.0" {
		t.Errorf("the version after the upgrade is %s", got)
	}
	if got, err := os.ReadFile(config); err != nil || string(got) != "log-level: debug\n" {
		t.Errorf("the changed config file was not kept: %q, %v", got, err)
	}
	for _, path := range []string{"usr/bin/deckhand", "usr/lib/systemd/system/deckhand.service", "usr/share/deckhand/monitoring/alerts.yml", "usr/share/deckhand/sandbox-image", "usr/share/man/man1/deckhand.1.gz"} {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
	}
	rpm("-e", "--nodeps", "--noscripts", "deckhand")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/deckhand")); !os.IsNotExist(err) {
		t.Errorf("the program was not removed: %v", err)
	}
	if _, err := os.Stat(config + ".rpmsave"); err != nil {
		t.Errorf("the changed config file was not saved: %v", err)
	}
}
