package gitlab

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/providertest"
)

func ptr[T any](v T) *T { return &v }

func repository(id int, name string) gitprovider.Repository {
	r := gitprovider.Repository{
		ID: fmt.Sprint(id), Name: name, Owner: "organization", Stars: ptr(id), MainBranch: "main", PushedAt: time.Date(2025, 1, 9-id, 0, 0, 0, 0, time.UTC),
	}
	if strings.HasPrefix(name, "ada/") {
		r.Owner, r.Public = "user", true
	}
	return r
}

func branch(i int, name string) gitprovider.Branch {
	return gitprovider.Branch{Name: name, Commit: fmt.Sprintf("%040d", i), Protected: name == "main", PushedAt: time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)}
}

func TestConformance(t *testing.T) {
	const site = "https://gitlab.example.org/crew/app/-/"
	comments := []string{"bob: Why?", "bob: rope.go:41: Too short.", "bob: hook.go: Gone?"}
	providertest.Run(t, providertest.Options{
		New: func(client *http.Client, host, token string) gitprovider.Provider {
			return New(call.Options{Client: client, Host: host, Token: token, Name: "gitlab"})
		},
		Serve: func(*testing.T) http.Handler { return newFake() },
		World: providertest.World{
			User: gitprovider.User{ID: "7", Login: "ada", Name: "Ada L", Email: "ada@example.org", Company: "Crew", AvatarURL: "https://gitlab.example.org/a.png"},
			Repositories: []gitprovider.Repository{
				repository(1, "ada/notes"), repository(2, "crew/app"), repository(3, "crew/tools/hoist"), repository(4, "crew/tools/winch"), repository(5, "crew/web"),
			},
			Text: "hoist", Found: []string{"ada/hoist-public", "crew/tools/hoist"},
			Repository: repository(2, "crew/app"), Page: "/crew/app/-/tree/main",
			Branches: []gitprovider.Branch{branch(0, "main"), branch(1, "fix/one"), branch(2, "fix/two"), branch(3, "old"), branch(4, "older")},
			Part:     "fix", With: []string{"fix/one", "fix/two"},
			Tasks: []gitprovider.Task{
				{Type: gitprovider.FailingChecks, Repository: "crew/app", Title: "Mend the hoist", Number: 12},
				{Type: gitprovider.OpenIssue, Repository: "crew/tools/hoist", Title: "It slips", Number: 4},
			},
			Ref: "main", Folder: ".openhands/microagents", File: ".openhands/microagents/repo.md", Content: "# Hoist\n",
			Files: []gitprovider.File{
				{Name: "deep", Path: ".openhands/microagents/deep", Folder: true}, {Name: "repo.md", Path: ".openhands/microagents/repo.md"},
			},
			Proposal: gitprovider.Proposal{Repository: "crew/app", Title: "New rope", Source: "rope", Draft: true},
			Proposed: gitprovider.Request{Number: 13, URL: site + "merge_requests/13", Title: "Draft: New rope", State: "open", Draft: true, Source: "rope", Target: "main"},
			Request: gitprovider.Request{
				Number: 12, URL: site + "merge_requests/12", Title: "Mend the hoist", State: "open", Source: "fix/one", Target: "main", Mergeable: ptr(true),
			},
			Discussion: gitprovider.Issue{
				Number: 12, Title: "Mend the hoist", Body: "It slips.", URL: site + "merge_requests/12", Author: "ada", State: "open",
				Comments: comments, Checks: []string{"unit: failed", "lint: success"},
			},
			Issue: gitprovider.Issue{
				Number: 4, Title: "It slips", Body: "On wet days.", URL: site + "issues/4", Author: "bob", State: "open", Comments: []string{"cid: Seen it too."},
			},
		},
		Denial: `{"message":["Another open merge request already exists for this source branch: !12"]}`,
		Says:   "Another open merge request already exists for this source branch: !12",
	})
}

// ask makes a provider for a handler, at a path of its own as some hosts have it.
func ask(t *testing.T, answer http.HandlerFunc) gitprovider.Provider {
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return New(call.Options{Client: s.Client(), Host: s.URL + "/git/", Token: "glpat-x", Name: "gitlab"})
}

func TestTasks(t *testing.T) {
	for _, c := range []struct{ about, fields, want string }{
		{"conflicts", `"conflicts":true,"headPipeline":{"status":"FAILED"},"resolvableDiscussionsCount":2`, gitprovider.MergeConflicts},
		{"conflicts by status", `"detailedMergeStatus":"CONFLICT"`, gitprovider.MergeConflicts},
		{"pipeline", `"headPipeline":{"status":"FAILED"},"resolvableDiscussionsCount":2,"resolvedDiscussionsCount":0`, gitprovider.FailingChecks},
		{"pipeline under way", `"headPipeline":{"status":"RUNNING"}`, ""},
		{"pipeline cancelled", `"headPipeline":{"status":"CANCELED"}`, ""},
		{"thread open", `"headPipeline":{"status":"SUCCESS"},"resolvableDiscussionsCount":2,"resolvedDiscussionsCount":1`, gitprovider.UnresolvedComments},
		{"threads closed", `"resolvableDiscussionsCount":2,"resolvedDiscussionsCount":2`, ""},
		{"threads not counted", `"resolvableDiscussionsCount":null,"resolvedDiscussionsCount":null`, ""},
		{"discussions block", `"detailedMergeStatus":"DISCUSSIONS_NOT_RESOLVED"`, gitprovider.UnresolvedComments},
		{"changes wanted", `"detailedMergeStatus":"REQUESTED_CHANGES"`, gitprovider.UnresolvedComments},
		{"nothing", `"detailedMergeStatus":"MERGEABLE","headPipeline":null`, ""},
		{"draft", `"detailedMergeStatus":"DRAFT_STATUS","headPipeline":null`, ""},
	} {
		p := ask(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.URL.Path == "/git/api/graphql" {
				write(w, graph(`{"iid":"3","title":"T","project":{"fullPath":"a/b/c"},`+c.fields+`}`))
				return
			}
			write(w, "[]")
		})
		got, err := p.Tasks(t.Context())
		var want []gitprovider.Task
		if c.want != "" {
			want = []gitprovider.Task{{Type: c.want, Repository: "a/b/c", Title: "T", Number: 3}}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v %v, want %+v", c.about, got, err, want)
		}
	}
}

// What GraphQL answers with status 200 can be a failure too.
func TestTasksOverGraphQL(t *testing.T) {
	for body, want := range map[string]gitprovider.Reason{
		`{"data":{"currentUser":null}}`:                                          gitprovider.BadToken,
		`{"errors":[{"message":"Field 'conflicts' doesn't exist"}],"data":null}`: gitprovider.Unavailable,
	} {
		_, err := ask(t, fixed(body)).Tasks(t.Context())
		if gitprovider.ReasonOf(err) != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

func TestMergeable(t *testing.T) {
	for _, c := range []struct {
		fields string
		want   *bool
	}{
		{`"state":"opened","has_conflicts":false,"detailed_merge_status":"mergeable"`, ptr(true)},
		{`"state":"opened","has_conflicts":false,"detailed_merge_status":"ci_must_pass"`, ptr(true)},
		{`"state":"opened","has_conflicts":true,"detailed_merge_status":"conflict"`, ptr(false)},
		{`"state":"opened","has_conflicts":true,"detailed_merge_status":"checking"`, ptr(false)},
		{`"state":"opened","has_conflicts":false,"detailed_merge_status":"unchecked"`, nil},
		{`"state":"opened","has_conflicts":false,"merge_status":"cannot_be_merged_recheck"`, nil},
		{`"state":"opened","has_conflicts":false,"merge_status":"can_be_merged"`, ptr(true)},
		{`"state":"merged","has_conflicts":false,"detailed_merge_status":"not_open"`, nil},
	} {
		got, err := ask(t, fixed("{"+c.fields+"}")).Request(t.Context(), "a/b", 1)
		if err != nil || (got.Mergeable == nil) != (c.want == nil) || c.want != nil && *got.Mergeable != *c.want {
			t.Errorf("%s: %+v %v", c.fields, got, err)
		}
	}
}

func TestStates(t *testing.T) {
	for theirs, ours := range map[string]string{"opened": "open", "locked": "open", "closed": "closed", "merged": "merged"} {
		if got, err := ask(t, fixed(`{"state":"`+theirs+`"}`)).Request(t.Context(), "a/b", 1); err != nil || got.State != ours {
			t.Errorf("%s: %+v %v", theirs, got, err)
		}
	}
}

// asked is one request as it came over the wire.
type asked struct {
	line string
	body map[string]any
}

func TestWhatIsAsked(t *testing.T) {
	var log []asked
	p := ask(t, func(w http.ResponseWriter, r *http.Request) {
		one := asked{line: r.Method + " " + r.URL.RequestURI()}
		if text, _ := io.ReadAll(r.Body); len(text) > 0 {
			if err := json.Unmarshal(text, &one.body); err != nil {
				t.Error(err)
			}
		}
		if got := r.Header.Get("Authorization"); got != "Bearer glpat-x" {
			t.Errorf("authorization is %q", got)
		}
		log = append(log, one)
		switch {
		case strings.HasSuffix(r.URL.Path, "/projects"):
			write(w, "[]")
		default:
			write(w, `{"default_branch":"trunk","iid":1,"state":"opened"}`)
		}
	})
	for _, sort := range []string{"pushed", "updated", "created", "full_name", "?"} {
		if _, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Sort: sort, Page: 2, PerPage: 500}); err != nil {
			t.Fatal(err)
		}
	}
	order := "GET /git/api/v4/projects?membership=true&order_by=%s&page=2&per_page=100&sort=%s"
	want := []string{
		fmt.Sprintf(order, "last_activity_at", "desc"), fmt.Sprintf(order, "updated_at", "desc"), fmt.Sprintf(order, "created_at", "desc"),
		fmt.Sprintf(order, "path", "asc"), fmt.Sprintf(order, "last_activity_at", "desc"),
	}
	if _, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "crew/ho", Sort: "updated", Order: "asc", PerPage: 5}); err != nil {
		t.Fatal(err)
	}
	find := "GET /git/api/v4/projects?%sorder_by=last_activity_at&page=1&per_page=5&search=crew%%2Fho&search_namespaces=true&sort=asc%s"
	want = append(want, fmt.Sprintf(find, "membership=true&", ""), fmt.Sprintf(find, "", "&visibility=public"))
	for _, title := range []string{"New rope", "draft: New rope"} {
		_, err := p.Propose(t.Context(), gitprovider.Proposal{Repository: "crew/tools/../app", Title: title, Body: "Long.", Source: "rope", Draft: true, Labels: []string{"a", "b c"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	path := "/git/api/v4/projects/crew%2Ftools%2F..%2Fapp"
	want = append(want, "GET "+path, "POST "+path+"/merge_requests", "GET "+path, "POST "+path+"/merge_requests")
	proposals := len(log)
	for _, target := range []string{"", "main"} { // the answer is no list, which is of no matter here
		if _, err := p.Proposed(t.Context(), "a/b", "x/y", target); err == nil {
			t.Error("something was proposed")
		}
	}
	if _, err := p.Folder(t.Context(), "a/b", "", "docs/"); err == nil {
		t.Error("there is a folder")
	}
	if _, err := p.File(t.Context(), "a/b", "v1/x", "/docs/a b.md"); err != nil {
		t.Error(err)
	}
	want = append(want, "GET /git/api/v4/projects/a%2Fb/merge_requests?per_page=1&source_branch=x%2Fy&state=opened",
		"GET /git/api/v4/projects/a%2Fb/merge_requests?per_page=1&source_branch=x%2Fy&state=opened&target_branch=main",
		"GET /git/api/v4/projects/a%2Fb/repository/tree?page=1&path=docs&per_page=100&ref=HEAD",
		"GET /git/api/v4/projects/a%2Fb/repository/files/docs%2Fa%20b.md?ref=v1%2Fx")
	var lines []string
	for _, one := range log {
		lines = append(lines, one.line)
	}
	if !slices.Equal(lines, want) {
		t.Fatalf("asked\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	for i, title := range map[int]string{proposals - 3: "Draft: New rope", proposals - 1: "draft: New rope"} {
		body := log[i].body
		if body["title"] != title || body["description"] != "Long." || body["labels"] != "a,b c" || body["source_branch"] != "rope" || body["target_branch"] != "trunk" {
			t.Errorf("proposed %v", body)
		}
	}
}

// Own projects are found even if the search among all public ones fails, which it does on large hosts.
func TestSearchKeepsTheOwn(t *testing.T) {
	p := ask(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("visibility") == "public" {
			refuse(w, http.StatusInternalServerError, `{"message":"500 Internal Server Error"}`)
			return
		}
		write(w, "["+projectJSON(1, "ada/notes")+"]")
	})
	found, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "notes"})
	if err != nil || len(found) != 1 || found[0].Name != "ada/notes" {
		t.Errorf("%+v %v", found, err)
	}
}

// Older versions answer with an empty list for a folder that is not there.
func TestFolders(t *testing.T) {
	p := ask(t, fixed("[]"))
	if _, err := p.Folder(t.Context(), "a/b", "", "nowhere/"); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("%v", err)
	}
	if files, err := p.Folder(t.Context(), "a/b", "", ""); err != nil || len(files) != 0 {
		t.Errorf("%v %v", files, err)
	}
	var entries []string
	for i := range 250 {
		entries = append(entries, fmt.Sprintf(`{"name":"%d.md","path":"docs/%d.md","type":"blob"}`, i, i))
	}
	files, err := ask(t, func(w http.ResponseWriter, r *http.Request) { paged(w, r, entries) }).Folder(t.Context(), "a/b", "", "docs")
	if err != nil || len(files) != 250 || files[249].Path != "docs/249.md" {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// The jobs of a pipeline may be hidden from those who see the merge request.
func TestChecks(t *testing.T) {
	for status, want := range map[int]string{http.StatusForbidden: "pipeline: failed", http.StatusNotFound: "pipeline: failed", http.StatusBadGateway: ""} {
		p := ask(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/jobs"):
				refuse(w, status, "{}")
			case strings.HasSuffix(r.URL.Path, "/notes"):
				write(w, "[]")
			default:
				write(w, mergeJSON)
			}
		})
		got, err := p.Discussion(t.Context(), "crew/app", 12)
		if (err == nil) != (want != "") || strings.Join(got.Checks, ",") != want {
			t.Errorf("%d: %q %v", status, got.Checks, err)
		}
	}
}

// Where counting costs too much, GitLab leaves the number out.
func TestBranchesUncounted(t *testing.T) {
	got, err := ask(t, fixed("[]")).Branches(t.Context(), "a/b", gitprovider.BranchQuery{})
	if err != nil || got.Total != -1 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestPastedAddresses(t *testing.T) {
	var path string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		write(w, projectJSON(1, "a/b"))
	}))
	defer s.Close()
	p := New(call.Options{Client: s.Client(), Host: s.URL + "/git", Name: "gitlab"})
	for text, want := range map[string]string{
		s.URL + "/git/a/b": "a%2Fb", s.URL + "/git/a/b.git": "a%2Fb", s.URL + "/git/a/b/c/-/merge_requests/3?x=1#note": "a%2Fb%2Fc",
		"git@127.0.0.1:a/b.git": "a%2Fb", "ssh://git@127.0.0.1:2222/a/b.git": "a%2Fb",
		s.URL + "/git/a": "", s.URL + "/git/a/../b": "", s.URL + "/git/a/-x": "", "https://example.org/git/a/b": "",
	} {
		path = ""
		found, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: text})
		if err != nil || strings.TrimPrefix(path, "/git/api/v4/projects/") != want || (len(found) == 1) != (want != "") {
			t.Errorf("%s: asked %q, found %d, %v", text, path, len(found), err)
		}
	}
}

func TestHosts(t *testing.T) {
	for host, want := range map[string]gitprovider.Reason{"ftp://x": gitprovider.Refused, "https://u:p@x": gitprovider.Refused} {
		p := New(call.Options{Client: http.DefaultClient, Host: host, Name: "gitlab"})
		if _, err := p.User(t.Context()); gitprovider.ReasonOf(err) != want {
			t.Errorf("%s: %v", host, err)
		}
		if _, err := p.Tasks(t.Context()); gitprovider.ReasonOf(err) != want {
			t.Errorf("%s: %v", host, err)
		}
		if found, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "https://x/a/b"}); len(found) > 0 || err != nil {
			t.Errorf("%s: %v %v", host, found, err)
		}
	}
	if h := New(call.Options{Client: http.DefaultClient, Name: "gitlab"}).(*host); h.Site.String() != "https://gitlab.com" {
		t.Errorf("%s", h.Site)
	}
}
