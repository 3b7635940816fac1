package github

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// fake answers as GitHub's API does, in the shapes of its reference.
type fake struct {
	t   *testing.T
	mux *http.ServeMux
}

func newFake(t *testing.T) http.Handler {
	f := &fake{t, http.NewServeMux()}
	f.mux.HandleFunc("GET /api/v3/user", f.fixed("user.json"))
	f.mux.HandleFunc("GET /api/v3/user/repos", func(w http.ResponseWriter, r *http.Request) {
		f.page(w, r, list[map[string]any](t, "repositories.json"))
	})
	f.mux.HandleFunc("GET /api/v3/user/installations", f.installations)
	f.mux.HandleFunc("GET /api/v3/user/installations/{id}/repositories", f.installed)
	f.mux.HandleFunc("GET /api/v3/search/repositories", f.search)
	f.mux.HandleFunc("GET /api/v3/repos/{owner}/{name}", f.repository)
	f.mux.HandleFunc("GET /api/v3/repos/team/app/branches", func(w http.ResponseWriter, r *http.Request) {
		f.page(w, r, list[map[string]any](t, "branches.json"))
	})
	f.mux.HandleFunc("POST /api/graphql", f.graphql)
	f.mux.HandleFunc("GET /api/v3/repos/team/app/contents/{path...}", f.contents)
	f.mux.HandleFunc("POST /api/v3/repos/team/app/pulls", f.propose)
	f.mux.HandleFunc("GET /api/v3/repos/team/app/pulls", f.pulls)
	f.mux.HandleFunc("GET /api/v3/repos/team/app/pulls/7", f.fixed("pull.json"))
	f.mux.HandleFunc("GET /api/v3/repos/team/app/pulls/7/reviews", f.fixed("reviews.json"))
	f.mux.HandleFunc("GET /api/v3/repos/team/app/pulls/7/comments", f.fixed("review_comments.json"))
	f.mux.HandleFunc("GET /api/v3/repos/team/app/commits/6dcb09b5b57875f334f61aebed695e2e4193db5e/check-runs", f.fixed("check_runs.json"))
	f.mux.HandleFunc("GET /api/v3/repos/team/app/commits/6dcb09b5b57875f334f61aebed695e2e4193db5e/status", f.fixed("status.json"))
	f.mux.HandleFunc("GET /api/v3/repos/team/app/issues/5", f.fixed("issue.json"))
	f.mux.HandleFunc("GET /api/v3/repos/team/app/issues/5/comments", f.fixed("comments.json"))
	f.mux.HandleFunc("GET /api/v3/repos/team/app/issues/7/comments", f.fixed("comments.json"))
	f.mux.HandleFunc("POST /api/v3/repos/team/app/issues/{number}/comments", f.created(`{"id": 1, "body": "…"}`))
	f.mux.HandleFunc("POST /api/v3/repos/team/app/issues/8/labels", f.created(`[{"id": 208045946, "name": "bot"}]`))
	f.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { f.refuse(w, http.StatusNotFound, "Not Found") })
	return f.mux
}

func (f *fake) refuse(w http.ResponseWriter, status int, message string) {
	f.send(w, status, map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)})
}

func (f *fake) send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		f.t.Error(err)
	}
}

func (f *fake) fixed(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		f.send(w, http.StatusOK, json.RawMessage(load(f.t, name)))
	}
}

func (f *fake) created(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { f.send(w, http.StatusCreated, json.RawMessage(body)) }
}

// cut takes a page out of a list and says in a link where the next one is. The
// link names a host that does not exist: only its query may be used.
func cut[T any](w http.ResponseWriter, r *http.Request, all []T) []T {
	number, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	first := min((number-1)*size, len(all))
	last := min(first+size, len(all))
	query := r.URL.Query()
	if last < len(all) {
		query.Set("page", strconv.Itoa(number+1))
		w.Header().Set("Link", fmt.Sprintf(`<https://api.internal.invalid%s?%s>; rel="next", <https://api.internal.invalid/>; rel="last"`, r.URL.Path, query.Encode()))
	}
	return all[first:last]
}

func (f *fake) page(w http.ResponseWriter, r *http.Request, all []map[string]any) {
	f.send(w, http.StatusOK, cut(w, r, all))
}

func (f *fake) installations(w http.ResponseWriter, r *http.Request) {
	all := make([]map[string]any, 103) // more than a page can hold
	for i := range all {
		all[i] = map[string]any{"id": 25381 + i, "app_slug": "deckhand", "target_type": "Organization"}
	}
	f.send(w, http.StatusOK, map[string]any{"total_count": len(all), "installations": cut(w, r, all)})
}

func (f *fake) installed(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != "25381" {
		f.refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	all := list[map[string]any](f.t, "repositories.json")
	f.send(w, http.StatusOK, map[string]any{"total_count": len(all), "repositories": cut(w, r, all)})
}

// search knows the qualifiers that are used here.
func (f *fake) search(w http.ResponseWriter, r *http.Request) {
	var text, owner string
	for term := range strings.FieldsSeq(r.URL.Query().Get("q")) {
		switch name, value, qualifier := strings.Cut(term, ":"); {
		case !qualifier:
			text = term
		case name == "user":
			owner = strings.Replace(value, "@me", "ada", 1)
		}
	}
	if owner == "nobody" {
		f.refuse(w, http.StatusUnprocessableEntity, "Validation Failed")
		return
	}
	found := []map[string]any{}
	for _, one := range list[map[string]any](f.t, "repositories.json") {
		of, name, _ := strings.Cut(one["full_name"].(string), "/")
		if strings.Contains(name, text) && (owner == "" || of == owner) {
			found = append(found, one)
		}
	}
	f.send(w, http.StatusOK, map[string]any{"total_count": len(found), "incomplete_results": false, "items": found})
}

func (f *fake) repository(w http.ResponseWriter, r *http.Request) {
	for _, one := range list[map[string]any](f.t, "repositories.json") {
		if one["full_name"] == r.PathValue("owner")+"/"+r.PathValue("name") {
			f.send(w, http.StatusOK, one)
			return
		}
	}
	f.refuse(w, http.StatusNotFound, "Not Found")
}

func (f *fake) contents(w http.ResponseWriter, r *http.Request) {
	ref, path, raw := r.URL.Query().Get("ref"), r.PathValue("path"), strings.Contains(r.Header.Get("Accept"), "raw")
	switch {
	case ref != "" && ref != "feature/one" && ref != "main":
		f.refuse(w, http.StatusNotFound, "No commit found for the ref "+ref)
	case path == ".openhands/microagents":
		f.fixed("folder.json")(w, r)
	case path == ".openhands/microagents/repo.md" && raw:
		w.Header().Set("Content-Type", "application/vnd.github.raw+json; charset=utf-8")
		_, _ = w.Write([]byte("# The app\n"))
	case path == ".openhands/microagents/repo.md":
		f.fixed("file.json")(w, r)
	default:
		f.refuse(w, http.StatusNotFound, "Not Found")
	}
}

func (f *fake) propose(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Title, Body, Head, Base string
		Draft                   bool
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		f.t.Error(err)
	}
	out := object(f.t, "pull.json")
	out["number"], out["title"], out["body"], out["draft"], out["mergeable"] = 8, in.Title, in.Body, in.Draft, nil
	out["html_url"] = "https://github.com/team/app/pull/8"
	out["head"].(map[string]any)["ref"], out["base"].(map[string]any)["ref"] = in.Head, in.Base
	f.send(w, http.StatusCreated, out)
}

func (f *fake) pulls(w http.ResponseWriter, r *http.Request) {
	q, found := r.URL.Query(), []map[string]any{}
	if one := object(f.t, "pull.json"); q.Get("state") == "open" && q.Get("head") == "team:feature/one" && q.Get("base") == "main" {
		delete(one, "mergeable")
		found = append(found, one)
	}
	f.send(w, http.StatusOK, found)
}

// graphql tells the two queries apart by what they ask for.
func (f *fake) graphql(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Query     string
		Variables map[string]any
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		f.t.Error(err)
	}
	if strings.Contains(in.Query, "viewer") {
		f.fixed("tasks.json")(w, r)
		return
	}
	if in.Variables["owner"] != "team" || in.Variables["name"] != "app" {
		f.send(w, http.StatusOK, json.RawMessage(`{"data": {"repository": null}, "errors": [{"type": "NOT_FOUND", "path": ["repository"], "message": "Could not resolve to a Repository."}]}`))
		return
	}
	nodes, after := []any{}, 0
	if cursor, ok := in.Variables["after"].(string); ok {
		after, _ = strconv.Atoi(cursor)
	}
	for _, b := range list[map[string]any](f.t, "branches.json") {
		if name := b["name"].(string); strings.Contains(name, in.Variables["part"].(string)) {
			node := map[string]any{
				"name": name, "refUpdateRule": nil,
				"target": map[string]any{"oid": b["commit"].(map[string]any)["sha"], "committedDate": "2026-05-01T10:00:00Z"},
			}
			if b["protected"] == true {
				node["refUpdateRule"] = map[string]any{"pattern": name}
			}
			nodes = append(nodes, node)
		}
	}
	last := min(after+int(in.Variables["first"].(float64)), len(nodes))
	f.send(w, http.StatusOK, map[string]any{"data": map[string]any{"repository": map[string]any{"refs": map[string]any{
		"totalCount": len(nodes), "nodes": nodes[min(after, last):last],
		"pageInfo": map[string]any{"hasNextPage": last < len(nodes), "endCursor": strconv.Itoa(last)},
	}}}})
}
