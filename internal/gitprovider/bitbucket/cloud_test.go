package bitbucket

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ptr[T any](v T) *T { return &v }

// cloudAt is the adapter for Cloud, at a host on loopback.
func cloudAt(client *http.Client, host, token string) gitprovider.Provider {
	o := call.Options{Client: client, Host: host, Token: token, Name: "bitbucket"}
	return newCloud(o, func(site *url.URL) *url.URL { return site.JoinPath("2.0") })
}

func cloudNamed(id int, name string) gitprovider.Repository {
	r := gitprovider.Repository{ID: fmt.Sprintf("{r-%d}", id), Name: name, Owner: "organization", MainBranch: "main", PushedAt: time.Date(2025, 1, 9-id, 0, 0, 0, 0, time.UTC)}
	if strings.HasPrefix(name, "ada/") {
		r.Owner, r.Public = "user", true
	}
	return r
}

func TestCloudConformance(t *testing.T) {
	const site = "https://bitbucket.org/crew/app/"
	var repositories []gitprovider.Repository
	for i, name := range cloudNames {
		repositories = append(repositories, cloudNamed(i+1, name))
	}
	var branches []gitprovider.Branch
	for i, name := range []string{"main", "fix/one", "fix/two", "old", "older"} {
		branches = append(branches, gitprovider.Branch{Name: name, Commit: fmt.Sprintf("%040d", i), PushedAt: time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)})
	}
	providertest.Run(t, providertest.Options{
		New:   cloudAt,
		Serve: func(*testing.T) http.Handler { return newCloudFake() },
		World: providertest.World{
			User:         gitprovider.User{ID: "557058:ada", Login: "ada", Name: "Ada L", Email: "ada@example.org", AvatarURL: "https://example.org/ada.png"},
			Repositories: repositories, Text: "hoist", Found: []string{"crew/hoist", "ada/hoist-old"},
			Repository: repositories[1], Page: "/crew/app/src/main",
			Branches: branches, Part: "fix", With: []string{"fix/one", "fix/two"}, Installations: []string{"ada", "crew"},
			Tasks: []gitprovider.Task{
				{Type: gitprovider.FailingChecks, Repository: "crew/app", Title: "Mend the hoist", Number: 12},
				{Type: gitprovider.OpenIssue, Repository: "crew/hoist", Title: "Rust", Number: 3},
			},
			Ref: "fix/one", Folder: ".openhands/microagents", File: ".openhands/microagents/repo.md", Content: "# Hoist\n",
			Files:    []gitprovider.File{{Name: "deep", Path: ".openhands/microagents/deep", Folder: true}, {Name: "repo.md", Path: ".openhands/microagents/repo.md"}},
			Proposal: gitprovider.Proposal{Repository: "crew/app", Title: "New rope", Source: "rope", Draft: true},
			Proposed: gitprovider.Request{Number: 13, URL: site + "pull-requests/13", Title: "New rope", State: "open", Draft: true, Source: "rope", Target: "main"},
			Request: gitprovider.Request{
				Number: 12, URL: site + "pull-requests/12", Title: "Mend the hoist", State: "open", Source: "fix/one", Target: "main", Mergeable: ptr(true),
			},
			Discussion: gitprovider.Issue{
				Number: 12, Title: "Mend the hoist", Body: "It slips.", URL: site + "pull-requests/12", Author: "ada_l", State: "open",
				Comments: []string{"bob: Why?", "bob: rope.go:41: Too short.", "bob: hook.go:7: Gone?"}, Checks: []string{"unit: FAILED", "lint: SUCCESSFUL"},
			},
			Issue: gitprovider.Issue{
				Number: 4, Title: "It slips", Body: "On wet days.", URL: site + "issues/4", Author: "bob", State: "open", Comments: []string{"cid: Seen it too."},
			},
		},
		Denial: `{"type":"error","error":{"message":"There are no changes to be pulled","fields":{"source":["rope has nothing new"]}}}`,
		Says:   "There are no changes to be pulled",
	})
}

// answering makes an adapter for a handler.
func answering(t *testing.T, open func(*http.Client, string, string) gitprovider.Provider, answer http.HandlerFunc) gitprovider.Provider {
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return open(s.Client(), s.URL, "token-x")
}

// instead answers some paths of the fake differently; what is "" is not found.
func instead(fake http.Handler, bodies map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for end, body := range bodies {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, end) {
				if body == "" {
					refuse(w, http.StatusNotFound, `{"type":"error","error":{"message":"not here"}}`)
				} else {
					write(w, body)
				}
				return
			}
		}
		fake.ServeHTTP(w, r)
	}
}

func TestCloudTasks(t *testing.T) {
	list := func(items string) string { return `{"pagelen":50,"values":[` + items + `]}` }
	request := func(changes ...string) string { // pairs of what to replace
		return list(strings.NewReplacer(changes...).Replace(cloudRequestJSON))
	}
	calm := request(`"state":"changes_requested"`, `"state":null`)
	thread := func(fields string) string {
		return list(`{"id":1,"content":{"raw":"?"},"user":{"uuid":"{u-bob}"},"deleted":false,"inline":{"path":"a.go","to":1}` + fields + `}`)
	}
	for _, c := range []struct {
		about, request, diffstat, statuses, comments, want string
	}{
		{"conflict before all", request(), list(`{"status":"modified"},{"status":"merge conflict"}`), list(`{"state":"FAILED"}`), thread(""), gitprovider.MergeConflicts},
		{"deleted here", calm, list(`{"status":"local deleted"}`), list(""), list(""), gitprovider.MergeConflicts},
		{"builds before comments", request(), list(""), list(`{"state":"SUCCESSFUL"},{"state":"FAILED"}`), thread(""), gitprovider.FailingChecks},
		{"builds under way", calm, list(""), list(`{"state":"INPROGRESS"},{"state":"STOPPED"}`), list(""), ""},
		{"changes wanted", request(), list(""), list(""), list(""), gitprovider.UnresolvedComments},
		{"a task", request(`"state":"changes_requested"`, `"state":null`, `"task_count":0`, `"task_count":1`), list(""), list(""), list(""), gitprovider.UnresolvedComments},
		{"an open thread", calm, list(""), list(""), thread(""), gitprovider.UnresolvedComments},
		{"a resolved one", calm, list(""), list(""), thread(`,"resolution":{"type":"comment_resolution"}`), ""},
		{"an answer", calm, list(""), list(""), thread(`,"parent":{"id":9}`), ""},
		{"an own remark", calm, list(""), list(""), list(`{"user":{"uuid":"{u-ada}"},"inline":{"path":"a.go","to":1}}`), ""},
		{"talk", calm, list(""), list(""), list(`{"user":{"uuid":"{u-bob}"},"content":{"raw":"Nice."}}`), ""},
		{"nothing said", request(`"state":"changes_requested"`, `"state":null`, `"comment_count":2`, `"comment_count":0`), list(""), list(""), "", ""},
		{"all hidden", calm, "", "", "", ""},
	} {
		p := answering(t, cloudAt, instead(newCloudFake(), map[string]string{
			"/workspaces/crew/pullrequests/{u-ada}": c.request, "/12/diffstat": c.diffstat, "/12/statuses": c.statuses, "/12/comments": c.comments, "/hoist/issues": "",
		}))
		got, err := p.Tasks(t.Context())
		var want []gitprovider.Task
		if c.want != "" {
			want = []gitprovider.Task{{Type: c.want, Repository: "crew/app", Title: "Mend the hoist", Number: 12}}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v %v, want %+v", c.about, got, err, want)
		}
	}
}

// Pull requests of many workspaces come in one order, the newest first, and no more than 50 are looked at.
func TestCloudTasksOfManyWorkspaces(t *testing.T) {
	page := func(first int) string {
		var all []string
		for i := range 40 {
			stamp := time.Date(2025, 2, 2, 0, first-2*i, 0, 0, time.UTC).Format(time.RFC3339)
			all = append(all, strings.NewReplacer(`"id":12`, fmt.Sprintf(`"id":%d`, first*100+i), "2025-02-02T00:00:00.000000+00:00", stamp).Replace(cloudRequestJSON))
		}
		return `{"values":[` + strings.Join(all, ",") + `]}`
	}
	p := answering(t, cloudAt, instead(newCloudFake(), map[string]string{
		"/workspaces/ada/pullrequests/{u-ada}": page(1), "/workspaces/crew/pullrequests/{u-ada}": page(2),
		"/diffstat": `{"values":[]}`, "/statuses": `{"values":[]}`, "/hoist/issues": "",
	}))
	got, err := p.Tasks(t.Context())
	if err != nil || len(got) != 50 {
		t.Fatalf("%d tasks, %v", len(got), err)
	}
	for i, want := range []int{200, 100, 201, 101, 202} {
		if got[i].Number != want {
			t.Errorf("task %d is %d, want %d", i, got[i].Number, want)
		}
	}
}

// What a provider cannot answer now is an error, and not the same as nothing to do.
func TestCloudTasksInTrouble(t *testing.T) {
	for _, end := range []string{"/user", "/user/workspaces", "/pullrequests/{u-ada}", "/12/diffstat", "/12/statuses", "/repositories/crew", "/hoist/issues"} {
		fake := newCloudFake()
		p := answering(t, cloudAt, func(w http.ResponseWriter, r *http.Request) {
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

// A workspace that asks for more than the token does not hide the others.
func TestCloudLockedWorkspaces(t *testing.T) {
	for locked, want := range map[string]int{"ada": 3, "crew": 2, "": 5} {
		fake := newCloudFake()
		p := answering(t, cloudAt, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/2.0/repositories/"+locked) && locked != "" {
				refuse(w, http.StatusForbidden, `{"type":"error","error":{"message":"Your address is not on the allowlist."}}`)
				return
			}
			fake.ServeHTTP(w, r)
		})
		got, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{})
		if err != nil || len(got.Items) != want {
			t.Errorf("%q locked: %d repositories, %v", locked, len(got.Items), err)
		}
	}
	all := answering(t, cloudAt, instead(newCloudFake(), map[string]string{"/repositories/ada": "", "/repositories/crew": ""}))
	if _, err := all.Repositories(t.Context(), gitprovider.RepositoryQuery{}); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("%v", err)
	}
}

func TestCloudRepositoriesOfOneWorkspace(t *testing.T) {
	var asked []string
	fake := newCloudFake()
	p := answering(t, cloudAt, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		fake.ServeHTTP(w, r)
	})
	first, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Installation: "crew", Sort: "created", Page: 1, PerPage: 2})
	if err != nil || len(first.Items) != 2 || first.Next != 2 {
		t.Errorf("%+v %v", first, err)
	}
	second, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Installation: "crew", Sort: "full_name", Page: 2, PerPage: 2})
	if err != nil || len(second.Items) != 1 || second.Next != 0 {
		t.Errorf("%+v %v", second, err)
	}
	want := []string{"/2.0/repositories/crew?page=1&pagelen=2&role=member&sort=-created_on", "/2.0/repositories/crew?page=2&pagelen=2&role=member&sort=full_name"}
	if !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
}

// Lists of many workspaces are joined in the order that was asked for.
func TestCloudOrder(t *testing.T) {
	p := answering(t, cloudAt, newCloudFake().ServeHTTP)
	for sort, want := range map[string]string{
		"pushed": "ada/notes crew/app ada/hoist-old crew/hoist crew/web", "created": "crew/web crew/hoist ada/hoist-old crew/app ada/notes",
		"full_name": "ada/hoist-old ada/notes crew/app crew/hoist crew/web",
	} {
		got, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Sort: sort, PerPage: 50})
		var names []string
		for _, r := range got.Items {
			names = append(names, r.Name)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %q %v", sort, names, err)
		}
	}
}

func TestCloudSearchInAWorkspace(t *testing.T) {
	p := answering(t, cloudAt, newCloudFake().ServeHTTP)
	for text, want := range map[string]int{"crew/ho": 1, "crew/": 3, "elsewhere/x": 0, "ho": 2} {
		got, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: text, Order: "asc"})
		if err != nil || len(got) != want {
			t.Errorf("%q: %d found, %v", text, len(got), err)
		}
	}
}

func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{`a`: `"a"`, `a" OR name != "`: `"a\" OR name != \""`, `\`: `"\\"`} {
		if got := quoted(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// Only tokens with that scope get the address; without it the user is still the user.
func TestCloudEmailHidden(t *testing.T) {
	u, err := answering(t, cloudAt, instead(newCloudFake(), map[string]string{"/user/emails": ""})).User(t.Context())
	if err != nil || u.Login != "ada" || u.Email != "" {
		t.Errorf("%+v %v", u, err)
	}
}

func TestCloudRequestStates(t *testing.T) {
	for theirs, ours := range map[string]string{"OPEN": "open", "MERGED": "merged", "DECLINED": "closed", "SUPERSEDED": "closed"} {
		p := answering(t, cloudAt, instead(newCloudFake(), map[string]string{
			"/pullrequests/12": strings.Replace(cloudRequestJSON, "OPEN", theirs, 1), "/12/diffstat": `{"values":[{"status":"merge conflict"}]}`,
		}))
		got, err := p.Request(t.Context(), "crew/app", 12)
		if err != nil || got.State != ours || (got.Mergeable == nil) != (ours != "open") || got.Mergeable != nil && *got.Mergeable {
			t.Errorf("%s: %+v %v", theirs, got, err)
		}
	}
	hidden := answering(t, cloudAt, instead(newCloudFake(), map[string]string{"/12/diffstat": ""}))
	if got, err := hidden.Request(t.Context(), "crew/app", 12); err != nil || got.Mergeable != nil {
		t.Errorf("%+v %v", got, err)
	}
}

// A folder is no file, an empty repository has none, and a name has two parts.
func TestCloudOddities(t *testing.T) {
	p := answering(t, cloudAt, instead(newCloudFake(), map[string]string{"/crew/empty": `{"full_name":"crew/empty","mainbranch":null}`}))
	for what, err := range map[string]error{
		"folder as file": second(p.File(t.Context(), "crew/app", "main", ".openhands/microagents")),
		"empty":          second(p.File(t.Context(), "crew/empty", "", "README.md")),
		"one part":       second(p.Repository(t.Context(), "app")),
		"three parts":    second(p.Repository(t.Context(), "crew/x/app")),
		"no branch":      second(p.Folder(t.Context(), "crew/app", "no/such", "")),
		"no parts":       p.Comment(t.Context(), "", 1, true, "x"),
	} {
		if gitprovider.ReasonOf(err) != gitprovider.NotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
