//go:build forge

package gitea

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/gitea/giteatest"
	"deckhand/internal/gitprovider/providertest"
)

// TestForgeConformance runs the suite that the fake passes against a real Gitea,
// which a proxy stands in front of: it puts the real token in the place of the suite's.
func TestForgeConformance(t *testing.T) {
	forge := giteatest.Open(t)
	ada, grace := forge.User(t, "ada"), forge.User(t, "grace")
	world := forgeWorld(t, forge, ada, grace)
	target, err := url.Parse(forge.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if r.In.Header.Get("Authorization") == "Bearer "+providertest.Token {
			r.Out.Header.Set("Authorization", "Bearer "+ada.Token)
		}
	}}
	providertest.Run(t, providertest.Options{
		New: adapter, World: world, Denial: refusal, Says: "pull request already exists for these targets",
		Serve: func(t *testing.T) http.Handler {
			if !strings.HasSuffix(t.Name(), "/comments") {
				return proxy
			}
			// What this part says would be seen by another one, whichever comes first.
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })
		},
	})
}

// TestForgeTasks has a pull request for each kind of task, and one with nothing to do.
func TestForgeTasks(t *testing.T) {
	forge := giteatest.Open(t)
	ada, grace := forge.User(t, "ada"), forge.User(t, "grace")
	engine := ada.Repository(t, "", "engine", true)
	ada.Invite(t, engine, grace, "write")
	want, titles := map[int]string{}, map[int]string{}
	open := func(branch, title string, task string) (number int, commit string) {
		commit = ada.Write(t, engine, branch, true, branch+".txt", branch)
		number = ada.Pull(t, engine, branch, title, "")
		want[number], titles[number] = task, title
		return number, commit
	}
	ada.Write(t, engine, "clash", true, "same.txt", "one")
	open("idle", "Idle", "")
	open("draft", "WIP: Later", "")
	_, commit := open("red", "Red", gitprovider.FailingChecks)
	ada.Status(t, engine, commit, "ci", "success")
	ada.Status(t, engine, commit, "ci", "failure")
	_, commit = open("green", "Green", "")
	ada.Status(t, engine, commit, "ci", "failure")
	ada.Status(t, engine, commit, "ci", "success")
	talk, _ := open("talk", "Talk", gitprovider.UnresolvedComments)
	grace.Review(t, engine, talk, "COMMENT", "Hm.")
	wish, _ := open("wish", "Wish", gitprovider.UnresolvedComments)
	grace.Review(t, engine, wish, "REQUEST_CHANGES", "No.")
	fine, _ := open("fine", "Fine", "")
	grace.Review(t, engine, fine, "APPROVED", "Yes.")
	ada.Write(t, engine, "main", false, "same.txt", "two")
	for number, title := range titles { // the push to main has the forge look again
		if !strings.HasPrefix(title, "WIP") {
			ada.AwaitMergeable(t, engine, number)
		}
	}
	want[ada.Pull(t, engine, "clash", "Clash", "")] = gitprovider.MergeConflicts
	want[grace.Issue(t, engine, "Do it", "", ada.Login)] = gitprovider.OpenIssue
	grace.Issue(t, engine, "Not yours", "", grace.Login)

	got, err := forged(t, forge, ada.Token).Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range got {
		if task.Type == "" || want[task.Number] != task.Type || task.Repository != engine || task.Title == "" {
			t.Errorf("%+v, want %q", task, want[task.Number])
		}
		delete(want, task.Number)
	}
	for number, task := range want {
		if task != "" {
			t.Errorf("#%d is no task, want %s", number, task)
		}
	}
}

func forged(t *testing.T, forge *giteatest.Forge, token string) gitprovider.Provider {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return adapter(&http.Client{Transport: transport}, forge.URL, token)
}

// TestForgeTokens: every way of being refused is told from the others.
func TestForgeTokens(t *testing.T) {
	forge := giteatest.Open(t)
	ada, eve := forge.User(t, "ada"), forge.User(t, "eve")
	diary, engine := ada.Repository(t, "", "diary", true), ada.Repository(t, "", "engine", false)
	number := ada.Issue(t, engine, "Hello", "")
	if _, err := forged(t, forge, strings.Repeat("0", 40)).User(t.Context()); gitprovider.ReasonOf(err) != gitprovider.BadToken {
		t.Errorf("an unknown token: %v", err)
	}
	if _, err := forged(t, forge, "").User(t.Context()); gitprovider.ReasonOf(err) != gitprovider.BadToken {
		t.Errorf("no token: %v", err)
	}
	if r, err := forged(t, forge, "").Repository(t.Context(), engine); err != nil || !r.Public {
		t.Errorf("a public repository without a token: %+v %v", r, err)
	}
	if _, err := forged(t, forge, eve.Token).Repository(t.Context(), diary); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("another user's: %v", err)
	}
	narrow := forged(t, forge, ada.NewToken(t, "read:user", "read:repository", "read:issue"))
	if _, err := narrow.Repository(t.Context(), diary); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"comment": narrow.Comment(t.Context(), engine, number, false, "Hello"),
		"propose": func() error {
			_, err := narrow.Propose(t.Context(), gitprovider.Proposal{Repository: engine, Source: "main", Target: "main", Title: "x"})
			return err
		}(),
	} {
		if gitprovider.ReasonOf(err) != gitprovider.Scope || !strings.Contains(err.Error(), "scope") {
			t.Errorf("%s with a token for reading: %v", what, err)
		}
	}
}

// TestForgeRequest: from a pushed branch to a merged pull request.
func TestForgeRequest(t *testing.T) {
	forge := giteatest.Open(t)
	ada := forge.User(t, "ada")
	engine := ada.Repository(t, "", "engine", true)
	push(t, forge, ada, engine, "topic/one")
	p := forged(t, forge, ada.Token)
	in := gitprovider.Proposal{Repository: engine, Title: "One", Body: "Body", Source: "topic/one"}
	made, err := p.Propose(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Propose(t.Context(), in); gitprovider.ReasonOf(err) != gitprovider.Refused || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("twice: %v", err)
	}
	in.Source = "no/such"
	if _, err := p.Propose(t.Context(), in); err == nil {
		t.Error("a branch that does not exist was proposed")
	} else if reason := gitprovider.ReasonOf(err); reason != gitprovider.NotFound && reason != gitprovider.Refused {
		t.Errorf("a branch that does not exist: %v", err)
	}
	if again, err := p.Proposed(t.Context(), engine, "topic/one", "main"); err != nil || again.Number != made.Number {
		t.Errorf("%+v %v", again, err)
	}
	text := "Done: \"all\" of it.\nSee <the branch> – Ünïcode."
	if err := p.Comment(t.Context(), engine, made.Number, true, text); err != nil {
		t.Fatal(err)
	}
	if said := ada.Comments(t, engine, made.Number); len(said) != 1 || said[0].Body != text {
		t.Errorf("%+v", said)
	}
	ada.AwaitMergeable(t, engine, made.Number)
	ada.Call(t, "POST", "/repos/"+engine+"/pulls/"+strconv.Itoa(made.Number)+"/merge", map[string]any{"Do": "merge", "delete_branch_after_merge": true}, nil)
	if got, err := p.Request(t.Context(), engine, made.Number); err != nil || got.State != "merged" || got.Source != "topic/one" || got.Mergeable != nil {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := p.Proposed(t.Context(), engine, "topic/one", "main"); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("a merged one is proposed: %v", err)
	}
}

// push makes a commit with git itself and pushes it over HTTP.
func push(t *testing.T, forge *giteatest.Forge, u *giteatest.User, repository, branch string) {
	dir := filepath.Join(t.TempDir(), "clone")
	password := base64.StdEncoding.EncodeToString([]byte("oauth2:" + u.Token))
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL="+u.Email,
			"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL="+u.Email,
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic "+password)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	git("clone", "-q", "--filter=blob:none", forge.CloneURL(repository), dir)
	git("-C", dir, "switch", "-q", "-c", branch)
	git("-C", dir, "commit", "-q", "--allow-empty", "-m", "Work")
	git("-C", dir, "push", "-q", "origin", branch)
	if newest := u.Commits(t, repository, branch)[0].Commit; newest.Author.Email != u.Email || strings.TrimSpace(newest.Message) != "Work" {
		t.Errorf("%+v", newest)
	}
}

// TestForgeWebhook: what a comment sets off, and that its signature fits.
func TestForgeWebhook(t *testing.T) {
	forge := giteatest.Open(t)
	ada := forge.User(t, "ada")
	engine := ada.Repository(t, "", "engine", true)
	type delivery struct {
		header http.Header
		body   []byte
	}
	arrived := make(chan delivery, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		arrived <- delivery{r.Header, body}
	}))
	defer s.Close()
	ada.Webhook(t, engine, s.URL+"/hook", "s3cret", "issue_comment")
	ada.Comment(t, engine, ada.Issue(t, engine, "Hello", ""), "@deckhand do it")
	got := <-arrived
	sum := hmac.New(sha256.New, []byte("s3cret"))
	sum.Write(got.body)
	if want := hex.EncodeToString(sum.Sum(nil)); got.header.Get("X-Gitea-Signature") != want || got.header.Get("X-Hub-Signature-256") != "sha256="+want {
		t.Errorf("signatures: %v", got.header)
	}
	if got.header.Get("X-Gitea-Event") != "issue_comment" || got.header.Get("X-Gitea-Delivery") == "" || !strings.Contains(string(got.body), "@deckhand do it") {
		t.Errorf("%v %.300s", got.header, got.body)
	}
}

// TestForgeShapes keeps the fake honest: what it answers with, the real one has too, and of the same kind.
func TestForgeShapes(t *testing.T) {
	forge := giteatest.Open(t)
	ada, grace := forge.User(t, "ada"), forge.User(t, "grace")
	engine := ada.Repository(t, "", "engine", false)
	ada.Invite(t, engine, grace, "write")
	commit := ada.Write(t, engine, "topic", true, "a.txt", "one\ntwo\n")
	pull := ada.Pull(t, engine, "topic", "Topic", "Because.")
	ada.Status(t, engine, commit, "ci", "failure")
	grace.Review(t, engine, pull, "COMMENT", "Hm.", giteatest.Remark{Path: "a.txt", Body: "Why?", Line: 1})
	issue := grace.Issue(t, engine, "Do it", "Now.", ada.Login)
	grace.Comment(t, engine, issue, "Please.")
	here := "/repos/" + engine
	var reviews []struct{ ID int }
	ada.Call(t, "GET", fmt.Sprint(here, "/pulls/", pull, "/reviews"), nil, &reviews)

	f := newFake()
	for path, fake := range map[string]any{
		"/user": f.user, here: f.repos[0], "/repos/search?q=engine": obj{"ok": true, "data": f.repos[:1]},
		here + "/branches": f.branches[:1], fmt.Sprint(here, "/pulls/", pull): f.pulls[21], here + "/pulls": []obj{f.pulls[21]},
		fmt.Sprint(here, "/pulls/", pull, "/reviews"):                              []obj{reviewOf(1, "COMMENT", "")},
		fmt.Sprint(here, "/pulls/", pull, "/reviews/", reviews[0].ID, "/comments"): f.remarks[51][:1],
		here + "/commits/" + commit + "/status":                                    combined([]obj{statusOf("ci", "failure")}),
		fmt.Sprint(here, "/issues/", issue):                                        f.issues[0],
		fmt.Sprint(here, "/issues/", issue, "/comments"):                           []obj{f.comments[22][0]},
		"/repos/issues/search?assigned=true&type=issues":                           f.issues[:1],
		here + "/contents": []obj{{"name": "README.md", "path": "README.md", "type": "file", "sha": "0", "size": 1}},
	} {
		text, err := json.Marshal(fake)
		if err != nil {
			t.Fatal(err)
		}
		var pretended, real any
		if err := json.Unmarshal(text, &pretended); err != nil {
			t.Fatal(err)
		}
		ada.Call(t, "GET", path, nil, &real)
		sameShape(t, path, pretended, real)
	}
}

// sameShape looks for every field of the fake's answer in the real one's.
func sameShape(t *testing.T, where string, fake, real any) {
	switch fake := fake.(type) {
	case nil: // the real one has something there, or has not
	case map[string]any:
		got, ok := real.(map[string]any)
		if !ok {
			t.Errorf("%s is %T", where, real)
			return
		}
		for name, inner := range fake {
			if value, ok := got[name]; ok {
				sameShape(t, where+" "+name, inner, value)
			} else {
				t.Errorf("%s has no %s", where, name)
			}
		}
	case []any:
		got, ok := real.([]any)
		if !ok || len(fake) > 0 && len(got) == 0 {
			t.Errorf("%s is %T with %d", where, real, len(got))
			return
		}
		if len(fake) > 0 {
			sameShape(t, where+" []", fake[0], got[0])
		}
	default:
		if fmt.Sprintf("%T", fake) != fmt.Sprintf("%T", real) {
			t.Errorf("%s is %T, in the fake %T", where, real, fake)
		}
	}
}

func TestForgeLabelledBy(t *testing.T) {
	forge := giteatest.Open(t)
	ada, grace := forge.User(t, "ada"), forge.User(t, "grace")
	engine := ada.Repository(t, "", "engine", true)
	ada.Invite(t, engine, grace, "write")
	number := ada.Issue(t, engine, "It squeaks", "")
	for label, who := range map[string]*giteatest.User{"deckhand": grace, "bug": ada} {
		ada.Label(t, engine, label)
		who.Call(t, "POST", fmt.Sprintf("/repos/%s/issues/%d/labels", engine, number), obj{"labels": []string{label}}, nil)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := adapter(&http.Client{Transport: transport}, forge.URL, ada.Token).(gitprovider.Labeller)
	for label, want := range map[string]string{"deckhand": grace.Login, "bug": ada.Login, "none": ""} {
		if by, err := p.LabelledBy(t.Context(), engine, number, label); by != want || err != nil {
			t.Errorf("%s: %q %v", label, by, err)
		}
	}
}
