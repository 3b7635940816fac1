package github

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/providertest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t *testing.T, name string) []byte {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Error(err)
	}
	return text
}

func list[T any](t *testing.T, name string) []T { return decode[[]T](t, name) }

func object(t *testing.T, name string) map[string]any { return decode[map[string]any](t, name) }

func decode[T any](t *testing.T, name string) (v T) {
	if err := json.Unmarshal(load(t, name), &v); err != nil {
		t.Error(err)
	}
	return v
}

func world() providertest.World {
	pushed := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	stars := func(n int) *int { return &n }
	repositories := []gitprovider.Repository{
		{ID: "1296269", Name: "team/app", Stars: stars(80), PushedAt: pushed, Owner: "organization", MainBranch: "main"},
		{ID: "1296270", Name: "ada/app-notes", Public: true, Stars: stars(0), Owner: "user", MainBranch: "master"},
		{ID: "1296271", Name: "team/lib.go", Public: true, Stars: stars(3), PushedAt: pushed, Owner: "organization", MainBranch: "main"},
		{ID: "1296272", Name: "team/.openhands", Stars: stars(1), PushedAt: pushed, Owner: "organization", MainBranch: "main"},
		{ID: "1296273", Name: "other/wheel", Public: true, Stars: stars(9000), PushedAt: pushed, MainBranch: "trunk"},
	}
	request := gitprovider.Request{
		Number: 7, URL: "https://github.com/team/app/pull/7", Title: "Amazing new feature", State: "open",
		Source: "feature/one", Target: "main", Mergeable: new(true),
	}
	var installations []string
	for i := range 103 {
		installations = append(installations, strconv.Itoa(25381+i))
	}
	sha := "c5b97d5ae6c19d5c5df71a34c7fbeeda2479ccbc"
	return providertest.World{
		User: gitprovider.User{
			ID: "1", Login: "ada", AvatarURL: "https://avatars.githubusercontent.com/u/1?v=4", Company: "Analytical", Name: "Ada L.", Email: "ada@example.org",
		},
		Repositories: repositories, Repository: repositories[0],
		Text: "app", Found: []string{"ada/app-notes", "team/app"},
		Branches: []gitprovider.Branch{
			{Name: "main", Commit: sha, Protected: true}, {Name: "feature/one", Commit: sha}, {Name: "feature/two", Commit: sha},
			{Name: "fix-feature", Commit: sha}, {Name: "old", Commit: sha},
		},
		Part: "feature", With: []string{"feature/one", "feature/two", "fix-feature"},
		Installations: installations,
		Tasks: []gitprovider.Task{
			{Type: gitprovider.MergeConflicts, Repository: "team/app", Title: "All is wrong", Number: 11},
			{Type: gitprovider.FailingChecks, Repository: "team/app", Title: "Red", Number: 12},
			{Type: gitprovider.UnresolvedComments, Repository: "team/lib.go", Title: "Talked about", Number: 13},
			{Type: gitprovider.OpenIssue, Repository: "other/wheel", Title: "Reinvent it", Number: 21},
		},
		Ref: "feature/one", Folder: ".openhands/microagents", File: ".openhands/microagents/repo.md", Content: "# The app\n",
		Files: []gitprovider.File{
			{Name: "repo.md", Path: ".openhands/microagents/repo.md"}, {Name: "deep", Path: ".openhands/microagents/deep", Folder: true},
		},
		Proposal: gitprovider.Proposal{
			Repository: "team/app", Title: "Do it", Body: "Because.", Source: "work", Target: "main", Draft: true, Labels: []string{"bot"},
		},
		Proposed: gitprovider.Request{
			Number: 8, URL: "https://github.com/team/app/pull/8", Title: "Do it", State: "open", Draft: true, Source: "work", Target: "main",
		},
		Request: request,
		Discussion: gitprovider.Issue{
			Number: 7, Title: request.Title, Body: "Please pull these awesome changes in!", URL: request.URL, Author: "ada", State: "open",
			Comments: []string{"grace: Me too", "grace: Please change this.", "ghost: Who am I?", "grace: main.go:2: Great stuff!", "ada: old.go:9: Gone by now."},
			Checks:   []string{"lint: failure", "ci/legacy: error", "build: success", "slow: in_progress"},
		},
		Issue: gitprovider.Issue{
			Number: 5, Title: "Found a bug", Body: "I'm having a problem with this.", URL: "https://github.com/team/app/issues/5", Author: "grace", State: "open",
			Comments: []string{"grace: Me too", "ghost: Who am I?"},
		},
	}
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Options{
		New: func(client *http.Client, host, token string) gitprovider.Provider {
			return New(call.Options{Client: client, Host: host, Token: token})
		},
		Serve: newFake, World: world(),
		Denial: `{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for team:work."}], "documentation_url": "https://docs.github.com/rest"}`,
		Says:   "A pull request already exists for team:work.",
	})
}

func TestAddresses(t *testing.T) {
	for host, want := range map[string][2]string{
		"":                        {"https://api.github.com", "https://api.github.com"},
		"GitHub.com":              {"https://api.github.com", "https://api.github.com"},
		"api.github.com":          {"https://api.github.com", "https://api.github.com"},
		"https://www.github.com/": {"https://api.github.com", "https://api.github.com"},
		"acme.ghe.com":            {"https://api.acme.ghe.com", "https://api.acme.ghe.com"},
		"git.example.org":         {"https://git.example.org/api/v3", "https://git.example.org/api"},
		"http://127.0.0.1:1234":   {"http://127.0.0.1:1234/api/v3", "http://127.0.0.1:1234/api"},
		"notgithub.com":           {"https://notgithub.com/api/v3", "https://notgithub.com/api"},
	} {
		g := New(call.Options{Client: http.DefaultClient, Host: host}).(*github)
		rest, graphql := addresses(g.Site)
		if rest.String() != want[0] || graphql.String() != want[1] {
			t.Errorf("%q: %s %s", host, rest, graphql)
		}
	}
}

// serve starts a server that lives as long as the test, and the adapter for it.
func serve(t *testing.T, h http.Handler) gitprovider.Provider {
	s := httptest.NewServer(h)
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); s.Close() })
	return New(call.Options{Client: &http.Client{Transport: transport}, Host: s.URL, Token: "t"})
}

func TestRepositoriesOfAnInstallation(t *testing.T) {
	p := serve(t, newFake(t))
	got, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Installation: "25381", Page: 2, PerPage: 2})
	if err != nil || len(got.Items) != 2 || got.Items[0].Name != "team/lib.go" || got.Next != 3 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Installation: "../../user/repos", PerPage: 2}); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("an installation that is none: %v", err)
	}
}

func TestSorts(t *testing.T) {
	var asked url.Values
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		_, _ = w.Write([]byte("[]"))
	}))
	for sort, want := range map[string]string{"": "pushed", "pushed": "pushed", "updated": "updated", "full_name": "full_name", "stars": "pushed"} {
		if _, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Sort: sort}); err != nil || asked.Get("sort") != want || asked.Get("per_page") != "30" || asked.Get("page") != "1" {
			t.Errorf("%q: %v %v", sort, asked, err)
		}
	}
}

func TestSearch(t *testing.T) {
	p := serve(t, newFake(t))
	for text, want := range map[string]string{
		"app":                                    "ada/app-notes team/app", // the user's own comes first
		"team/":                                  "team/app team/lib.go team/.openhands",
		"team/lib":                               "team/lib.go",
		"nobody/x":                               "", // GitHub calls it an invalid search
		" : \" / ":                               "",
		"none-such":                              "",
		"git@elsewhere.example.org:team/app.git": "",
	} {
		found, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: text, PerPage: 10})
		var names []string
		for _, r := range found {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
	if found, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "app", PerPage: 1}); err != nil || len(found) != 1 {
		t.Errorf("one was wanted: %v %v", found, err)
	}
}

func TestBranchesByNamePageByPage(t *testing.T) {
	p := serve(t, newFake(t))
	for page, want := range map[int]string{1: "feature/one", 2: "feature/two", 3: "fix-feature"} {
		got, err := p.Branches(t.Context(), "team/app", gitprovider.BranchQuery{Query: "feature", Page: page, PerPage: 1})
		if err != nil || len(got.Items) != 1 || got.Items[0].Name != want || got.More != (page < 3) || got.Total != 3 || got.Items[0].PushedAt.IsZero() {
			t.Errorf("page %d: %+v %v", page, got, err)
		}
	}
	if got, err := p.Branches(t.Context(), "team/app", gitprovider.BranchQuery{Query: "main"}); err != nil || len(got.Items) != 1 || !got.Items[0].Protected {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := p.Branches(t.Context(), "nobody/nothing", gitprovider.BranchQuery{Query: "x"}); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("branches of no repository: %v", err)
	}
}

// What GitHub could not look at must not hide what it could.
func TestGraphQLErrors(t *testing.T) {
	for body, want := range map[string]gitprovider.Reason{
		`{"data": {"viewer": {"pullRequests": {"nodes": [null]}}, "search": {"nodes": [null, {}]}}, "errors": [{"type": "FORBIDDEN", "message": "SAML"}]}`: "",
		`{"data": null, "errors": [{"type": "INSUFFICIENT_SCOPES", "message": "Your token has not been granted the required scopes"}]}`:                    gitprovider.Scope,
		`{"data": null, "errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}`:                                                       gitprovider.RateLimited,
		`{"errors": [{"message": "Something went wrong"}]}`:                                                                                                gitprovider.Refused,
		`{"data": {"viewer": null}}`: gitprovider.Unavailable,
		`{"data": {"viewer": 1}}`:    gitprovider.Unavailable,
	} {
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		if tasks, err := p.Tasks(t.Context()); gitprovider.ReasonOf(err) != want || len(tasks) > 0 {
			t.Errorf("%s: %v %v", body, tasks, err)
		}
	}
}

func TestWhatStandsInTheWayOfAPullRequest(t *testing.T) {
	for _, c := range []struct{ mergeable, checks, review, want string }{
		{"CONFLICTING", "FAILURE", "CHANGES_REQUESTED", gitprovider.MergeConflicts},
		{"CONFLICTING", "", "", gitprovider.MergeConflicts},
		{"MERGEABLE", "FAILURE", "COMMENTED", gitprovider.FailingChecks},
		{"UNKNOWN", "ERROR", "", gitprovider.FailingChecks},
		{"MERGEABLE", "SUCCESS", "CHANGES_REQUESTED", gitprovider.UnresolvedComments},
		{"MERGEABLE", "PENDING", "COMMENTED", gitprovider.UnresolvedComments},
		{"MERGEABLE", "SUCCESS", "APPROVED", ""}, {"MERGEABLE", "EXPECTED", "", ""}, {"UNKNOWN", "", "", ""},
	} {
		node := map[string]any{
			"number": 1, "title": "T", "mergeable": c.mergeable, "repository": map[string]any{"nameWithOwner": "a/b"},
			"commits": map[string]any{"nodes": []any{map[string]any{"commit": map[string]any{"statusCheckRollup": nil}}}},
			"reviews": map[string]any{"nodes": []any{}},
		}
		if c.checks != "" {
			node["commits"] = map[string]any{"nodes": []any{map[string]any{"commit": map[string]any{"statusCheckRollup": map[string]any{"state": c.checks}}}}}
		}
		if c.review != "" {
			node["reviews"] = map[string]any{"nodes": []any{map[string]any{"state": c.review}}}
		}
		text, err := json.Marshal(node)
		if err != nil {
			t.Fatal(err)
		}
		var i item
		if err := json.Unmarshal(text, &i); err != nil || i.todo() != c.want {
			t.Errorf("%+v: %q %v", c, i.todo(), err)
		}
	}
}

func TestStatesOfPullRequests(t *testing.T) {
	for body, want := range map[string]string{
		`{"number": 1, "state": "closed", "merged_at": "2026-05-01T10:00:00Z"}`: "merged",
		`{"number": 1, "state": "closed", "merged_at": null}`:                   "closed",
		`{"number": 1, "state": "open", "mergeable": null}`:                     "open",
	} {
		p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		if r, err := p.Request(t.Context(), "a/b", 1); err != nil || r.State != want || r.Mergeable != nil {
			t.Errorf("%s: %+v %v", body, r, err)
		}
	}
}

// Labels that cannot be set, and checks that cannot be seen, are no failures.
func TestMinorThingsMayFail(t *testing.T) {
	whole := newFake(t)
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, part := range []string{"/labels", "/check-runs", "/status"} {
			if strings.HasSuffix(r.URL.Path, part) {
				http.Error(w, `{"message": "Resource not accessible by personal access token"}`, http.StatusForbidden)
				return
			}
		}
		whole.ServeHTTP(w, r)
	}))
	if r, err := p.Propose(t.Context(), world().Proposal); err != nil || r.Number != 8 {
		t.Errorf("%+v %v", r, err)
	}
	if d, err := p.Discussion(t.Context(), "team/app", 7); err != nil || d.Checks != nil || len(d.Comments) != 5 {
		t.Errorf("%+v %v", d, err)
	}
}

// A filter that GitHub does not understand it ignores, and lists everything.
func TestProposedIsExactlyThatOne(t *testing.T) {
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("[" + string(load(t, "pull.json")) + "]"))
	}))
	for branches, want := range map[[2]string]gitprovider.Reason{
		{"feature/one", "main"}: "", {"feature/one", ""}: "", {"ada:feature/one", "main"}: "",
		{"feature", "main"}: gitprovider.NotFound, {"feature/one", "next"}: gitprovider.NotFound,
	} {
		if r, err := p.Proposed(t.Context(), "team/app", branches[0], branches[1]); gitprovider.ReasonOf(err) != want || (r.Number == 7) != (want == "") {
			t.Errorf("%v: %+v %v", branches, r, err)
		}
	}
}

func TestNamesThatAreNotPassedOn(t *testing.T) {
	p := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL.RequestURI()) }))
	for _, name := range []string{"", "a", "a/b/c", "../user", "a/..", "a/b?x=1", "a/b#c"} {
		if _, err := p.Repository(t.Context(), name); gitprovider.ReasonOf(err) != gitprovider.NotFound {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, path := range []string{"../../x", "a/../b", "a//b", "./a"} {
		if _, err := p.File(t.Context(), "a/b", "", path); gitprovider.ReasonOf(err) != gitprovider.NotFound {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestAFolderIsNoFile(t *testing.T) {
	p := serve(t, newFake(t))
	if _, err := p.Folder(t.Context(), "team/app", "", ".openhands/microagents/repo.md"); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("a file as a folder: %v", err)
	}
	if _, err := p.File(t.Context(), "team/app", "", ".openhands/microagents"); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("a folder as a file: %v", err)
	}
}
