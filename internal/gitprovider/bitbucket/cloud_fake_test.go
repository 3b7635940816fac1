package bitbucket

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// newCloudFake answers as api.bitbucket.org does, cut down to a few more fields
// than the adapter reads. Two workspaces hold the repositories.
func newCloudFake() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, answer http.HandlerFunc) { mux.HandleFunc("GET /2.0"+path, answer) }
	post := func(path string, answer http.HandlerFunc) { mux.HandleFunc("POST /2.0"+path, answer) }
	get("/user", fixed(`{"username":"ada","nickname":"ada_l","display_name":"Ada L","account_id":"557058:ada","uuid":"{u-ada}","type":"user","created_on":"2012-07-25T04:53:41.525465+00:00",
		"links":{"self":{"href":"https://api.bitbucket.org/2.0/users/ada"},"avatar":{"href":"https://example.org/ada.png"}},"is_staff":false}`))
	get("/user/emails", func(w http.ResponseWriter, r *http.Request) {
		cloudPaged(w, r, []string{`{"type":"email","email":"other@example.org","is_primary":false,"is_confirmed":true}`, `{"type":"email","email":"ada@example.org","is_primary":true,"is_confirmed":true}`})
	})
	get("/user/workspaces", func(w http.ResponseWriter, r *http.Request) {
		cloudPaged(w, r, []string{
			`{"type":"workspace_access","administrator":true,"workspace":{"type":"workspace_base","slug":"ada","uuid":"{w-1}"}}`,
			`{"type":"workspace_access","administrator":false,"workspace":{"type":"workspace_base","slug":"crew","uuid":"{w-2}"}}`,
		})
	})
	get("/repositories/{workspace}", cloudRepositoriesOf)
	get("/repositories/crew/app", fixed(cloudRepositoryJSON(2, "crew/app")))
	cloudFakeContents(get)
	cloudFakeRequests(get, post)
	return mux
}

var cloudNames = []string{"ada/notes", "crew/app", "ada/hoist-old", "crew/hoist", "crew/web"}

func cloudRepositoryJSON(id int, name string) string {
	kind, private := "team", true
	if strings.HasPrefix(name, "ada/") {
		kind, private = "user", false
	}
	_, slug, _ := strings.Cut(name, "/")
	return fmt.Sprintf(`{"type":"repository","scm":"git","uuid":"{r-%d}","name":%q,"slug":%q,"full_name":%q,"is_private":%t,"has_issues":%t,"created_on":"2020-01-0%dT00:00:00.000000+00:00",
		"updated_on":"2025-01-0%dT00:00:00.000000+00:00","size":1024,"language":"go","mainbranch":{"type":"branch","name":"main"},"owner":{"type":%q,"username":"x","uuid":"{o}"},
		"links":{"html":{"href":"https://bitbucket.org/%s"}}}`, id, slug, slug, name, private, id == 4, id, 9-id, kind, name)
}

// cloudRepositoriesOf answers for a workspace, with the few filters that the adapter uses.
func cloudRepositoriesOf(w http.ResponseWriter, r *http.Request) {
	workspace, q := r.PathValue("workspace"), r.URL.Query().Get("q")
	var found []string
	for i, name := range cloudNames {
		owner, slug, _ := strings.Cut(name, "/")
		text, named := strings.CutPrefix(q, "name ~ ")
		if owner != workspace || named && !strings.Contains(slug, strings.Trim(text, `"`)) || q == "has_issues = true" && i+1 != 4 {
			continue
		}
		found = append(found, cloudRepositoryJSON(i+1, name))
	}
	if workspace != "ada" && workspace != "crew" {
		refuse(w, http.StatusNotFound, `{"type":"error","error":{"message":"No workspace with identifier 'x'."}}`)
		return
	}
	cloudPaged(w, r, found)
}

func cloudFakeContents(get func(string, http.HandlerFunc)) {
	get("/repositories/crew/app/refs/branches", func(w http.ResponseWriter, r *http.Request) {
		var found []string
		for i, name := range []string{"main", "fix/one", "fix/two", "old", "older"} {
			part, _ := strings.CutPrefix(r.URL.Query().Get("q"), "name ~ ")
			if strings.Contains(name, strings.Trim(part, `"`)) {
				found = append(found, fmt.Sprintf(`{"type":"branch","name":%q,"merge_strategies":["merge_commit"],"default_merge_strategy":"merge_commit",
					"target":{"type":"commit","hash":"%040d","date":"2025-03-04T05:06:07+00:00","message":"Turn\n"}}`, name, i))
			}
		}
		cloudPaged(w, r, found)
	})
	get("/repositories/crew/app/refs/branches/fix/one", fixed(`{"type":"branch","name":"fix/one","target":{"type":"commit","hash":"c0ffee"}}`))
	folder := func(w http.ResponseWriter, r *http.Request) {
		entries := []string{
			`{"type":"commit_directory","path":".openhands/microagents/deep","commit":{"hash":"abc"}}`,
			`{"type":"commit_file","path":".openhands/microagents/repo.md","size":8,"mimetype":"text/markdown","commit":{"hash":"abc"}}`,
		}
		switch r.PathValue("path") {
		case ".openhands/microagents/":
			// The mark of the next page is not a number here.
			if r.URL.Query().Get("page") == "" {
				write(w, `{"pagelen":1,"page":1,"next":"https://api.bitbucket.org/2.0/x?page=sEcOnD%3D&pagelen=1","values":[`+entries[0]+`]}`)
				return
			}
			write(w, `{"pagelen":1,"values":[`+entries[1]+`]}`)
		case ".openhands/microagents":
			write(w, entries[0])
		case ".openhands/microagents/repo.md":
			if r.URL.Query().Get("format") == "meta" {
				write(w, entries[1])
				return
			}
			_, _ = w.Write([]byte("# Hoist\n"))
		default:
			refuse(w, http.StatusNotFound, `{"type":"error","error":{"message":"No such file or directory: x"}}`)
		}
	}
	get("/repositories/crew/app/src/main/{path...}", folder)
	get("/repositories/crew/app/src/c0ffee/{path...}", folder)
}

const cloudRequestJSON = `{"type":"pullrequest","id":12,"title":"Mend the hoist","description":"It slips.","state":"OPEN","draft":false,"created_on":"2025-02-02T00:00:00.000000+00:00",
	"updated_on":"2025-02-03T00:00:00.000000+00:00","merge_commit":null,"comment_count":2,"task_count":0,"closed_by":null,
	"source":{"branch":{"name":"fix/one"},"commit":{"hash":"abc"},"repository":{"full_name":"crew/app","uuid":"{r-2}"}},
	"destination":{"branch":{"name":"main"},"commit":{"hash":"def"},"repository":{"full_name":"crew/app","uuid":"{r-2}"}},
	"author":{"display_name":"Ada L","nickname":"ada_l","uuid":"{u-ada}","account_id":"557058:ada"},"reviewers":[],
	"participants":[{"type":"participant","user":{"uuid":"{u-bob}"},"role":"REVIEWER","approved":false,"state":"changes_requested"}],
	"links":{"self":{"href":"https://api.bitbucket.org/2.0/repositories/crew/app/pullrequests/12"},"html":{"href":"https://bitbucket.org/crew/app/pull-requests/12"}}}`

func cloudFakeRequests(get, post func(string, http.HandlerFunc)) {
	list := func(items ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { cloudPaged(w, r, items) }
	}
	get("/repositories/crew/app/pullrequests", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query().Get("q"); !strings.Contains(q, `source.branch.name = "fix/one"`) || !strings.Contains(q, `state = "OPEN"`) {
			cloudPaged(w, r, nil)
			return
		}
		fork := strings.Replace(cloudRequestJSON, `"full_name":"crew/app"`, `"full_name":"eve/app"`, 1)
		cloudPaged(w, r, []string{strings.Replace(fork, `"id":12`, `"id":11`, 1), cloudRequestJSON})
	})
	post("/repositories/crew/app/pullrequests", created(`{"type":"pullrequest","id":13,"title":"New rope","state":"OPEN","draft":true,"source":{"branch":{"name":"rope"}},
		"destination":{"branch":{"name":"main"}},"links":{"html":{"href":"https://bitbucket.org/crew/app/pull-requests/13"}}}`))
	get("/repositories/crew/app/pullrequests/12", fixed(cloudRequestJSON))
	get("/repositories/crew/app/pullrequests/12/diffstat", list(`{"type":"diffstat","status":"modified","lines_added":1,"lines_removed":1}`, `{"type":"diffstat","status":"renamed"}`))
	get("/repositories/crew/app/pullrequests/12/statuses", list(
		`{"type":"build","key":"lint","name":"","state":"SUCCESSFUL","url":"https://ci.example.org/1"}`, `{"type":"build","key":"unit-1","name":"unit","state":"FAILED"}`))
	get("/repositories/crew/app/pullrequests/12/comments", list(
		`{"type":"pullrequest_comment","id":1,"content":{"type":"rendered","raw":"Why?"},"user":{"nickname":"bob","display_name":"Bob","uuid":"{u-bob}"},"deleted":false}`,
		`{"type":"pullrequest_comment","id":2,"content":{"raw":""},"user":{"nickname":"bob"},"deleted":true}`,
		`{"type":"pullrequest_comment","id":3,"content":{"raw":"Too short."},"user":{"nickname":"bob"},"deleted":false,"inline":{"from":null,"to":41,"path":"rope.go"}}`,
		`{"type":"pullrequest_comment","id":4,"content":{"raw":"Gone?"},"user":{"nickname":"bob"},"deleted":false,"inline":{"from":7,"to":null,"path":"hook.go"},"parent":{"id":3}}`))
	post("/repositories/crew/app/pullrequests/12/comments", created(`{"id":5}`))
	get("/workspaces/{workspace}/pullrequests/{user}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("workspace") != "crew" || r.PathValue("user") != "{u-ada}" || r.URL.Query().Get("fields") != "+values.participants" {
			cloudPaged(w, r, nil)
			return
		}
		cloudPaged(w, r, []string{cloudRequestJSON})
	})
	get("/repositories/crew/app/issues/4", fixed(`{"type":"issue","id":4,"title":"It slips","state":"new","kind":"bug","priority":"major","content":{"type":"rendered","raw":"On wet days."},
		"reporter":{"nickname":"bob","display_name":"Bob"},"assignee":null,"links":{"html":{"href":"https://bitbucket.org/crew/app/issues/4"}}}`))
	get("/repositories/crew/app/issues/4/comments", list(
		`{"type":"issue_comment","id":1,"content":{"raw":null},"user":{"nickname":"bob"}}`, `{"type":"issue_comment","id":2,"content":{"raw":"Seen it too."},"user":{"nickname":"cid"}}`))
	post("/repositories/crew/app/issues/4/comments", created(`{"id":6}`))
	get("/repositories/crew/hoist/issues", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Query().Get("q"), `assignee.uuid = "{u-ada}"`) {
			cloudPaged(w, r, nil)
			return
		}
		cloudPaged(w, r, []string{`{"type":"issue","id":3,"title":"Rust","state":"open"}`})
	})
}

// cloudPaged answers with one page. The link to the next one names the public
// host, whichever host was asked.
func cloudPaged(w http.ResponseWriter, r *http.Request, items []string) {
	page, size := number(r, "page", 1), number(r, "pagelen", 10)
	from := min((page-1)*size, len(items))
	to := min(from+size, len(items))
	next := ""
	if to < len(items) {
		query := r.URL.Query()
		query.Set("page", strconv.Itoa(page+1))
		next = fmt.Sprintf(`"next":%q,`, (&url.URL{Scheme: "https", Host: "api.bitbucket.org", Path: r.URL.Path, RawQuery: query.Encode()}).String())
	}
	write(w, fmt.Sprintf(`{"pagelen":%d,"size":%d,"page":%d,%s"values":[%s]}`, size, len(items), page, next, strings.Join(slices.Clone(items[from:to]), ",")))
}

func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return otherwise
}

func write(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(body))
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func fixed(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, body) }
}

func created(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusCreated, body) }
}
