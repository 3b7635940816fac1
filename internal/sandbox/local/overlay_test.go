package local

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"deckhand/internal/soak"
)

// onOverlay mounts an overlay, which cannot map owners, makes all mounts shared, as systemd does, and runs a command that keeps its files on the
// overlay.
const onOverlay = `
cd "$1"
shift
mkdir low up work all
mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work all || exit 77
mount --make-rshared /
TMPDIR=$PWD/all exec "$@"
`

// TestOnSharedOverlay starts a sandbox of root in a folder whose owners cannot be mapped, and whose mount is shared.
func TestOnSharedOverlay(t *testing.T) {
	soak.NotShort(t, "starts sandboxes")
	if os.Geteuid() != 0 {
		return // TestAsOrdinaryUser runs this, too
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-euc", onOverlay, "sh", t.TempDir(), os.Args[0], "-test.v", "-test.run=^TestTimerSlack$")
	cmd.Env = append(os.Environ(), RunnerVariable())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() == 77 {
		t.Skipf("SKIPPED: an overlay cannot be mounted here: %s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestTimerSlack") {
		t.Errorf("%v\n%s", err, out)
	}
}
