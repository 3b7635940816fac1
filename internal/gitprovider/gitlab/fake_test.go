package gitlab

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// fake answers as GitLab 17 does, with the headers and the shapes of its REST
// API. Shapes are cut down to a few more fields than the adapter reads.
type fake struct {
	*http.ServeMux
	projects, branches []string // JSON, in the order of listing
}

func newFake() *fake {
	f := &fake{ServeMux: http.NewServeMux()}
	for i, name := range []string{"ada/notes", "crew/app", "crew/tools/hoist", "crew/tools/winch", "crew/web"} {
		f.projects = append(f.projects, projectJSON(i+1, name))
	}
	for _, name := range []string{"main", "fix/one", "fix/two", "old", "older"} {
		f.branches = append(f.branches, fmt.Sprintf(`{"name":%q,"merged":false,"protected":%t,"default":%t,"developers_can_push":false,"can_push":true,
			"web_url":"https://gitlab.example.org/crew/app/-/tree/%s","commit":{"id":"%040d","short_id":"00000000","title":"Turn","author_name":"Ada",
			"committed_date":"2025-03-04T05:06:07.000+00:00","parent_ids":[]}}`, name, name == "main", name == "main", name, len(f.branches)))
	}
	f.HandleFunc("GET /api/v4/user", fixed(`{"id":7,"username":"ada","name":"Ada L","state":"active","locked":false,"avatar_url":"https://gitlab.example.org/a.png",
		"web_url":"https://gitlab.example.org/ada","bio":"","organization":"Crew","email":"ada@example.org","public_email":null,"two_factor_enabled":true}`))
	f.HandleFunc("GET /api/v4/projects", f.list)
	f.HandleFunc("GET /api/v4/projects/{id}", known(func(w http.ResponseWriter, _ *http.Request) { write(w, f.projects[1]) }))
	f.HandleFunc("GET /api/v4/projects/{id}/repository/branches", known(func(w http.ResponseWriter, r *http.Request) {
		paged(w, r, slices.DeleteFunc(slices.Clone(f.branches), func(b string) bool { return !strings.Contains(nameIn(b, "name"), r.URL.Query().Get("search")) }))
	}))
	f.contents()
	f.discussions()
	return f
}

func projectJSON(id int, name string) string {
	kind, visibility := "group", "private"
	if strings.HasPrefix(name, "ada/") {
		kind, visibility = "user", "public"
	}
	return fmt.Sprintf(`{"id":%d,"description":null,"name":"App","name_with_namespace":"Crew / App","path":"app","path_with_namespace":%q,"created_at":"2024-01-02T03:04:05.000Z",
		"default_branch":"main","tag_list":[],"topics":[],"ssh_url_to_repo":"git@gitlab.example.org:x.git","http_url_to_repo":"https://gitlab.example.org/x.git",
		"forks_count":0,"avatar_url":null,"star_count":%d,"last_activity_at":"2025-01-0%dT00:00:00.000Z","visibility":%q,
		"namespace":{"id":3,"name":"Crew","path":"crew","kind":%q,"full_path":"crew","parent_id":null}}`, id, name, id, 9-id, visibility, kind)
}

// list answers for the user's own projects and for all public ones, which are one more.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	found := slices.Clone(f.projects)
	if query.Get("visibility") == "public" {
		found = []string{f.projects[0], projectJSON(6, "ada/hoist-public")}
	}
	found = slices.DeleteFunc(found, func(p string) bool { return !strings.Contains(nameIn(p, "path_with_namespace"), query.Get("search")) })
	paged(w, r, found)
}

func (f *fake) contents() {
	f.HandleFunc("GET /api/v4/projects/{id}/repository/tree", known(func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Get("path") != ".openhands/microagents" || query.Get("ref") == "" {
			refuse(w, http.StatusNotFound, `{"message":"404 invalid revision or path Not Found"}`)
			return
		}
		paged(w, r, []string{
			`{"id":"a1","name":"deep","type":"tree","path":".openhands/microagents/deep","mode":"040000"}`,
			`{"id":"a2","name":"repo.md","type":"blob","path":".openhands/microagents/repo.md","mode":"100644"}`,
			`{"id":"a3","name":"lib","type":"commit","path":".openhands/microagents/lib","mode":"160000"}`,
		})
	}))
	f.HandleFunc("GET /api/v4/projects/{id}/repository/files/{path}", known(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("path") != ".openhands/microagents/repo.md" || r.URL.Query().Get("ref") == "" {
			refuse(w, http.StatusNotFound, `{"message":"404 File Not Found"}`)
			return
		}
		write(w, `{"file_name":"repo.md","file_path":".openhands/microagents/repo.md","size":7,"encoding":"base64","content":"IyBIb2lzdAo=","ref":"main"}`)
	}))
}

const mergeJSON = `{"id":900,"iid":12,"project_id":2,"title":"Mend the hoist","description":"It slips.","state":"opened","created_at":"2025-02-02T00:00:00.000Z",
	"target_branch":"main","source_branch":"fix/one","user_notes_count":2,"author":{"id":7,"username":"ada","name":"Ada L"},"labels":["bug"],"draft":false,
	"work_in_progress":false,"merge_status":"can_be_merged","detailed_merge_status":"not_approved","has_conflicts":false,"sha":"abc",
	"references":{"short":"!12","relative":"!12","full":"crew/app!12"},"web_url":"https://gitlab.example.org/crew/app/-/merge_requests/12",
	"head_pipeline":{"id":55,"iid":5,"project_id":2,"sha":"abc","ref":"fix/one","status":"failed"}}`

func (f *fake) discussions() {
	f.HandleFunc("GET /api/v4/projects/{id}/merge_requests", known(func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Get("source_branch") != "fix/one" || query.Get("state") != "opened" {
			paged(w, r, nil)
			return
		}
		paged(w, r, []string{mergeJSON})
	}))
	f.HandleFunc("POST /api/v4/projects/{id}/merge_requests", known(created(`{"id":901,"iid":13,"title":"Draft: New rope","state":"opened","target_branch":"main",
		"source_branch":"rope","draft":true,"work_in_progress":true,"merge_status":"checking","detailed_merge_status":"preparing","has_conflicts":false,
		"web_url":"https://gitlab.example.org/crew/app/-/merge_requests/13"}`)))
	f.HandleFunc("GET /api/v4/projects/{id}/merge_requests/{n}", numbered("12", mergeJSON))
	f.HandleFunc("GET /api/v4/projects/{id}/merge_requests/{n}/notes", known(func(w http.ResponseWriter, r *http.Request) {
		paged(w, r, []string{
			`{"id":1,"type":null,"body":"Why?","author":{"id":8,"username":"bob"},"system":false,"resolvable":false}`,
			`{"id":2,"type":null,"body":"added 1 commit","author":{"id":7,"username":"ada"},"system":true,"resolvable":false}`,
			`{"id":3,"type":"DiffNote","body":"Too short.","author":{"id":8,"username":"bob"},"system":false,"resolvable":true,"resolved":false,
				"position":{"base_sha":"0","head_sha":"abc","old_path":"rope.go","new_path":"rope.go","position_type":"text","old_line":null,"new_line":41}}`,
			`{"id":4,"type":"DiffNote","body":"Gone?","author":{"id":8,"username":"bob"},"system":false,"resolvable":true,
				"position":{"old_path":"hook.go","new_path":"hook.go","position_type":"file","old_line":null,"new_line":null}}`,
		})
	}))
	f.HandleFunc("GET /api/v4/projects/{id}/pipelines/{n}/jobs", func(w http.ResponseWriter, r *http.Request) {
		paged(w, r, []string{`{"id":1,"name":"lint","stage":"test","status":"success"}`, `{"id":2,"name":"unit","stage":"test","status":"failed"}`})
	})
	f.HandleFunc("POST /api/v4/projects/{id}/merge_requests/{n}/notes", known(created(`{"id":5,"body":"x"}`)))
	f.HandleFunc("POST /api/v4/projects/{id}/issues/{n}/notes", known(created(`{"id":6,"body":"x"}`)))
	f.HandleFunc("GET /api/v4/projects/{id}/issues/{n}", numbered("4", `{"id":70,"iid":4,"project_id":2,"title":"It slips","description":"On wet days.","state":"opened",
		"author":{"id":8,"username":"bob"},"assignees":[],"web_url":"https://gitlab.example.org/crew/app/-/issues/4"}`))
	f.HandleFunc("GET /api/v4/projects/{id}/issues/{n}/notes", known(func(w http.ResponseWriter, r *http.Request) {
		paged(w, r, []string{`{"id":1,"body":"Seen it too.","author":{"username":"cid"},"system":false}`, `{"id":2,"body":"assigned to @ada","author":{"username":"bob"},"system":true}`})
	}))
	f.HandleFunc("GET /api/v4/issues", func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Get("scope") != "assigned_to_me" || query.Get("state") != "opened" {
			paged(w, r, nil)
			return
		}
		paged(w, r, []string{`{"id":70,"iid":4,"title":"It slips","state":"opened","references":{"short":"#4","relative":"#4","full":"crew/tools/hoist#4"}}`})
	})
	f.HandleFunc("POST /api/graphql", fixed(graph(`{"iid":"12","title":"Mend the hoist","project":{"fullPath":"crew/app"},"conflicts":false,"detailedMergeStatus":"NOT_APPROVED",
		"headPipeline":{"status":"FAILED"},"resolvableDiscussionsCount":1,"resolvedDiscussionsCount":0}`)))
}

// graph is the answer to the question for merge requests.
func graph(nodes ...string) string {
	return `{"data":{"currentUser":{"authoredMergeRequests":{"nodes":[` + strings.Join(nodes, ",") + `]}}}}`
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

// known answers for one project only.
func known(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if id := r.PathValue("id"); id != "crew/app" && id != "2" {
			refuse(w, http.StatusNotFound, `{"message":"404 Project Not Found"}`)
			return
		}
		next(w, r)
	}
}

func numbered(n, body string) http.HandlerFunc {
	return known(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("n") != n {
			refuse(w, http.StatusNotFound, `{"message":"404 Not found"}`)
			return
		}
		write(w, body)
	})
}

// paged answers with one page and with GitLab's headers about the others.
func paged(w http.ResponseWriter, r *http.Request, items []string) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
			return n
		}
		return otherwise
	}
	page, size := number("page", 1), number("per_page", 20)
	from := min((page-1)*size, len(items))
	to := min(from+size, len(items))
	w.Header().Set("X-Page", strconv.Itoa(page))
	w.Header().Set("X-Per-Page", strconv.Itoa(size))
	w.Header().Set("X-Total", strconv.Itoa(len(items)))
	w.Header().Set("X-Next-Page", "")
	if to < len(items) {
		w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
	}
	write(w, "["+strings.Join(items[from:to], ",")+"]")
}

// nameIn reads a text out of a document.
func nameIn(document, field string) string {
	var v map[string]any
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		panic(err)
	}
	return v[field].(string)
}
