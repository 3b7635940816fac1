package checkout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/session"
)

// What the set-up script of a repository without trust does to have git run programs is
// taken back, wherever it is written. Other settings stay, and so does Git LFS.
func testUntrustedSettings(t *testing.T, one *rig) {
	const plant = `mkdir -p /workspace/evil ~/.config/git .git/hooks .git/info
printf '#!/bin/sh\ntouch /workspace/owned\n' > /workspace/evil/post-commit; chmod +x /workspace/evil/post-commit
cp /workspace/evil/post-commit .git/hooks/post-commit
git config --global core.hooksPath /workspace/evil
git config --file ~/.config/git/config core.hooksPath /workspace/evil
git config --file ~/more include.path x; git config --global include.path ~/more; git config --file ~/more core.hooksPath /workspace/evil
for key in core.hooksPath core.fsmonitor core.sshCommand filter.x.clean diff.x.textconv credential.helper; do git config $key 'touch /workspace/owned;:'; done
git config alias.co '!touch /workspace/owned'; git config alias.st status
git config --global pull.rebase true; git config --global filter.lfs.clean 'git-lfs clean -- %f'; git config --global filter.lfs.required true
git config filter.lfs.smudge 'touch /workspace/owned'
echo '* filter=x' > .git/info/attributes
for name in git ls; do rm -f ~/.deckhand/bin/$name; cp /workspace/evil/post-commit ~/.deckhand/bin/$name; done
`
	one.forge.repository("planted", map[string]string{"README.md": "Hello\n", ".openhands/setup.sh": plant})
	untrusted := *one
	untrusted.foreign = true
	r := untrusted.again(t, session.Created{Repository: "octo/planted"})
	r.config.Confinable, r.src.Template = true, true
	t.Cleanup(func() { one.sh("rm -rf ~/.gitconfig* ~/.config/git ~/more") })
	if st := r.prepared(); st.SetUp == nil || st.SetUp.Exit != 0 {
		t.Fatalf("%+v", st.SetUp)
	}
	if got := r.sh(`echo x >> README.md; git status --short; git commit -qam x; git co; git log --format=%s -1; ` + owned); !strings.Contains(got, "x\n") && !strings.HasSuffix(got, "x") || strings.Contains(got, "/owned") {
		t.Errorf("it ran: %s", got)
	}
	got := r.sh(`for f in ~/.gitconfig ~/.config/git/config .git/config; do git config --file $f --list; done | sort; ls -A ~ .git .git/hooks | grep untrusted | sort`)
	for _, want := range []string{"alias.st=status", "pull.rebase=true", "filter.lfs.clean=git-lfs clean -- %f", "filter.lfs.required=true", "remote.origin.url=",
		".gitconfig.untrusted", "config.untrusted", "post-commit.untrusted"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing: %s", want, got)
		}
	}
	for _, bad := range []string{"hookspath", "include", "fsmonitor", "sshcommand", "filter.x", "textconv", "alias.co", "filter.lfs.smudge", "helper"} {
		if strings.Contains(got, bad) {
			t.Errorf("%s is still there: %s", bad, got)
		}
	}
}

// The script for commits runs as it was cloned. Another one, from a fork's branch say, does
// not run, and the commit goes on.
func testForeignCommitScript(t *testing.T, one *rig) {
	f := one.forge
	long := "echo checked\nexit 0\n" + strings.Repeat("# A long script.\n", 5000)
	f.repository("forked", map[string]string{"README.md": "Hello\n", ".openhands/pre-commit.sh": long})
	work := t.TempDir()
	f.git("", "clone", "-q", f.path("forked"), work)
	must(t, os.WriteFile(filepath.Join(work, ".openhands/pre-commit.sh"), []byte(long+"# The end.\ntouch /workspace/owned\n"), 0o755))
	f.git("", "-C", work, "commit", "-q", "-a", "-m", "A pull request")
	f.git("", "-C", work, "push", "-q", "origin", "HEAD:refs/pull/1/head")
	r := one.again(t, session.Created{Repository: "octo/forked"})
	if h := r.prepared().Hook; h == nil || !h.Installed {
		t.Fatalf("%+v", h)
	}
	const warning = "deckhand: .openhands/pre-commit.sh changed since it was cloned or approved, and was not run"
	got := r.sh(`git commit -q --allow-empty -m One; git fetch -q origin refs/pull/1/head; git checkout -q FETCH_HEAD 2>/dev/null; git commit -q --allow-empty -m Two; git log -1 --format=%s; git switch -q -; git commit -q --allow-empty -m Three; ` + owned)
	if got != "checked\n"+warning+"\nTwo\nchecked" {
		t.Errorf("%q", got)
	}
}

// A repository that comes to be trusted has its script for commits installed as it was cloned.
func testLateCommitScript(t *testing.T, one *rig) {
	one.forge.repository("late", map[string]string{"README.md": "Hello\n", ".openhands/pre-commit.sh": "echo checked\n"})
	untrusted := *one
	untrusted.foreign = true
	r := untrusted.again(t, session.Created{Repository: "octo/late"})
	if h := r.prepared().Hook; h == nil || h.Installed || !strings.Contains(h.Problem, "not trusted") {
		t.Fatalf("%+v", h)
	}
	_, err := r.sessions.Update(t.Context(), r.id, func(s session.State) ([]session.Payload, error) {
		return s.SetTrust(session.TrustSet{Trusted: true, Reason: session.TrustByUser})
	})
	must(t, err)
	r.sh("echo echo another > .openhands/pre-commit.sh")
	if h := r.prepared().Hook; h.Installed || !strings.Contains(h.Problem, "changed since it was cloned") {
		t.Errorf("%+v", h)
	}
	if got := r.sh("git commit -q --allow-empty -m One; git checkout -q ."); got != "" {
		t.Errorf("%q", got)
	}
	if h := r.prepared().Hook; !h.Installed {
		t.Errorf("%+v", h)
	}
	if got := r.sh("git commit -q --allow-empty -m Two"); got != "checked" {
		t.Errorf("%q", got)
	}
}
