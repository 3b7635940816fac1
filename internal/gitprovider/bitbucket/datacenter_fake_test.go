package bitbucket

import (
	"fmt"
	"net/http"
	"strings"
)

var centerNames = []string{"PRJ/app", "PRJ/hoist", "PRJ/web", "~ada/notes", "~ada/old-hoist"}

// newCenterFake answers as Bitbucket Data Center 8 does, cut down to a few more
// fields than the adapter reads.
func newCenterFake() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, answer http.HandlerFunc) { mux.HandleFunc("GET /rest/api/1.0"+path, answer) }
	post := func(path string, answer http.HandlerFunc) { mux.HandleFunc("POST /rest/api/1.0"+path, answer) }
	mux.HandleFunc("GET /plugins/servlet/applinks/whoami", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("Ada.L\n")) })
	get("/users", centerListing(
		`{"name":"Ada.Lother","emailAddress":"x@example.org","active":true,"displayName":"Another","id":100,"slug":"ada.lother","type":"NORMAL"}`,
		`{"name":"Ada.L","emailAddress":"ada@example.org","active":true,"displayName":"Ada L","id":101,"slug":"ada.l","type":"NORMAL","links":{"self":[{"href":"https://git.example.org/users/ada.l"}]}}`))
	get("/projects", centerListing(`{"key":"PRJ","id":1,"name":"Crew","public":false,"type":"NORMAL"}`, `{"key":"OPS","id":2,"name":"Ops","public":true,"type":"NORMAL"}`))
	get("/repos", func(w http.ResponseWriter, r *http.Request) {
		var found []string
		for i, name := range centerNames {
			key, slug, _ := strings.Cut(name, "/")
			if strings.Contains(slug, r.URL.Query().Get("name")) && strings.HasPrefix(key, r.URL.Query().Get("projectkey")) {
				found = append(found, centerRepositoryJSON(i+1, name))
			}
		}
		centerPaged(w, r, found)
	})
	get("/projects/{key}/repos", centerListing(centerRepositoryJSON(1, "PRJ/app"), centerRepositoryJSON(2, "PRJ/hoist")))
	get("/projects/PRJ/repos/app", fixed(centerRepositoryJSON(1, "PRJ/app")))
	get("/projects/PRJ/repos/app/default-branch", fixed(`{"id":"refs/heads/main","displayId":"main","type":"BRANCH","latestCommit":"abc","isDefault":true}`))
	centerFakeContents(get)
	centerFakeRequests(mux, get, post)
	mux.HandleFunc("GET /rest/api/1.0/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, `{"errors":[{"context":null,"message":"Project nobody does not exist.","exceptionName":"com.atlassian.bitbucket.project.NoSuchProjectException"}]}`)
	})
	return mux
}

func centerRepositoryJSON(id int, name string) string {
	key, slug, _ := strings.Cut(name, "/")
	kind, public := "NORMAL", false
	if strings.HasPrefix(key, "~") {
		kind, public = "PERSONAL", true
	}
	return fmt.Sprintf(`{"slug":%q,"id":%d,"name":%q,"hierarchyId":"e3c9","scmId":"git","state":"AVAILABLE","statusMessage":"Available","forkable":true,
		"project":{"key":%q,"id":2,"name":"Crew","type":%q},"public":%t,"links":{"self":[{"href":"https://git.example.org/projects/x/repos/y/browse"}]}}`, slug, id, slug, key, kind, public)
}

func centerFakeContents(get func(string, http.HandlerFunc)) {
	get("/projects/PRJ/repos/app/branches", func(w http.ResponseWriter, r *http.Request) {
		var found []string
		for i, name := range []string{"main", "fix/one", "fix/two", "old", "older"} {
			if strings.Contains(name, r.URL.Query().Get("filterText")) {
				found = append(found, fmt.Sprintf(`{"id":"refs/heads/%s","displayId":%q,"type":"BRANCH","latestCommit":"%040d","latestChangeset":"%040d","isDefault":%t}`, name, name, i, i, i == 0))
			}
		}
		centerPaged(w, r, found)
	})
	get("/projects/PRJ/repos/app/browse/.openhands/microagents", func(w http.ResponseWriter, r *http.Request) {
		page := centerPageOf(r, []string{
			`{"path":{"components":["deep","inner"],"parent":"deep","name":"inner","toString":"deep/inner"},"node":"1","type":"DIRECTORY"}`,
			`{"path":{"components":["repo.md"],"parent":"","name":"repo.md","extension":"md","toString":"repo.md"},"contentId":"2","type":"FILE","size":8}`,
			`{"path":{"components":["lib"],"parent":"","name":"lib","toString":"lib"},"contentId":"3","type":"SUBMODULE"}`,
		}, 2)
		write(w, `{"path":{"components":[".openhands","microagents"],"toString":".openhands/microagents"},"revision":"main","children":`+page+`}`)
	})
	get("/projects/PRJ/repos/app/browse/README.md", fixed(`{"lines":[{"text":"# App"}],"start":0,"size":1,"isLastPage":true}`))
	get("/projects/PRJ/repos/app/raw/.openhands/microagents/repo.md", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
		_, _ = w.Write([]byte("# Hoist\n"))
	})
}

var centerRequestJSON = `{"id":12,"version":3,"title":"Mend the hoist","description":"It slips.","state":"OPEN","open":true,"closed":false,"draft":false,"createdDate":1738454400000,
	"fromRef":{"id":"refs/heads/fix/one","displayId":"fix/one","latestCommit":"abc","type":"BRANCH","repository":` + centerRepositoryJSON(1, "PRJ/app") + `},
	"toRef":{"id":"refs/heads/main","displayId":"main","latestCommit":"def","type":"BRANCH","repository":` + centerRepositoryJSON(1, "PRJ/app") + `},
	"locked":false,"author":{"user":{"name":"Ada.L","id":101,"slug":"ada.l"},"role":"AUTHOR","approved":false,"status":"UNAPPROVED"},
	"reviewers":[{"user":{"name":"bob"},"role":"REVIEWER","approved":false,"status":"NEEDS_WORK"}],"participants":[],
	"properties":{"mergeResult":{"outcome":"CLEAN","current":true},"resolvedTaskCount":0,"commentCount":2,"openTaskCount":0},
	"links":{"self":[{"href":"https://git.example.org/projects/PRJ/repos/app/pull-requests/12"}]}}`

func centerFakeRequests(mux *http.ServeMux, get, post func(string, http.HandlerFunc)) {
	const pulls = "/projects/PRJ/repos/app/pull-requests"
	get(pulls, func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Get("at") != "refs/heads/fix/one" || query.Get("direction") != "OUTGOING" || query.Get("state") != "OPEN" {
			centerPaged(w, r, nil)
			return
		}
		other := strings.Replace(centerRequestJSON, `"displayId":"main"`, `"displayId":"release"`, 1)
		centerPaged(w, r, []string{strings.Replace(other, `"id":12`, `"id":11`, 1), centerRequestJSON})
	})
	post(pulls, created(`{"id":13,"title":"New rope","state":"OPEN","draft":true,"fromRef":{"displayId":"rope"},"toRef":{"displayId":"main"},
		"links":{"self":[{"href":"https://git.example.org/projects/PRJ/repos/app/pull-requests/13"}]}}`))
	get(pulls+"/12", fixed(centerRequestJSON))
	get(pulls+"/12/merge", fixed(`{"canMerge":false,"conflicted":false,"outcome":"CLEAN","vetoes":[{"summaryMessage":"Not approved","detailedMessage":"You need a reviewer."}]}`))
	remark := `"comment":{"id":20,"text":"Too short.","author":{"name":"bob"},"threadResolved":false,"state":"OPEN","comments":[]},
		"commentAnchor":{"line":41,"lineType":"ADDED","fileType":"TO","path":"rope.go"}`
	get(pulls+"/12/activities", centerListing(
		`{"id":6,"createdDate":6,"user":{"name":"bob"},"action":"COMMENTED","commentAction":"UPDATED",`+remark+`}`,
		`{"id":5,"createdDate":5,"user":{"name":"bob"},"action":"REVIEWED"}`,
		`{"id":4,"createdDate":4,"user":{"name":"bob"},"action":"COMMENTED","commentAction":"ADDED",`+remark+`}`,
		`{"id":3,"createdDate":3,"user":{"name":"bob"},"action":"COMMENTED","commentAction":"ADDED","comment":`+centerThreadJSON+`}`,
		`{"id":1,"createdDate":1,"user":{"name":"Ada.L"},"action":"OPENED"}`))
	post(pulls+"/12/comments", created(`{"id":30,"version":0,"text":"x"}`))
	get("/dashboard/pull-requests", func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Get("role") != "AUTHOR" || query.Get("state") != "OPEN" {
			centerPaged(w, r, nil)
			return
		}
		centerPaged(w, r, []string{centerRequestJSON})
	})
	mux.HandleFunc("GET /rest/build-status/1.0/commits/stats/abc", fixed(`{"successful":1,"inProgress":0,"failed":1,"cancelled":0,"unknown":0}`))
	mux.HandleFunc("GET /rest/build-status/1.0/commits/abc", centerListing(
		`{"state":"SUCCESSFUL","key":"lint","url":"https://ci.example.org/1","dateAdded":1}`, `{"state":"FAILED","key":"unit-1","name":"unit","url":"https://ci.example.org/2","dateAdded":2}`))
}

const centerThreadJSON = `{"id":10,"version":0,"text":"Why?","author":{"name":"bob"},"threadResolved":true,"state":"OPEN","comments":[{"id":11,"text":"Because.","author":{"name":"Ada.L"},"comments":[]}]}`

// centerListing answers with a list.
func centerListing(items ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { centerPaged(w, r, items) }
}

func centerPaged(w http.ResponseWriter, r *http.Request, items []string) {
	write(w, centerPageOf(r, items, 1000))
}

// centerPageOf is one page. The server gives out no more than its own limit.
func centerPageOf(r *http.Request, items []string, most int) string {
	limit := min(number(r, "limit", 25), most)
	start := min(number(r, "start", 0), len(items))
	end := min(start+limit, len(items))
	next := ""
	if end < len(items) {
		next = fmt.Sprintf(`,"nextPageStart":%d`, end)
	}
	return fmt.Sprintf(`{"size":%d,"limit":%d,"isLastPage":%t,"start":%d%s,"values":[%s]}`, end-start, limit, end == len(items), start, next, strings.Join(items[start:end], ","))
}
