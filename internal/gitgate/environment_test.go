package gitgate_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"deckhand/internal/gitgate"
)

// Real git finds the gate for every spelling of a site, and for nothing else.
func TestEnvironment(t *testing.T) {
	sites := []gitgate.Site{{Scheme: "https", Host: "github.com"}, {Scheme: "http", Host: "127.0.0.1:3000"}, {Scheme: "https", Host: "[::1]"}, {Scheme: "https", Host: "127.0.0.1"}}
	env := gitgate.Environment(map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada"}, sites, "http://127.0.0.1:3128")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		for name, value := range env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("git %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const gate = "http://" + gitgate.Name
	for from, want := range map[string]string{
		"https://github.com/octo/app":           gate + "/https/github.com/octo/app",
		"https://github.com:443/octo/app.git":   gate + "/https/github.com/octo/app.git",
		"git@github.com:octo/app.git":           gate + "/https/github.com/octo/app.git",
		"ssh://git@github.com/octo/app.git":     gate + "/https/github.com/octo/app.git",
		"http://127.0.0.1:3000/octo/app.git":    gate + "/http/127.0.0.1:3000/octo/app.git",
		"ssh://git@127.0.0.1/octo/app.git":      gate + "/http/127.0.0.1:3000/octo/app.git",
		"https://127.0.0.1/octo/app.git":        gate + "/https/127.0.0.1/octo/app.git",
		"https://[::1]/octo/app.git":            gate + "/https/[::1]/octo/app.git",
		"http://github.com/octo/app":            "http://github.com/octo/app",
		"https://github.com.evil.test/octo/app": "https://github.com.evil.test/octo/app",
		"https://api.github.com/octo/app":       "https://api.github.com/octo/app",
		"http://127.0.0.1:30001/octo/app":       "http://127.0.0.1:30001/octo/app",
	} {
		if got := git("ls-remote", "--get-url", from); got != want {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
	if got := git("config", "user.name"); got != "Ada" {
		t.Errorf("the user's own configuration is lost: %q", got)
	}
	if got := git("config", "--get-urlmatch", "http.proxy", gate+"/https/github.com/octo/app"); got != "http://127.0.0.1:3128" {
		t.Errorf("proxy %q", got)
	}
	if env["GIT_TERMINAL_PROMPT"] != "0" {
		t.Error("git would ask")
	}
	if bare := gitgate.Environment(nil, nil, "x"); len(bare) != 1 || bare["GIT_TERMINAL_PROMPT"] != "0" {
		t.Errorf("without sites: %v", bare)
	}
}
