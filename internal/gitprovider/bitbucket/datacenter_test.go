package bitbucket

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/providertest"
)

// trackless gives the suite pull requests where it asks for issues: a Data
// Center has none.
type trackless struct{ gitprovider.Provider }

func (p trackless) Issue(ctx context.Context, repository string, number int) (gitprovider.Issue, error) {
	return p.Discussion(ctx, repository, number)
}

func (p trackless) Comment(ctx context.Context, repository string, number int, _ bool, text string) error {
	return p.Provider.Comment(ctx, repository, number, true, text)
}

// centerAt is the adapter for a Data Center.
func centerAt(client *http.Client, host, token string) gitprovider.Provider {
	return New(call.Options{Client: client, Host: host, Token: token, Name: "bitbucket"})
}

func centerNamed(id int, name string) gitprovider.Repository {
	r := gitprovider.Repository{ID: fmt.Sprint(id), Name: name, Owner: "organization"}
	if strings.HasPrefix(name, "~") {
		r.Owner, r.Public = "user", true
	}
	return r
}

func TestDataCenterConformance(t *testing.T) {
	const site = "https://git.example.org/projects/PRJ/repos/app/"
	var repositories []gitprovider.Repository
	for i, name := range centerNames {
		repositories = append(repositories, centerNamed(i+1, name))
	}
	single := repositories[0]
	single.MainBranch = "main"
	var branches []gitprovider.Branch
	for i, name := range []string{"main", "fix/one", "fix/two", "old", "older"} {
		branches = append(branches, gitprovider.Branch{Name: name, Commit: fmt.Sprintf("%040d", i)})
	}
	discussion := gitprovider.Issue{
		Number: 12, Title: "Mend the hoist", Body: "It slips.", URL: site + "pull-requests/12", Author: "Ada.L", State: "open",
		Comments: []string{"bob: Why?", "Ada.L: Because.", "bob: rope.go:41: Too short."}, Checks: []string{"unit: FAILED", "lint: SUCCESSFUL"},
	}
	var host string // the user's picture is at the host that is asked
	picture := func(p gitprovider.Provider) gitprovider.Provider { return trackless{pictured{p, host}} }
	providertest.Run(t, providertest.Options{
		New: func(client *http.Client, at, token string) gitprovider.Provider {
			host = at
			return picture(centerAt(client, at, token))
		},
		Serve: func(*testing.T) http.Handler { return newCenterFake() },
		World: providertest.World{
			User:         gitprovider.User{ID: "101", Login: "Ada.L", Name: "Ada L", Email: "ada@example.org", AvatarURL: "/users/ada.l/avatar.png"},
			Repositories: repositories, Text: "hoist", Found: []string{"PRJ/hoist", "~ada/old-hoist"},
			Repository: single, Page: "/projects/PRJ/repos/app/browse",
			Branches: branches, Part: "fix", With: []string{"fix/one", "fix/two"}, Installations: []string{"~ada.l", "PRJ", "OPS"},
			Tasks: []gitprovider.Task{{Type: gitprovider.FailingChecks, Repository: "PRJ/app", Title: "Mend the hoist", Number: 12}},
			Ref:   "main", Folder: ".openhands/microagents", File: ".openhands/microagents/repo.md", Content: "# Hoist\n",
			Files:    []gitprovider.File{{Name: "deep", Path: ".openhands/microagents/deep", Folder: true}, {Name: "repo.md", Path: ".openhands/microagents/repo.md"}},
			Proposal: gitprovider.Proposal{Repository: "PRJ/app", Title: "New rope", Source: "rope", Draft: true},
			Proposed: gitprovider.Request{Number: 13, URL: site + "pull-requests/13", Title: "New rope", State: "open", Draft: true, Source: "rope", Target: "main"},
			Request: gitprovider.Request{
				Number: 12, URL: site + "pull-requests/12", Title: "Mend the hoist", State: "open", Source: "fix/one", Target: "main", Mergeable: ptr(true),
			},
			Discussion: discussion, Issue: discussion,
		},
		Denial: `{"errors":[{"context":null,"message":"Only one pull request may be open for a given source and target branch","exceptionName":"com.atlassian.bitbucket.pull.DuplicatePullRequestException"}]}`,
		Says:   "Only one pull request may be open",
	})
}

// pictured takes the host out of the address of the user's picture.
type pictured struct {
	gitprovider.Provider
	host string
}

func (p pictured) User(ctx context.Context) (gitprovider.User, error) {
	u, err := p.Provider.User(ctx)
	u.AvatarURL = strings.TrimPrefix(u.AvatarURL, p.host)
	return u, err
}

func TestDataCenterTasks(t *testing.T) {
	list := func(items string) string { return `{"isLastPage":true,"values":[` + items + `]}` }
	request := func(changes ...string) string {
		return list(strings.NewReplacer(changes...).Replace(centerRequestJSON))
	}
	calm := request("NEEDS_WORK", "UNAPPROVED")
	comment := func(who, fields string) string {
		return list(`{"action":"COMMENTED","comment":{"id":1,"text":"?","author":{"name":"` + who + `"}` + fields + `}}`)
	}
	const clean, fine = `{"canMerge":true,"conflicted":false,"outcome":"CLEAN"}`, `{"successful":1,"inProgress":2,"failed":0}`
	for _, c := range []struct {
		about, request, merge, builds, activities, want string
	}{
		{"conflict before all", request(), `{"canMerge":false,"conflicted":true,"outcome":"CONFLICTED"}`, `{"failed":1}`, comment("bob", ""), gitprovider.MergeConflicts},
		{"builds before comments", request(), clean, `{"failed":1}`, comment("bob", ""), gitprovider.FailingChecks},
		{"not looked at yet", calm, `{"canMerge":false,"conflicted":false,"outcome":"UNKNOWN"}`, fine, list(""), ""},
		{"needs work", request(), clean, fine, list(""), gitprovider.UnresolvedComments},
		{"a task", request("NEEDS_WORK", "APPROVED", `"openTaskCount":0`, `"openTaskCount":1`), clean, fine, list(""), gitprovider.UnresolvedComments},
		{"a thread", calm, clean, fine, comment("bob", `,"threadResolved":false,"state":"OPEN"`), gitprovider.UnresolvedComments},
		{"a resolved one", calm, clean, fine, comment("bob", `,"threadResolved":true`), ""},
		{"a resolved task", calm, clean, fine, comment("bob", `,"state":"RESOLVED"`), ""},
		{"an own remark", calm, clean, fine, comment("Ada.L", ""), ""},
		{"nothing said", request("NEEDS_WORK", "UNAPPROVED", `"commentCount":2`, `"commentCount":0`), clean, fine, "", ""},
		{"nothing counted", request("NEEDS_WORK", "UNAPPROVED", `"commentCount":2,"openTaskCount":0`, `"other":1`), clean, fine, comment("bob", ""), gitprovider.UnresolvedComments},
		{"all hidden", calm, "", "", "", ""},
	} {
		p := answering(t, centerAt, instead(newCenterFake(), map[string]string{
			"/dashboard/pull-requests": c.request, "/12/merge": c.merge, "/commits/stats/abc": c.builds, "/12/activities": c.activities,
		}))
		got, err := p.Tasks(t.Context())
		var want []gitprovider.Task
		if c.want != "" {
			want = []gitprovider.Task{{Type: c.want, Repository: "PRJ/app", Title: "Mend the hoist", Number: 12}}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v %v, want %+v", c.about, got, err, want)
		}
	}
}

func TestDataCenterTasksInTrouble(t *testing.T) {
	for _, end := range []string{"/dashboard/pull-requests", "/12/merge", "/commits/stats/abc"} {
		fake := newCenterFake()
		p := answering(t, centerAt, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, end) {
				refuse(w, http.StatusBadGateway, "oops")
				return
			}
			fake.ServeHTTP(w, r)
		})
		if got, err := p.Tasks(t.Context()); gitprovider.ReasonOf(err) != gitprovider.Unavailable || got != nil {
			t.Errorf("%s: %v %v", end, got, err)
		}
	}
}

func TestDataCenterHasNoTracker(t *testing.T) {
	p := answering(t, centerAt, newCenterFake().ServeHTTP)
	for _, err := range []error{second(p.Issue(t.Context(), "PRJ/app", 12)), p.Comment(t.Context(), "PRJ/app", 12, false, "x")} {
		if gitprovider.ReasonOf(err) != gitprovider.Unsupported {
			t.Errorf("%v", err)
		}
	}
}

// Who asks is told by a page beside the API, which may be something else.
func TestDataCenterWhoami(t *testing.T) {
	for body, want := range map[string]gitprovider.Reason{
		" ": gitprovider.BadToken, "<html><title>Sign in</title>": gitprovider.Unavailable, "a\x00b": gitprovider.Unavailable,
		strings.Repeat("a", 300): gitprovider.Unavailable, "nobody.knows": gitprovider.NotFound, "ADA.L": "",
	} {
		_, err := answering(t, centerAt, instead(newCenterFake(), map[string]string{"/whoami": body})).User(t.Context())
		if gitprovider.ReasonOf(err) != want {
			t.Errorf("%.30q: %v, want %s", body, err, want)
		}
	}
}

func TestDataCenterMainBranch(t *testing.T) {
	for about, c := range map[string]struct {
		bodies map[string]string
		want   string
	}{
		"older version": {map[string]string{"/default-branch": "", "/branches/default": `{"displayId":"master"}`}, "master"},
		"none":          {map[string]string{"/default-branch": "", "/branches/default": ""}, ""},
	} {
		r, err := answering(t, centerAt, instead(newCenterFake(), c.bodies)).Repository(t.Context(), "PRJ/app")
		if err != nil || r.MainBranch != c.want {
			t.Errorf("%s: %+v %v", about, r, err)
		}
	}
	fake := newCenterFake()
	empty := answering(t, centerAt, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/default-branch") {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fake.ServeHTTP(w, r)
	})
	if r, err := empty.Repository(t.Context(), "PRJ/app"); err != nil || r.MainBranch != "" {
		t.Errorf("%+v %v", r, err)
	}
}

// A server that leaves out what the user may not see gives short pages, and begins the next where it likes.
func TestDataCenterShortPages(t *testing.T) {
	p := answering(t, centerAt, func(w http.ResponseWriter, r *http.Request) {
		start := number(r, "start", 0)
		if start%7 != 0 {
			t.Errorf("asked from %d", start)
		}
		write(w, fmt.Sprintf(`{"values":[%s],"isLastPage":%t,"nextPageStart":%d}`, centerRepositoryJSON(start, "PRJ/app"), start == 28, start+7))
	})
	var ids []string
	for page := 1; page != 0; {
		got, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Page: page, PerPage: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Items {
			ids = append(ids, r.ID)
		}
		page = got.Next
	}
	if strings.Join(ids, " ") != "0 7 14 21 28" {
		t.Errorf("%q", ids)
	}
}

// A server that always has a next page, and never anything on it, is left.
func TestDataCenterEndlessPages(t *testing.T) {
	asked := 0
	p := answering(t, centerAt, func(w http.ResponseWriter, r *http.Request) {
		asked++
		write(w, fmt.Sprintf(`{"values":[],"isLastPage":false,"nextPageStart":%d}`, number(r, "start", 0)+1))
	})
	if _, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "x", PerPage: 5}); err != nil || asked > 100 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

// One that says there is more, and not where, is not asked for the same again.
func TestDataCenterNowhereNext(t *testing.T) {
	p := answering(t, centerAt, fixed(`{"values":[`+centerRepositoryJSON(1, "PRJ/app")+`],"isLastPage":false}`))
	if found, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "x", PerPage: 5}); err != nil || len(found) != 1 {
		t.Errorf("%v %v", found, err)
	}
}

func TestDataCenterFolders(t *testing.T) {
	p := answering(t, centerAt, newCenterFake().ServeHTTP)
	if _, err := p.Folder(t.Context(), "PRJ/app", "", "README.md"); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("a file as a folder: %v", err)
	}
	root := answering(t, centerAt, fixed(`{"path":{"components":[]},"children":{"isLastPage":true,"values":[]}}`))
	if files, err := root.Folder(t.Context(), "PRJ/app", "", "/"); err != nil || len(files) > 0 {
		t.Errorf("%v %v", files, err)
	}
}

func TestDataCenterInstallation(t *testing.T) {
	p := answering(t, centerAt, newCenterFake().ServeHTTP)
	got, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Installation: "PRJ"})
	if err != nil || len(got.Items) != 2 || got.Next != 0 {
		t.Errorf("%+v %v", got, err)
	}
	if found, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "~ada/hoist"}); err != nil || len(found) != 1 || found[0].Name != "~ada/old-hoist" {
		t.Errorf("%+v %v", found, err)
	}
}

func TestDataCenterStates(t *testing.T) {
	for theirs, ours := range map[string]string{"MERGED": "merged", "DECLINED": "closed"} {
		p := answering(t, centerAt, instead(newCenterFake(), map[string]string{"/pull-requests/12": strings.Replace(centerRequestJSON, `"OPEN"`, `"`+theirs+`"`, 1)}))
		if got, err := p.Request(t.Context(), "PRJ/app", 12); err != nil || got.State != ours || got.Mergeable != nil {
			t.Errorf("%s: %+v %v", theirs, got, err)
		}
	}
}

func TestNamed(t *testing.T) {
	for path, want := range map[string]string{
		"/projects/PRJ/repos/app": "PRJ/app", "/projects/PRJ/repos/app/pull-requests/3/overview": "PRJ/app", "/users/ada/repos/notes/browse": "~ada/notes",
		"/scm/prj/app.git": "prj/app", "/scm/~ada/notes.git": "~ada/notes", "/prj/app.git": "prj/app", "/": "", "/projects/PRJ": "", "/dashboard": "",
		"/projects/../repos/app": "", "/scm/prj/-x": "", "/a/b/c/d/e": "",
	} {
		if got := named(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func FuzzNamed(f *testing.F) {
	f.Add("/projects/PRJ/repos/app/browse")
	f.Add("/scm/~ada/notes.git")
	f.Fuzz(func(t *testing.T, path string) {
		if name := named(path); name != "" && (!gitprovider.ValidRepository(name) || strings.Count(name, "/") != 1) {
			t.Errorf("%q becomes %q", path, name)
		}
	})
}
