package local_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/sandbox/sandboxtest"
)

// suite is the driver with the real runner, for what every driver must pass.
func suite() sandboxtest.Options {
	dir := func(t *testing.T) string { return filepath.Join(sandboxtest.Dir(t), "boxes") }
	return sandboxtest.Options{
		New: func(t *testing.T, out sandbox.Outward) sandbox.Driver {
			d, err := local.New(local.Options{Dir: dir(t), Runner: sandboxtest.Runner(t), Outward: out})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Confined: true, Limits: os.Getuid() == 0, Disk: true, Shell: "bash", State: dir,
		Kill: func(t *testing.T, h sandbox.Handle) {
			var meta struct{ PID int }
			b, err := os.ReadFile(filepath.Join(dir(t), h.ID, "meta.json"))
			if err == nil {
				err = json.Unmarshal(b, &meta)
			}
			if err != nil {
				t.Fatal(err)
			}
			sandboxtest.Kill(t, meta.PID)
		},
	}
}

func TestSuite(t *testing.T) { sandboxtest.Run(t, suite()) }

func TestEscapes(t *testing.T) { sandboxtest.Escapes(t, suite()) }

// The same by a user without rights.
func TestSuiteAsUser(t *testing.T) {
	if os.Getuid() == 0 {
		sandboxtest.AsUser(t, "^(TestSuite|TestEscapes)$", local.RunnerVariable())
	}
}
