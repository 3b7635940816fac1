package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	dir := func(t *testing.T) string { return filepath.Join(sandboxtest.Dir(t), "boxes") }
	sandboxtest.Run(t, sandboxtest.Options{
		New: func(t *testing.T, _ sandbox.Outward) sandbox.Driver {
			d, err := host.New(host.Options{Dir: dir(t), Runner: sandboxtest.Runner(t)})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		State: dir,
		Kill: func(t *testing.T, h sandbox.Handle) {
			var p struct{ PID int }
			b, err := os.ReadFile(filepath.Join(dir(t), h.ID, "process.json"))
			if err == nil {
				err = json.Unmarshal(b, &p)
			}
			if err != nil {
				t.Fatal(err)
			}
			sandboxtest.Kill(t, p.PID)
		},
	})
}
