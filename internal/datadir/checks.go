package datadir

import (
	"log/slog"
	"os"
	"path/filepath"
)

// WarnIfOpen logs a warning if other users of this machine can access a data directory.
func WarnIfOpen(dir string, log *slog.Logger) {
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("other users of this machine can access the data directory; run: chmod 700 "+dir, "mode", info.Mode().Perm().String())
	}
}

// WarnIfOtherDriver logs a warning if the server used another sandbox driver at its last start, because it cannot use the workspaces of
// that driver.
func WarnIfOtherDriver(dir, driver string, log *slog.Logger) {
	file := filepath.Join(dir, "sandbox.driver")
	before, err := os.ReadFile(file)
	if err == nil && string(before) == driver {
		return
	}
	if err == nil {
		log.Warn("the sandbox driver changed, so workspaces of the old driver cannot be used; "+
			"if the container engine is down, start it and restart the server; to choose the driver, set --sandbox", "before", string(before), "now", driver)
	}
	if err := os.WriteFile(file, []byte(driver), 0o600); err != nil {
		log.Warn("cannot record the sandbox driver", "error", err)
	}
}
