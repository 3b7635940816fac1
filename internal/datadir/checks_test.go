package datadir

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without its database, or with another one, workspaces are not used, and checking that changes nothing.
func TestCheckWorkspaces(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "boxes")
	if err := CheckWorkspaces(dir, ""); err != nil {
		t.Errorf("no folder: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the check made the folder")
	}
	if err := ClaimWorkspaces(dir, "a"); err != nil {
		t.Fatal(err)
	}
	if err := CheckWorkspaces(dir, "a"); err != nil {
		t.Error(err)
	}
	for _, other := range []string{"", "b"} {
		if err := CheckWorkspaces(dir, other); err == nil || !strings.Contains(err.Error(), "belong to another database; ") || !strings.Contains(err.Error(), "mv "+dir) {
			t.Errorf("%q: %v", other, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	WarnIfOpen(dir, log)
	WarnIfOtherDriver(dir, "docker", log)
	WarnIfOtherDriver(dir, "docker", log)
	if out.Len() > 0 {
		t.Errorf("logged %s", &out)
	}
	WarnIfOtherDriver(dir, "local", log)
	if got := out.String(); !strings.Contains(got, "before=docker now=local") {
		t.Errorf("logged %s", got)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	WarnIfOpen(dir, log)
	if got := out.String(); !strings.Contains(got, "chmod 700") {
		t.Errorf("logged %s", got)
	}
}
