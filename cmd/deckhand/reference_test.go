package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/cli"
)

// docs/flags.md is up to date. Drivers and providers that tests add are left out.
func TestFlagsPage(t *testing.T) {
	t.Parallel()
	if os.Getenv(builtProgram) == "" {
		t.Skipf("SKIPPED: %s does not name the program", builtProgram)
	}
	page, err := os.ReadFile("../../docs/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := process("reference", "markdown").Output(); err != nil || string(got) != string(page) {
		t.Errorf("docs/flags.md is out of date: run make flags (%v)", err)
	}
}

// The config file that packages install is valid as installed, and with every default uncommented.
func TestCommentedConfigFile(t *testing.T) {
	t.Parallel()
	text := must(t, "reference", "config")
	file := writeConfig(t, filepath.Join(t.TempDir(), "deckhand.yaml"), text)
	must(t, "config", "check", "--config", file)
	for _, flag := range []string{"addr", "rate-limit", "log-level", "suspend-after", "idle-close"} {
		text = strings.Replace(text, "\n#"+flag+": ", "\n"+flag+": ", 1)
	}
	if got := must(t, "config", "show", "--config", writeConfig(t, file, text)); strings.Count(got, "config file") != 5 {
		t.Errorf("printed %s", got)
	}
}

// There is a manual page for each command, and formatting it gives no warnings.
func TestManualPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, _, errs := command(t, "reference", "man"); code != cli.ExitUsage || !strings.Contains(errs, "man needs --dir") {
		t.Errorf("%d %s", code, errs)
	}
	must(t, "reference", "man", "--dir", dir)
	if page, err := os.ReadFile(filepath.Join(dir, "deckhand-run.1")); err != nil || !strings.Contains(string(page), `Press Ctrl\-C once`) || !strings.Contains(string(page), "\n\\ \\ deckhand run") {
		t.Errorf("the page does not have the long help: %v\n%s", err, page)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is good
	if len(pages) < 20 {
		t.Errorf("only %d pages: %q", len(pages), pages)
	}
	for _, page := range pages {
		if strings.HasSuffix(page, "-reference.1") {
			t.Errorf("%s is a page of a hidden command", page)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if home, _ := os.UserHomeDir(); strings.Contains(string(text), home+"/") {
			t.Errorf("%s names the home of whoever built it", page)
		}
		if _, err := exec.LookPath("groff"); err != nil {
			continue
		}
		out, err := exec.Command("groff", "-man", "-Tutf8", "-ww", "-z", page).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v %s", filepath.Base(page), err, out)
		}
	}
}
