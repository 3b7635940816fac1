package gitprovider

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestValidRepository(t *testing.T) {
	for name, good := range map[string]bool{
		"a/b": true, "Owner-1/name.with_all-9": true, "group/sub/deep/project": true, "a/.github": true, "~user/repo": true, "a/b.git": true, "_x/y": true, "0/0": true,
		"": false, "a": false, "/a/b": false, "a/b/": false, "a//b": false, "a/..": false, "../b": false, "a/../b": false, "a/.": false, "./b": false, "a/b..c": false,
		"-a/b": false, "a/-b": false, "--upload-pack=x/y": false, "ext::sh/x": false, "file:///x": false, "https://h/a/b": false, "git@h:a/b": false, "a/b c": false, "a/b\n": false,
		"a/b\x00": false, "a\\b/c": false, "a/b?x": false, "a/b#x": false, "a/b%2e": false, "a/ü": false, "a/b;c": false, "a/$(x)": false, ".a/b": false,
	} {
		if ValidRepository(name) != good {
			t.Errorf("%q: %t, want %t", name, !good, good)
		}
	}
}

// What we let pass, git lets pass too, and never takes for an option.
func TestValidBranchAgreesWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("git is needed, as for everything else here")
	}
	allowed := func(name string) bool {
		return exec.Command(git, "check-ref-format", "--branch", name).Run() == nil // an exit status, nothing else
	}
	for _, name := range []string{"main", "feature/a", "v1.2", "a-b_c", "ü/ß", "a@b", "x{y}", "a.lockx", "HEAD2", "123", "a'b", `a"b`, "a$b", "a&b", "a;b"} {
		if !ValidBranch(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", "-x", "--upload-pack=x", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`, "x.lock", "x.lock/y", "@", "a@{1}", "/a", "a/", "a//b", "a.", ".a", "a/.b", "a\x00", "a\n", "a\x7f"} {
		if ValidBranch(name) {
			t.Errorf("%q is let pass", name)
		}
	}
	letters := rapid.StringMatching(`[-a./@{}~^: \\*lock]{1,9}`)
	rapid.Check(t, func(t *rapid.T) {
		name := letters.Draw(t, "name")
		if ValidBranch(name) && (strings.HasPrefix(name, "-") || !allowed(name)) {
			t.Fatalf("%q is let pass, and git refuses it", name)
		}
	})
}
