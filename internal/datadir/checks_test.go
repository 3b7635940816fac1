package datadir

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
)

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
