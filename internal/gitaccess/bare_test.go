package gitaccess_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"deckhand/internal/gitaccess"
)

// Git does not run the configuration of a bare repository that is part of a project, and still uses bare repositories as remotes.
func TestProtectBare(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada"}
	gitaccess.ProtectBare(env)
	run := func(env map[string]string, script string) (string, error) {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_EMAIL=a@b")
		for name, value := range env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	marker := filepath.Join(dir, "owned")
	if out, err := run(nil, `git init -q app; mkdir -p app/vendor/evil/work; cd app/vendor/evil; git init -q --bare .
git config core.bare false; git config core.worktree work; git config core.fsmonitor 'touch `+marker+`; false'`); err != nil {
		t.Fatal(err, out)
	}
	attack := "git -C app/vendor/evil status || true; cd app/vendor/evil && git status || true"
	if out, err := run(env, attack); err != nil {
		t.Fatal(err, out)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("git ran the program of an embedded repository")
	}
	if out, err := run(env, `git init -q --bare origin.git; cd app; git commit -q --allow-empty -m first; git remote add origin ../origin.git
git push -q origin HEAD:main; git fetch -q; git clone -q ../origin.git ../copy; git --git-dir ../origin.git log -1 main`); err != nil {
		t.Errorf("a bare remote does not work: %v %s", err, out)
	}
	if _, err := run(nil, attack); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("the attack does not work without protection, so this test proves nothing")
	}
}
