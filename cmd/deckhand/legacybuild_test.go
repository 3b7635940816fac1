package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"deckhand/internal/npmtest"
)

// legacyBuild is the folder of a stock build of the legacy front end, from the
// environment. TestMain takes it away: to every server it would be a flag.
var legacyBuild string

// monacoEditor is the version that the front ends ask the CDN for.
const monacoEditor = "0.52.2"

// A stock build of the legacy front end works unchanged, in a real browser: what a person does
// in it, and a server that is killed meanwhile. scripts/legacy-ui DIR runs it.
func TestLegacyBuildInABrowser(t *testing.T) {
	if legacyBuild == "" {
		t.Skip("SKIPPED: DECKHAND_LEGACY_UI does not name a stock build of the legacy front end; docs/testing.md says how to make one")
	}
	program := findChromium(t)
	modules := npmtest.Install(t, "monaco-editor-"+monacoEditor, "monaco-editor@"+monacoEditor)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // users of sandboxes pass through
		t.Fatal(err)
	}
	args := append(withSandbox(t, bestDriver(t)), "--addr", freeAddress(t), "--legacy-ui", legacyBuild, "--legacy-ui-allow", "cdn.jsdelivr.net")
	var b *box
	var process *exec.Cmd
	b, process = spawn(t, dir, args...)
	defer func() { (&person{box: b}).dropAll() }()
	job := map[string]any{"base": b.base, "link": b.link, "keys": map[string]string{"admin": b.key}, "chromium": program,
		"pictures": os.Getenv("DECKHAND_PICTURES"), "monaco": filepath.Join(modules, "monaco-editor")}
	act(t, "legacy.mjs", job, func(t *testing.T, what string) {
		switch what {
		case "kill":
			_ = process.Process.Kill()
			_ = process.Wait()
		case "start":
			b, process = spawn(t, dir, args...)
		default:
			t.Fatalf("nobody knows how to %q", what)
		}
	})
}
