package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm/llmtest"
)

// reviewForge is the part of a forge in which pull requests are opened and reviewed.
type reviewForge struct {
	mu        sync.Mutex
	pulls     []map[string]any
	reviewers []string
}

// serve answers as Gitea does.
func (d *reviewForge) serve(w http.ResponseWriter, r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	path, ours := strings.CutPrefix(r.URL.Path, "/api/v1/repos/ada/engine/")
	if !ours {
		return false
	}
	var in map[string]any
	_ = json.NewDecoder(r.Body).Decode(&in)
	switch {
	case path == "pulls" && r.Method == http.MethodPost:
		n := len(d.pulls) + 1
		d.pulls = append(d.pulls, map[string]any{"number": n, "title": in["title"], "body": in["body"], "html_url": fmt.Sprintf("https://example.org/ada/engine/pulls/%d", n), "state": "open",
			"head": map[string]any{"ref": in["head"], "label": in["head"], "sha": "abc"}, "base": map[string]any{"ref": in["base"], "label": in["base"]}})
		answer(w, http.StatusCreated, d.pulls[n-1])
	case path == "pulls/1/requested_reviewers":
		for _, name := range in["reviewers"].([]any) {
			d.reviewers = append(d.reviewers, name.(string))
		}
		answer(w, http.StatusCreated, []any{})
	case path == "pulls/1" && len(d.pulls) > 0:
		answer(w, http.StatusOK, d.pulls[0])
	case path == "issues/1/comments":
		answer(w, http.StatusOK, []any{map[string]any{"body": "Please add a test.", "user": map[string]any{"login": "bob"}}})
	case path == "pulls/1/reviews":
		answer(w, http.StatusOK, []any{})
	case path == "commits/abc/status":
		answer(w, http.StatusOK, map[string]any{"state": "failure", "statuses": []any{map[string]any{"context": "lint", "status": "success"}, map[string]any{"context": "unit tests", "status": "failure"}}})
	default:
		return false
	}
	return true
}

// picture is an image of one pixel.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// newReviewForge is a forge with a repository to be changed.
func newReviewForge(t *testing.T, token string) (*gitServer, *reviewForge) {
	t.Helper()
	d := &reviewForge{}
	f := newGitServer(t, token, "ada/engine")
	f.api = d.serve
	image, err := base64.StdEncoding.DecodeString(picture)
	if err != nil {
		t.Fatal(err)
	}
	var long, code strings.Builder
	for i := range 40 {
		fmt.Fprintf(&long, "line %d of the manual\n", i)
		fmt.Fprintf(&code, "step_%d = %d\n", i, i)
	}
	f.fill("ada/engine", map[string]string{"wheel.py": code.String(), "docs/manual.txt": long.String(), "picture.png": string(image), "old.txt": "old\n"})
	return f, d
}

// work is what an agent does: two changes in a file, a rename without git, an image, a new file.
const work = `sed -i 's/^step_3 = 3/step_3 = 33/; s/^step_30 = 30/step_30 = 3030/' wheel.py && mv docs/manual.txt docs/guide.txt && printf 'x' >> picture.png && printf 'a\nb\n' > new.txt && rm old.txt`

func (p *person) review(id string, r client.GitRange) []string {
	p.t.Helper()
	got, err := p.client.Review(p.t.Context(), id, r)
	if err != nil {
		p.t.Fatal(err)
	}
	out := []string{}
	for _, f := range got.Files {
		out = append(out, fmt.Sprintf("%s %s +%d -%d", f.Status, f.Path, f.Added, f.Removed))
	}
	return out
}

func wantCode(t *testing.T, err error, status int, part string) {
	t.Helper()
	var failed *client.Error
	if !errors.As(err, &failed) || failed.Status != status || !strings.Contains(failed.Message, part) {
		t.Errorf("got %v, want %d with %q", err, status, part)
	}
}

// A person reviews what the agent did, takes some of it back, commits with a message that the model drafts, pushes
// through the gate and opens a pull request, whose checks and comments they read.
func TestReviewAndLand(t *testing.T) {
	t.Parallel()
	secrets := birds{}
	token := secrets.put("the git token")
	f, d := newReviewForge(t, token)
	l := newGitLab(t, f)
	p := l.person(t, "lander", func(a llmtest.Asked) llmtest.Reply {
		if strings.Contains(a.System, "You write commit messages") {
			if last := a.Messages[len(a.Messages)-1].Text; !strings.Contains(last, "+step_3 = 33") {
				return llmtest.Reply{Text: "the model was not shown the change: " + last}
			}
			return llmtest.Reply{Text: "Speed up the wheel\n\nStep 3 was slow."}
		}
		for _, m := range slices.Backward(a.Messages) {
			if m.Text == "Again." {
				return steps(shell(`printf 'c\n' >> new.txt`))(a)
			}
		}
		return steps(shell(work))(a)
	}, f.stores(token), `"git_user_name":"Bot","git_user_email":"bot@example.org","email":"ada@example.org"`)
	id, err := p.on("ada/engine", "", "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	p.follow(id, 0, agentIs("awaiting_user_input"))
	want := []string{"R engine/docs/guide.txt +0 -0", "A engine/new.txt +2 -0", "D engine/old.txt +0 -1", "M engine/picture.png +0 -0", "M engine/wheel.py +2 -2"}
	for _, name := range []string{"start", "turn", "head", "upstream"} {
		if got := p.review(id, client.GitRange{Range: name}); !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	p.ask(id, "Again.", "awaiting_user_input")
	if got := p.review(id, client.GitRange{Range: "turn"}); !slices.Equal(got, []string{"M engine/new.txt +1 -0"}) {
		t.Errorf("the last turn is %q", got)
	}
	image, err := p.client.CompareInRange(t.Context(), id, client.GitRange{}, "engine/picture.png", "")
	if err != nil || !image.Image || image.Original == nil || *image.Original != "data:image/png;base64,"+picture {
		t.Errorf("the image is %+v, %v", image, err)
	}
	p.takesBack(id)
	p.lands(id, f, d)
	stranger := l.person(t, "stranger", steps())
	_, err = stranger.client.Review(t.Context(), id, client.GitRange{})
	wantCode(t, err, http.StatusNotFound, "not found")
	_, err = stranger.client.Commit(t.Context(), id, api.GitCommit{Message: "Mine"})
	wantCode(t, err, http.StatusNotFound, "not found")
	p.nowhere(id, secrets)
}

// takesBack reverts a hunk and a file, and nothing that has changed since it was shown.
func (p *person) takesBack(id string) {
	t := p.t
	t.Helper()
	c, err := p.client.CompareInRange(t.Context(), id, client.GitRange{Range: "start"}, "engine/wheel.py", "")
	if err != nil {
		t.Fatal(err)
	}
	hunk := api.GitRevert{Range: "start", Files: []api.GitRevertFile{{Path: "engine/wheel.py", ETag: c.ETag}},
		Hunk: &api.GitHunk{OriginalStart: 31, OriginalLines: 1, ModifiedStart: 31, ModifiedLines: 1}}
	if err := p.client.Revert(t.Context(), id, hunk); err != nil {
		t.Fatal(err)
	}
	wantCode(t, p.client.Revert(t.Context(), id, hunk), http.StatusConflict, "changed since it was shown")
	if got := p.review(id, client.GitRange{Range: "head"}); !slices.Contains(got, "M engine/wheel.py +1 -1") {
		t.Errorf("after a hunk was reverted: %q", got)
	}
	now, err := p.client.Review(t.Context(), id, client.GitRange{Range: "start"})
	if err != nil {
		t.Fatal(err)
	}
	var files []api.GitRevertFile
	for _, f := range now.Files {
		if f.Path != "engine/wheel.py" && f.Path != "engine/new.txt" {
			file := api.GitRevertFile{Path: f.Path, ETag: f.ETag}
			if f.From != nil {
				file.From = api.Some(*f.From)
			}
			files = append(files, file)
		}
	}
	if err := p.client.Revert(t.Context(), id, api.GitRevert{Range: "start", Files: files}); err != nil {
		t.Fatal(err)
	}
	if got := p.review(id, client.GitRange{Range: "start"}); !slices.Equal(got, []string{"A engine/new.txt +3 -0", "M engine/wheel.py +1 -1"}) {
		t.Errorf("after files were reverted: %q", got)
	}
}

// lands commits, pushes and opens a pull request.
func (p *person) lands(id string, f *gitServer, d *reviewForge) {
	t := p.t
	t.Helper()
	if err := p.client.Stage(t.Context(), id, api.GitStage{Paths: []string{"engine/wheel.py"}, Staged: true}); err != nil {
		t.Fatal(err)
	}
	name := api.Some("engine")
	draft, err := p.client.DraftMessage(t.Context(), id, api.GitDraft{Repository: name, StagedOnly: api.Some(true)})
	if err != nil || !draft.Model || draft.Message != "Speed up the wheel\n\nStep 3 was slow." {
		t.Fatalf("the draft is %+v, %v", draft, err)
	}
	made, err := p.client.Commit(t.Context(), id, api.GitCommit{Repository: name, Message: draft.Message, Branch: api.Some("faster"), StagedOnly: api.Some(true)})
	if err != nil || made.Branch != "faster" {
		t.Fatalf("%+v, %v", made, err)
	}
	_, err = p.client.Commit(t.Context(), id, api.GitCommit{Repository: name, Message: "Nothing", StagedOnly: api.Some(true)})
	wantCode(t, err, http.StatusConflict, "No changes are staged")
	_, err = p.client.OpenPullRequest(t.Context(), id, api.OpenPullRequest{Title: "x", Source: "faster", Target: "faster"})
	wantCode(t, err, http.StatusConflict, "are the same")
	if err := p.client.Push(t.Context(), id, api.GitPush{Repository: name, Branch: "faster"}); err != nil {
		t.Fatal(err)
	}
	if got := f.git("-C", f.path("ada/engine"), "log", "-1", "--format=%H %an %B", "faster"); !strings.HasPrefix(got, made.Commit+" Bot Speed up the wheel") || !strings.Contains(got, "Co-authored-by: lander <ada@example.org>") {
		t.Errorf("pushed: %s", got)
	}
	opened, err := p.client.OpenPullRequest(t.Context(), id, api.OpenPullRequest{Title: "A faster wheel", Body: api.Some("See step 3."), Source: "faster", Target: "main", Draft: api.Some(true), Reviewers: api.Some([]string{"bob"})})
	if err != nil || opened.Number != 1 || opened.Warning != "" || opened.Title != "WIP: A faster wheel" {
		t.Fatalf("%+v, %v", opened, err)
	}
	if !slices.Equal(d.reviewers, []string{"bob"}) {
		t.Errorf("reviewers are %q", d.reviewers)
	}
	found, err := p.client.PullRequests(t.Context(), id)
	if err != nil || len(found) != 1 || !slices.Equal(found[0].Checks, []string{"unit tests: failure", "lint: success"}) || !slices.Equal(found[0].Comments, []string{"bob: Please add a test."}) || found[0].State != "open" {
		t.Errorf("%+v, %v", found, err)
	}
	wantCode(t, p.client.Push(t.Context(), id, api.GitPush{Repository: name, Branch: "a b"}), http.StatusUnprocessableEntity, "")
}

// The same in a browser, on a phone and in both themes.
func TestReviewInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	needLocal(t)
	const token = "forge-token-of-rita"
	f, _ := newReviewForge(t, token)
	h := newTheatreWith(t, []string{"--egress-private", f.address()}, "rita")
	b := *h.box
	b.t, b.key, b.client = t, h.keys["rita"], h.people["rita"]
	(&person{box: &b, lab: h.lab}).set(`"llm_model":"scripted/demo",` + f.stores(token))
	h.play(t, "review.mjs")
	if got := f.git("-C", f.path("ada/engine"), "log", "-1", "--format=%s", "round"); strings.TrimSpace(got) != "Speed up the wheel" {
		t.Errorf("pushed: %s", got)
	}
}
