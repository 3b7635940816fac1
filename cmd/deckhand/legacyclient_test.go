package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/npmtest"
)

// socketIOClient is the client that the legacy front end's last version was built with.
const socketIOClient = "4.8.1"

// legacyScript runs the script of a legacy client against an address.
func legacyScript(t *testing.T, base, key, transports string) {
	t.Helper()
	modules := npmtest.Install(t, "socket.io-client-"+socketIOClient, "socket.io-client@"+socketIOClient)
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "legacy-client", "conversation.mjs"), base, key, transports)
	cmd.Env = append(os.Environ(), "MODULES="+modules)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// A script written for the legacy server goes through a whole conversation, on every
// transport: create, follow, confirm, reject, a cut in the middle, stop, resume.
func TestLegacyClient(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	for name, transports := range map[string]string{"polling": "polling", "websocket": "websocket", "upgrade": "polling,websocket"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := l.person(t, "legacy-"+name, steps(shell("echo one"), shell("echo two")), confirm)
			legacyScript(t, p.base, p.key, transports)
			if strings.Contains(l.logs.String(), p.key) {
				t.Error("the key is in the log")
			}
		})
	}
}
