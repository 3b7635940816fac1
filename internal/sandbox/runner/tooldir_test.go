package runner

import (
	"os"
	"path/filepath"
	"testing"
)

// Tool servers never start in the workspace, wherever an image says that home is.
func TestToolServersStartOutsideTheWorkspace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	workspace, home := filepath.Join(dir, "workspace"), filepath.Join(dir, "home")
	for _, d := range []string{filepath.Join(workspace, "app"), home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(workspace, link); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{home: home, workspace: "/", filepath.Join(workspace, "app"): "/", link: "/", filepath.Join(dir, "none"): "/", "": "/", "relative": "/"} {
		if got := toolDir(Config{Workspace: workspace, Env: []string{"HOME=" + from}}); got != want {
			t.Errorf("HOME=%s: %s", from, got)
		}
	}
}
