package datadir

import (
	"log/slog"
	"os"
	"path/filepath"
)

// WarnIfOpen logs a warning if other users of this machine can use a data directory.
func WarnIfOpen(dir string, log *slog.Logger) {
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("other users of this machine can read the data directory; run: chmod 700 "+dir, "mode", info.Mode().Perm().String())
	}
}

// WarnIfOtherDriver logs a warning if the server used another sandbox driver at its last start: workspaces of that driver cannot be used.
func WarnIfOtherDriver(dir, driver string, log *slog.Logger) {
	file := filepath.Join(dir, "sandbox.driver")
	before, err := os.ReadFile(file)
	if err == nil && string(before) == driver {
		return
	}
	if err == nil {
		log.Warn("the sandbox driver changed: conversations with a workspace of the old driver cannot use it; "+
			"if the container engine is down, start it and restart the server; to fix the driver, set --sandbox", "before", string(before), "now", driver)
	}
	if err := os.WriteFile(file, []byte(driver), 0o600); err != nil {
		log.Warn("cannot record the sandbox driver", "error", err)
	}
}
