package checkout_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"deckhand/internal/checkout"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

var app = map[string]string{
	"README.md":                "Hello\n",
	"deep/file.txt":            "deep\n",
	".openhands/setup.sh":      "set -eu\nexport FROM_SETUP='kept here'\necho ran >> /workspace/runs\necho set up\ncd /\n",
	".openhands/pre-commit.sh": "echo checked\ngrep -q Bad README.md && exit 3\nexit 0\n",
}

var workBranch = regexp.MustCompile(`^deckhand-[a-z0-9]{8}$`)

// A repository is cloned, set up, and worked in; what was done is not done again.
func TestCheckout(t *testing.T) {
	f := newForge(t)
	f.repository("app", app)
	r := newRig(t, f, session.Created{Repository: "octo/app", Provider: "gitea"})
	r.src.Coauthored = true
	st := r.prepared()
	c := st.Checkout
	if c == nil || c.Repository != "octo/app" || c.Provider != "gitea" || !workBranch.MatchString(c.Branch) || !c.Fresh || len(c.Commit) != 40 ||
		c.Dir != "/workspace/app" || c.Folder != "app" || c.Script != ".openhands/setup.sh" || len(c.Notes) > 0 {
		t.Fatalf("%+v", c)
	}
	if u := st.SetUp; u == nil || u.Exit != 0 || u.Problem != "" || !strings.Contains(u.Output, "set up") {
		t.Errorf("%+v", u)
	}
	if got := r.sh(`pwd; echo "$FROM_SETUP"; cat README.md deep/file.txt; git status --short --branch; false; echo alive`); got != "/workspace/app\nkept here\nHello\ndeep\n## "+c.Branch+"\nalive" {
		t.Errorf("%q", got)
	}
	if got := r.sh(`git config remote.origin.url; ls -1A /workspace; bash -c 'exit 0'; exit`); !strings.HasPrefix(got, f.url+"/octo/app.git\napp\nruns") {
		t.Errorf("%q", got)
	}
	if got := r.sh("pwd"); got != "/workspace/app" { // a new shell begins there too
		t.Errorf("%q", got)
	}
	for range 2 {
		before := r.state().Last
		r.open()
		if st := r.prepared(); st.Last != before || st.Checkout.Branch != c.Branch {
			t.Errorf("it was done again: %+v", st.Checkout)
		}
		r.reboot()
	}
	if got := r.sh("cat /workspace/runs"); got != "ran" {
		t.Errorf("the script ran %q", got)
	}
	var steps []string
	for _, p := range r.told {
		steps = append(steps, string(p.Step))
	}
	if got := strings.Join(steps, " "); got != "cloning hooks setup hooks" {
		t.Errorf("people were told %q", got)
	}
}

// These share a sandbox, which takes longer to make than any of them.
func TestInOneSandbox(t *testing.T) {
	one := newRig(t, newForge(t), session.Created{})
	for name, test := range map[string]func(*testing.T, *rig){
		"hooks": testHooks, "templates": testTemplate, "co-authors": testCoauthors, "branches": testBranches, "a lost workspace": testLostWorkspace, "something in the way": testInTheWay, "into the workspace": testIntoTheWorkspace,
		"set up": testSetUp, "untrusted settings": testUntrustedSettings, "a foreign commit script": testForeignCommitScript, "a late commit script": testLateCommitScript, "hostile repositories": testHostileRepositories, "hostile servers": testHostileServers, "hostile addresses": testHostileAddresses,
	} {
		t.Run(name, func(t *testing.T) { test(t, one) })
	}
}

// Commits run the repository's script, and the hooks that were there before.
func testHooks(t *testing.T, one *rig) {
	f := one.forge
	files := map[string]string{"README.md": "Hello\n", ".openhands/pre-commit.sh": app[".openhands/pre-commit.sh"],
		".openhands/setup.sh": "printf '#!/bin/sh\\necho foreign\\ntest ! -e forbid\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit\n"}
	f.repository("hooks", files)
	r := one.again(t, session.Created{Repository: "octo/hooks"})
	r.src.Coauthored = true
	r.prepared()
	got := r.sh(`echo x > a; git add a; git commit -qm 'Add a'; git log -1 --format='%an <%ae>%n%B'`)
	if got != "checked\nforeign\nAda <ada@example.org>\nAdd a\n\nCo-authored-by: Ann <ann@example.org>" {
		t.Errorf("%q", got)
	}
	if got := r.sh(`git commit -q --amend --no-edit; git log -1 --format=%B | grep -c Co-authored`); !strings.HasSuffix(got, "\n1") {
		t.Errorf("%q", got)
	}
	if got := r.sh(`echo Bad >> README.md; git commit -qam 'Bad'; echo "exit $?"`); got != "checked\nexit 1" {
		t.Errorf("the repository's script does not stop a commit: %q", got)
	}
	if got := r.sh(`git checkout -q README.md; touch forbid; git add forbid; git commit -qm 'No'; echo "exit $?"`); got != "checked\nforeign\nexit 1" {
		t.Errorf("the hook that was there does not stop a commit: %q", got)
	}
	if got := r.sh(`git status --short; unset DECKHAND_COAUTHOR; git rm -q --cached forbid; rm forbid; git commit -q --allow-empty -m Alone; git log -1 --format=%B`); !strings.HasSuffix(got, "Alone") {
		t.Errorf("%q", got)
	}
}

// A repository that is made in the sandbox names the user in its commits too, also in a
// conversation without a repository.
func testTemplate(t *testing.T, one *rig) {
	r := one.again(t, session.Created{})
	r.src.Template = true
	r.prepared()
	got := r.sh(`export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=init.templateDir GIT_CONFIG_VALUE_0='` + checkout.Template + `'
git init -q fresh && cd fresh && git commit -q --allow-empty -m 'Begin' && git log -1 --format=%B`)
	if got != "Begin\n\nCo-authored-by: Ann <ann@example.org>" {
		t.Errorf("%q", got)
	}
}

// Commits name the user once, whatever hooks the repository has, and its own hooks run.
func testCoauthors(t *testing.T, one *rig) {
	r := one.again(t, session.Created{})
	r.src.Template = true
	r.prepared()
	const own = `own() { mkdir -p "$1"; printf '#!/bin/sh\necho own ${0##*/} in $(basename "$PWD") >&2\n' > "$1/$2"; chmod +x "$1/$2"; }
fresh() { cd /workspace; git init -q "$1"; cd "$1"; git commit -q --allow-empty -m Zero; }
shows() { git log -1 --format=%B | sed '/^$/d' | paste -sd'|'; }
`
	for name, c := range map[string]struct{ do, want string }{
		"its own hook":      {`fresh a; own .git/hooks prepare-commit-msg; git commit -q --allow-empty -m One; shows`, "own prepare-commit-msg in a\nOne|LINE"},
		"another folder":    {`fresh b; git config core.hooksPath .husky/_; own .husky/_ prepare-commit-msg; own .husky/_ pre-commit; own .husky/_ post-commit; mkdir c; cd c; git commit -q --allow-empty -m One; shows`, "own pre-commit in b\nown prepare-commit-msg in b\nown post-commit in b\nOne|LINE"},
		"of all":            {`fresh d; own ~/hooks commit-msg; git config --global core.hooksPath ~/hooks; git commit -q --allow-empty -m One; git config --global --unset core.hooksPath; shows`, "own commit-msg in d\nOne|LINE"},
		"a file":            {`fresh e; git config core.hooksPath none; echo One > m; git -C . -c user.name=x commit -q --allow-empty -F m; shows`, "One|LINE"},
		"an editor":         {`fresh f; git config core.hooksPath none; GIT_EDITOR="sed -i 1s/^/One/" git -c advice.waitingForEditor=false commit -q --allow-empty -e -m Two; shows`, "OneTwo|LINE"},
		"no message":        {`fresh s; git commit -q --allow-empty -m ""; echo $?; GIT_EDITOR=true git -c advice.waitingForEditor=false commit -q --allow-empty; echo $?; shows`, "Aborting commit due to empty commit message.\n1\nAborting commit due to empty commit message.\n1\nZero|LINE"},
		"an amended commit": {`fresh g; git config core.hooksPath none; git commit -q --allow-empty -m One; git commit -q --allow-empty --amend -m Two; git commit -q --allow-empty --amend --no-edit; GIT_EDITOR=true git -c advice.waitingForEditor=false commit -q --allow-empty --amend; shows`, "Two|LINE"},
		"a line by hand":    {`fresh h; git config core.hooksPath none; git commit -q --allow-empty -m One -m "Co-authored-by: $DECKHAND_COAUTHOR"; shows`, "One|LINE"},
		"a merge":           {`fresh i; git config core.hooksPath none; git checkout -q -b x; git commit -q --allow-empty -m One; git checkout -q -; git commit -q --allow-empty -m Two; git merge -q --no-edit -m Both x; shows; git log -1 --format=%s`, "Both|LINE\nBoth"},
		"a merge unasked":   {`fresh t; git checkout -q -b x; git commit -q --allow-empty -m One; git checkout -q -; git merge -q --no-ff --no-edit x; shows; git log -1 --format=%s`, "Merge branch 'x'|LINE\nMerge branch 'x'"},
		"a rebase":          {`fresh j; git config core.hooksPath none; git commit -q --allow-empty -m One; git rebase -q --force-rebase --root; shows`, "One|LINE"},
		"a submodule": {`fresh k; fresh l; git -c protocol.file.allow=always submodule --quiet add ../k k; cd k; git config core.hooksPath none; git commit -q --allow-empty -m One; shows; cd ..; git commit -q -am Two; shows`,
			"One|LINE\nTwo|LINE"},
		"a hook that refuses":  {`fresh m; own .git/hooks prepare-commit-msg; echo exit 1 >> .git/hooks/prepare-commit-msg; git commit -q --allow-empty -m One; echo $?; shows`, "own prepare-commit-msg in m\n1\nZero|LINE"},
		"a hook that is gone":  {`fresh n; git config core.hooksPath h; own h pre-commit; git commit -q --allow-empty -m One; rm h/pre-commit; git commit -q --allow-empty -m Two; shows`, "own pre-commit in n\nTwo|LINE"},
		"no hooks wanted":      {`fresh o; git -c core.hooksPath=/dev/null commit -q --allow-empty -m One; shows`, "One"},
		"a commit in a hook":   {`fresh p; fresh q; git config core.hooksPath h; own h post-commit; echo 'git -C ../p commit -q --allow-empty -m Inner; git config core.hooksPath' >> h/post-commit; git commit -q --allow-empty -m One; shows; git -C ../p log -1 --format=%s`, "own post-commit in q\nh\nOne|LINE\nInner"},
		"what tools see":       {`fresh r; git config core.hooksPath; git rev-parse --git-path hooks; git nonsense 2>&1 | head -1`, ".git/hooks\ngit: 'nonsense' is not a git command. See 'git --help'."},
		"no repository at all": {`cd /; git commit -m x; echo $?`, "fatal: not a git repository (or any of the parent directories): .git\n128"},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			got := r.sh("export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=init.templateDir GIT_CONFIG_VALUE_0='" + checkout.Template + "'\n" + own + c.do)
			if want := strings.ReplaceAll(c.want, "LINE", "Co-authored-by: Ann <ann@example.org>"); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func testBranches(t *testing.T, one *rig) {
	f := one.forge
	f.repository("branches", map[string]string{"README.md": "Hello\n"})
	f.git("", "init", "-q", "--bare", f.path("empty"))
	odd := f.path("odd")
	f.git("", "clone", "-q", "--bare", f.path("branches"), odd)
	f.git("", "-C", odd, "update-ref", "refs/heads/--upload-pack=x", "refs/heads/main")
	f.git("", "-C", odd, "symbolic-ref", "HEAD", "refs/heads/--upload-pack=x")
	for name, c := range map[string]struct{ repository, branch, want, code string }{
		"another":             {"octo/branches", "next", "next", ""},
		"the default":         {"octo/branches", "main", "main", ""},
		"missing":             {"octo/branches", "nope", "", "STATUS$GIT_BRANCH_NOT_FOUND"},
		"an option":           {"octo/branches", "--upload-pack=touch x", "", "STATUS$GIT_BRANCH_NOT_FOUND"},
		"empty":               {"octo/empty", "", "deckhand-", ""},
		"empty with a branch": {"octo/empty", "main", "", "STATUS$GIT_BRANCH_NOT_FOUND"},
		"HEAD like an option": {"octo/odd", "", "deckhand-", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := one.again(t, session.Created{Repository: c.repository, Branch: c.branch})
			err := r.prepare()
			if c.code != "" {
				u, ok := errors.AsType[*sandbox.Unavailable](err)
				if !ok || u.Code() != c.code || !strings.Contains(u.Reason, c.repository) {
					t.Errorf("%v", err)
				}
				r.clean()
				return
			}
			must(t, err)
			done := r.state().Checkout
			if !strings.HasPrefix(done.Branch, c.want) || done.Fresh != (c.branch == "") || (done.Commit == "") != strings.HasPrefix(name, "empty") {
				t.Errorf("%+v", done)
			}
			if got := r.sh("git symbolic-ref --short HEAD; cat README.md; git rev-parse --abbrev-ref @{u} 2>/dev/null"); c.branch != "" && got != c.branch+"\nHello\norigin/"+c.branch {
				t.Errorf("%q", got)
			}
		})
	}
}

// A workspace that was lost is made again, on the branch that was pushed from it.
func testLostWorkspace(t *testing.T, one *rig) {
	f := one.forge
	f.repository("lost", map[string]string{"README.md": "Hello\n"})
	r := one.again(t, session.Created{Repository: "octo/lost"})
	branch := r.prepared().Checkout.Branch
	if got := r.sh("echo mine > mine; git add mine; git commit -qm Mine; git push -q origin HEAD 2>&1; cd /workspace; rm -rf /workspace/lost"); got != "" {
		t.Fatalf("%q", got)
	}
	st := r.prepared()
	if st.Checkout.Branch != branch || len(st.Checkout.Notes) != 1 || !strings.Contains(st.Checkout.Notes[0], "cloned again") {
		t.Errorf("%+v, and it was on %s", st.Checkout, branch)
	}
	if got := r.sh("cat /workspace/lost/mine"); got != "mine" {
		t.Errorf("%q", got)
	}
}

// A server that dies while it clones, or before it has said that it did, leaves
// nothing that the next one stumbles over.
func TestInterrupted(t *testing.T) {
	f := newForge(t)
	f.repository("app", map[string]string{"README.md": "Hello\n"})
	r := newRig(t, f, session.Created{Repository: "octo/app"})
	asked, let := make(chan struct{}, 1), make(chan struct{})
	f.answer("app", func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-let
		}
		f.backend(w, req)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.prepareIn(ctx) }()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(let)
	f.answer("app", nil)
	if got := r.sh("mkdir -p .deckhand-clone-left/.git; pwd"); got != "/workspace" { // as a killed one leaves it
		t.Errorf("%q", got)
	}
	first := r.prepared()
	if got := r.sh("ls -A /workspace"); got != "app" {
		t.Errorf("%q", got)
	}
	// The clone is in its place, but was not recorded.
	again := newRig(t, f, session.Created{Repository: "octo/app"})
	again.box.Close()
	again.box, again.handle = r.box, r.handle
	r.box = nil
	f.answer("app", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "asked again", 500) })
	if st := again.prepared(); st.Checkout.Branch != first.Checkout.Branch || st.Checkout.Commit != first.Checkout.Commit {
		t.Errorf("%+v", st.Checkout)
	}
}

// What is in the repository's place is not touched.
func testInTheWay(t *testing.T, one *rig) {
	f := one.forge
	f.repository("way", map[string]string{"README.md": "Hello\n"})
	r := one.again(t, session.Created{Repository: "octo/way"})
	for _, make := range []string{"mkdir way; echo mine > way/file", "rm -rf way; echo mine > way"} {
		r.sh(make)
		err := r.prepare()
		if u, ok := errors.AsType[*sandbox.Unavailable](err); !ok || !strings.Contains(u.Reason, "where the repository belongs") {
			t.Errorf("%s: %v", make, err)
		}
		if got := r.sh("cat way way/file 2>/dev/null"); got != "mine" {
			t.Errorf("%s: %q", make, got)
		}
	}
	r.sh("rm -rf way; mkdir way") // nothing is no obstacle
	r.prepared()
}

// The workspace itself can be the repository.
func testIntoTheWorkspace(t *testing.T, one *rig) {
	f := one.forge
	f.repository("into", map[string]string{"README.md": "Hello\n"})
	r := one.again(t, session.Created{Repository: "octo/into"})
	r.src.Folder = "."
	f.answer("into", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) })
	if err := r.prepare(); err == nil || !strings.Contains(err.Error(), "try again later") {
		t.Errorf("%v", err)
	}
	r.clean()
	f.answer("into", nil)
	if st := r.prepared(); st.Checkout.Dir != "/workspace" || st.Checkout.Folder != "." {
		t.Errorf("%+v", st.Checkout)
	}
	if got := r.sh("pwd; ls -1A"); got != "/workspace\n.git\nREADME.md" {
		t.Errorf("%q", got)
	}
}

// Whatever the set-up script does, it is told, and the work goes on.
func testSetUp(t *testing.T, one *rig) {
	f := one.forge
	for name, c := range map[string]struct {
		script, problem string
		exit            int
	}{
		"fails":          {"echo no; false", "", 1},
		"ends the shell": {"echo bye; exit 7", "ended the shell", 7},
		"kills it":       {"kill -9 $$", "ended the shell", 137},
		"never ends":     {"trap '' INT; echo waiting; while :; do sleep 100; done", "did not finish within", -1},
		"says much":      {"head -c 100000000 /dev/zero | tr '\\0' x; echo; echo the end", "", 0},
		"asks":           {"read -r name || echo nobody; cat", "", 0},
		"takes away":     {"rm -rf .git /workspace/*; echo gone", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			repository := strings.ReplaceAll(name, " ", "-")
			f.repository(repository, map[string]string{".openhands/setup.sh": c.script + "\n"})
			r := one.again(t, session.Created{Repository: "octo/" + repository})
			r.config.SetUpTime = time.Minute
			if name == "never ends" {
				r.config.SetUpTime = 500 * time.Millisecond
			}
			u := r.prepared().SetUp
			if u == nil || u.Exit != c.exit || (u.Problem == "") != (c.problem == "") || !strings.Contains(u.Problem, c.problem) || len(u.Output) > 2*sandbox.MaxOutput {
				t.Fatalf("%+v", u)
			}
			if got := r.sh("echo usable"); got != "usable" {
				t.Errorf("%q", got)
			}
		})
	}
}

// A script that a dead server began is waited for, and not begun again. One that
// died with its sandbox is told of.
func TestSetUpIsFoundAgain(t *testing.T) {
	f := newForge(t)
	begun := make(chan struct{})
	f.answer("sign", func(w http.ResponseWriter, req *http.Request) {
		begun <- struct{}{}
		http.NotFound(w, req)
	})
	begin := "echo ran >> /workspace/runs; git ls-remote " + f.url + "/octo/sign.git >/dev/null 2>&1\n"
	f.repository("one", map[string]string{".openhands/setup.sh": begin + "while ! [ -e /workspace/go ]; do sleep 0.05; done; export KEPT=yes\n"})
	f.repository("two", map[string]string{".openhands/setup.sh": begin + "sleep 1000\n"})
	interrupted := func(repository string) *rig {
		r := newRig(t, f, session.Created{Repository: repository})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.prepareIn(ctx) }()
		<-begun
		cancel()
		if err := <-done; err == nil {
			t.Fatal("it ended before it was let")
		}
		return r
	}
	r := interrupted("octo/one")
	_, err := r.box.Write(t.Context(), sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte("go")}}, strings.NewReader(""))
	must(t, err)
	r.open()
	if u := r.prepared().SetUp; u.Exit != 0 || u.Problem != "" {
		t.Errorf("%+v", u)
	}
	if got := r.sh(`cat /workspace/runs; echo $KEPT`); got != "ran\nyes" {
		t.Errorf("%q", got)
	}
	r = interrupted("octo/two")
	r.reboot()
	if u := r.prepared().SetUp; u.Exit != -1 || !strings.Contains(u.Problem, "only in part") {
		t.Errorf("%+v", u)
	}
}

func TestFolder(t *testing.T) {
	for repository, want := range map[string]string{"octo/app": "app", "a/b/c.git": "c", "a/.github": ".github", "a/.git": "repository", "": "repository"} {
		if got := checkout.Folder(repository); got != want {
			t.Errorf("%q: %q, want %q", repository, got, want)
		}
	}
}
