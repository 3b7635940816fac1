package gitea

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/providertest"
)

// search knows the two ways in which it is asked: for a user's, and by name.
func (f *fake) search(r *http.Request) any {
	query := r.URL.Query()
	if query.Get("q") == "" && (query.Get("uid") != "1" || query.Get("sort") != "updated" || query.Get("order") != "desc") {
		return nil
	}
	found := []obj{}
	for _, one := range f.repos {
		if strings.Contains(one["name"].(string), query.Get("q")) {
			found = append(found, one)
		}
	}
	return obj{"ok": true, "data": found}
}

// mine answers the search for what is the user's own.
func (f *fake) mine(r *http.Request) any {
	query := r.URL.Query()
	found := []obj{}
	switch {
	case query.Get("state") != "open":
	case query.Get("type") == "pulls" && query.Get("created") == "true":
		for n := range 100 {
			if pr, ok := f.pulls[n]; ok {
				one := issueOf(n, pr["title"].(string), "ada/engine")
				one["pull_request"] = obj{"merged": false, "merged_at": nil, "draft": pr["draft"], "html_url": pr["html_url"]}
				found = append(found, one)
			}
		}
	case query.Get("type") == "issues" && query.Get("assigned") == "true":
		found = append(found, f.issues...)
	}
	return found
}

// contents lists a folder, or describes a file.
func (f *fake) contents(r *http.Request) any {
	path := strings.Trim(r.PathValue("path"), "/")
	describe := func(path, kind string) obj {
		return obj{"name": path[strings.LastIndex(path, "/")+1:], "path": path, "type": kind, "sha": "0", "size": 1, "html_url": site}
	}
	if _, ok := f.files[path]; ok {
		return describe(path, "file")
	}
	list := []any{}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		rest, ok := strings.CutPrefix(name, path+"/")
		if path == "" {
			rest, ok = name, true
		}
		first, _, deep := strings.Cut(rest, "/")
		if !ok || seen[first] {
			continue
		}
		seen[first] = true
		kind := "file"
		if deep {
			kind = "dir"
		}
		list = append(list, describe(strings.TrimPrefix(path+"/"+first, "/"), kind))
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// propose opens number 40 and says back what it was told.
func (f *fake) propose(t *testing.T, w http.ResponseWriter, r *http.Request) {
	var in struct {
		Head, Base, Title, Body string
		Labels                  []int
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		t.Error(err)
	}
	made := pullOf(40, in.Title, in.Head, false)
	made["body"] = in.Body
	made["base"].(obj)["ref"] = in.Base
	labels := []obj{}
	for _, l := range f.labels {
		if slices.Contains(in.Labels, l["id"].(int)) {
			labels = append(labels, l)
		}
	}
	made["labels"] = labels
	f.pulls[40] = made
	w.WriteHeader(http.StatusCreated)
	send(t, w, r, made)
}

// newFake knows one repository well.
func newFake() *fake {
	ada, guild := person(1, "ada", "Ada Lovelace"), person(5, "guild", "")
	f := &fake{
		user: ada,
		repos: []obj{
			repo(7, ada, "engine", false, 3, "2026-03-03T00:00:00Z"),
			repo(8, ada, "diary", true, 0, "2026-03-02T00:00:00Z"),
			repo(9, guild, "engines", false, 12, "2026-03-01T00:00:00Z"),
			repo(10, guild, "internal-affairs", false, 0, "0001-01-01T00:00:00Z"),
			repo(11, guild, "minutes", true, 0, "1970-01-01T00:00:00Z"),
		},
		branches: []obj{
			branchOf("main", "c0", true), branchOf("fix/login", "c1", false), branchOf("fix/logout", "c2", false),
			branchOf("Feature/LOGIN", "c3", false), branchOf("old", "c4", false),
		},
		pulls:    map[int]obj{21: pullOf(21, "Oil the wheels", "fix/login", true)},
		statuses: map[string][]obj{"sha-fix/login": {statusOf("lint", "success"), statusOf("test", "failure")}},
		issues:   []obj{issueOf(22, "It squeaks", "ada/engine")},
		labels:   []obj{{"id": 31, "name": "bug"}, {"id": 32, "name": "Easy"}},
		files: map[string]string{
			"README.md": "# Engine\n", ".openhands/microagents/a.md": "first", ".openhands/microagents/deep/b.md": "second",
			"with space/é#?.md": "odd",
		},
	}
	f.repos[3]["internal"] = true
	grace := person(2, "grace", "Grace")
	f.comments = map[int][]obj{
		22: {commentOf(grace, "Since when?", "2026-03-01T00:00:00Z"), commentOf(nil, "Since ever.", "2026-03-02T00:00:00Z")},
		21: {commentOf(grace, "Late word.", "2026-03-03T00:00:00Z")},
	}
	withRemark := reviewOf(51, "COMMENT", "Some remarks.")
	withRemark["comments_count"] = 2
	pending := reviewOf(52, "PENDING", "Not sent yet.")
	f.reviews = map[int][]obj{21: {withRemark, pending}}
	remark := commentOf(grace, "Why so?", "2026-03-01T00:00:00Z")
	remark["path"], remark["position"], remark["original_position"] = "main.go", 12, 0
	removed := commentOf(grace, "And this?", "2026-03-01T00:00:00Z")
	removed["path"], removed["position"], removed["original_position"] = "old.go", 0, 3
	f.remarks = map[int][]obj{51: {remark, removed}}
	return f
}

// fakeWorld is what newFake knows, as the port says it.
func fakeWorld() providertest.World {
	day := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			panic(err)
		}
		return at
	}
	three, none, twelve, yes := 3, 0, 12, true
	pushed := day("2026-02-03T04:05:06Z")
	engine := gitprovider.Repository{ID: "7", Name: "ada/engine", Public: true, Stars: &three, PushedAt: day("2026-03-03T00:00:00Z"), MainBranch: "main"}
	mine := engine
	mine.Owner = "user"
	return providertest.World{
		User: gitprovider.User{ID: "1", Login: "ada", AvatarURL: site + "/avatars/ada", Name: "Ada Lovelace", Email: "ada@example.org"},
		Repositories: []gitprovider.Repository{
			mine,
			{ID: "8", Name: "ada/diary", Stars: &none, PushedAt: day("2026-03-02T00:00:00Z"), Owner: "user", MainBranch: "main"},
			{ID: "9", Name: "guild/engines", Public: true, Stars: &twelve, PushedAt: day("2026-03-01T00:00:00Z"), MainBranch: "main"},
			{ID: "10", Name: "guild/internal-affairs", Stars: &none, MainBranch: "main"},
			{ID: "11", Name: "guild/minutes", Stars: &none, MainBranch: "main"},
		},
		Text: "engine", Found: []string{"ada/engine", "guild/engines"}, Repository: engine,
		Branches: []gitprovider.Branch{
			{Name: "main", Commit: "c0", Protected: true, PushedAt: pushed}, {Name: "fix/login", Commit: "c1", PushedAt: pushed},
			{Name: "fix/logout", Commit: "c2", PushedAt: pushed}, {Name: "Feature/LOGIN", Commit: "c3", PushedAt: pushed},
			{Name: "old", Commit: "c4", PushedAt: pushed},
		},
		Part: "login", With: []string{"fix/login", "Feature/LOGIN"},
		Tasks: []gitprovider.Task{
			{Type: gitprovider.FailingChecks, Repository: "ada/engine", Title: "Oil the wheels", Number: 21},
			{Type: gitprovider.OpenIssue, Repository: "ada/engine", Title: "It squeaks", Number: 22},
		},
		Ref: "main", Folder: ".openhands/microagents",
		Files: []gitprovider.File{
			{Name: "a.md", Path: ".openhands/microagents/a.md"}, {Name: "deep", Path: ".openhands/microagents/deep", Folder: true},
		},
		File: ".openhands/microagents/a.md", Content: "first",
		Proposal: gitprovider.Proposal{
			Repository: "ada/engine", Title: "Grease", Body: "As asked.", Source: "fix/logout", Target: "main", Draft: true, Labels: []string{"bug", "easy"},
		},
		Proposed: gitprovider.Request{
			Number: 40, URL: site + "/ada/engine/pulls/40", Title: "WIP: Grease", State: "open", Draft: true, Source: "fix/logout", Target: "main",
		},
		Request: gitprovider.Request{
			Number: 21, URL: site + "/ada/engine/pulls/21", Title: "Oil the wheels", State: "open", Source: "fix/login", Target: "main", Mergeable: &yes,
		},
		Discussion: gitprovider.Issue{
			Number: 21, URL: site + "/ada/engine/pulls/21", Title: "Oil the wheels", Body: "Because.", Author: "ada", State: "open",
			Comments: []string{"grace: Some remarks.", "grace: main.go:12: Why so?", "grace: old.go:3: And this?", "grace: Late word."},
			Checks:   []string{"test: failure", "lint: success"},
		},
		Issue: gitprovider.Issue{
			Number: 22, URL: site + "/ada/engine/issues/22", Title: "It squeaks", Body: "It is broken.", Author: "grace", State: "open",
			Comments: []string{"grace: Since when?", "somebody: Since ever."},
		},
	}
}
