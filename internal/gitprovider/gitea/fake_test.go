package gitea

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// obj is a JSON object. The ones below have the shapes in which Gitea answers,
// with the fields that adapters may be tempted to read.
type obj = map[string]any

const site = "https://git.example.org"

// fake is a Gitea that knows a few things by heart, and what tests put into it.
type fake struct {
	user     obj
	repos    []obj
	branches []obj
	pulls    map[int]obj
	reviews  map[int][]obj
	remarks  map[int][]obj // by review
	statuses map[string][]obj
	issues   []obj
	comments map[int][]obj
	labels   []obj
	files    map[string]string
}

func person(id int, login, name string) obj {
	return obj{
		"id": id, "login": login, "login_name": "", "source_id": 0, "full_name": name, "email": login + "@example.org",
		"avatar_url": site + "/avatars/" + login, "html_url": site + "/" + login, "language": "en-US", "is_admin": false,
		"last_login": "2026-03-01T10:00:00Z", "created": "2026-01-01T00:00:00Z", "restricted": false, "active": true,
		"visibility": "public", "followers_count": 0, "following_count": 0, "starred_repos_count": 0, "username": login,
	}
}

func repo(id int, owner obj, name string, private bool, stars int, updated string) obj {
	full := owner["login"].(string) + "/" + name
	return obj{
		"id": id, "owner": owner, "name": name, "full_name": full, "description": "", "empty": false, "private": private,
		"fork": false, "template": false, "mirror": false, "size": 25, "html_url": site + "/" + full,
		"url": site + "/api/v1/repos/" + full, "clone_url": site + "/" + full + ".git", "stars_count": stars, "forks_count": 0,
		"watchers_count": 1, "open_issues_count": 2, "open_pr_counter": 1, "default_branch": "main", "archived": false,
		"created_at": "2026-01-02T00:00:00Z", "updated_at": updated, "archived_at": "1970-01-01T00:00:00Z",
		"permissions": obj{"admin": true, "push": true, "pull": true}, "internal": false, "has_issues": true,
	}
}

func branchOf(name, commit string, protected bool) obj {
	return obj{
		"name": name, "protected": protected, "required_approvals": 0, "user_can_push": true, "user_can_merge": true,
		"commit": obj{
			"id": commit, "message": "Begin", "url": site + "/ada/engine/commit/" + commit, "author": obj{"name": "Ada", "email": "ada@example.org"},
			"timestamp": "2026-02-03T04:05:06Z", "added": nil, "removed": nil, "modified": nil,
		},
	}
}

func pullOf(number int, title, head string, mergeable bool) obj {
	base := repo(7, person(1, "ada", "Ada"), "engine", false, 3, "2026-03-03T00:00:00Z")
	return obj{
		"id": 100 + number, "number": number, "user": person(1, "ada", "Ada"), "title": title, "body": "Because.", "labels": []obj{},
		"state": "open", "draft": strings.HasPrefix(title, "WIP:"), "is_locked": false, "comments": 1, "mergeable": mergeable, "merged": false,
		"merged_at": nil, "html_url": fmt.Sprint(site, "/ada/engine/pulls/", number),
		"base": obj{"label": "main", "ref": "main", "sha": "c0", "repo_id": 7, "repo": base},
		"head": obj{"label": head, "ref": head, "sha": "sha-" + head, "repo_id": 7, "repo": base},
	}
}

func issueOf(number int, title, repository string) obj {
	owner, name, _ := strings.Cut(repository, "/")
	return obj{
		"id": 200 + number, "number": number, "user": person(2, "grace", "Grace"), "title": title, "body": "It is broken.",
		"labels": []obj{}, "assignee": person(1, "ada", "Ada"), "state": "open", "comments": 2, "pull_request": nil,
		"html_url":   fmt.Sprint(site, "/", repository, "/issues/", number),
		"repository": obj{"id": 7, "name": name, "owner": owner, "full_name": repository},
	}
}

func commentOf(who obj, body, at string) obj {
	return obj{"id": 1, "user": who, "body": body, "created_at": at, "updated_at": at}
}

func reviewOf(id int, state, body string) obj {
	return obj{
		"id": id, "user": person(2, "grace", "Grace"), "state": state, "body": body, "commit_id": "sha", "stale": false,
		"official": false, "dismissed": false, "comments_count": 0, "submitted_at": "2026-03-02T00:00:00Z",
	}
}

func statusOf(context, state string) obj {
	return obj{"id": 1, "status": state, "context": context, "target_url": "", "description": "", "created_at": "2026-03-02T00:00:00Z"}
}

// handler answers as the API does.
func (f *fake) handler(t *testing.T) http.Handler {
	mux := http.NewServeMux()
	get := func(path string, answer func(*http.Request) any) {
		mux.HandleFunc("GET /api/v1"+path, func(w http.ResponseWriter, r *http.Request) {
			send(t, w, r, answer(r))
		})
	}
	const here = "/repos/ada/engine"
	get("/user", func(*http.Request) any { return f.user })
	get("/repos/search", f.search)
	get("/repos/issues/search", f.mine)
	get(here, func(*http.Request) any { return f.repos[0] })
	get(here+"/branches", func(*http.Request) any { return f.branches })
	get(here+"/labels", func(*http.Request) any { return f.labels })
	get(here+"/pulls", func(*http.Request) any {
		open := []obj{}
		for n := range 100 {
			if pr, ok := f.pulls[n]; ok && pr["state"] == "open" {
				open = append(open, pr)
			}
		}
		return open
	})
	get(here+"/pulls/{n}", func(r *http.Request) any {
		if pr, ok := f.pulls[number(r)]; ok {
			return pr
		}
		return nil
	})
	get(here+"/pulls/{n}/reviews", func(r *http.Request) any { return append([]obj{}, f.reviews[number(r)]...) })
	get(here+"/pulls/{n}/reviews/{id}/comments", func(r *http.Request) any {
		id, _ := strconv.Atoi(r.PathValue("id"))
		return f.remarks[id]
	})
	get(here+"/commits/{sha}/status", func(r *http.Request) any { return combined(f.statuses[r.PathValue("sha")]) })
	get(here+"/issues/{n}", func(r *http.Request) any {
		for _, i := range f.issues {
			if i["number"] == number(r) {
				return i
			}
		}
		return nil
	})
	get(here+"/issues/{n}/comments", func(r *http.Request) any { return append([]obj{}, f.comments[number(r)]...) })
	get(here+"/contents/{path...}", f.contents)
	mux.HandleFunc("GET /api/v1"+here+"/raw/{path...}", func(w http.ResponseWriter, r *http.Request) {
		content, ok := f.files[r.PathValue("path")]
		if !ok {
			send(t, w, r, nil)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(content))
	})
	mux.HandleFunc("POST /api/v1"+here+"/issues/{n}/comments", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		send(t, w, r, commentOf(f.user, "as sent", "2026-03-04T00:00:00Z"))
	})
	mux.HandleFunc("POST /api/v1"+here+"/pulls", func(w http.ResponseWriter, r *http.Request) { f.propose(t, w, r) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { send(t, w, r, nil) })
	return mux
}

func number(r *http.Request) int {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return -1
	}
	return n
}

// combined is how the states of a commit come: the worst of them, and all.
func combined(all []obj) obj {
	worst := ""
	for _, state := range []string{"success", "pending", "failure", "error"} {
		for _, s := range all {
			if s["status"] == state {
				worst = state
			}
		}
	}
	return obj{"state": worst, "sha": "sha", "total_count": len(all), "statuses": all, "commit_url": "", "url": ""}
}

// send writes an answer. Lists come in pages, with links to the others; nil is not there.
func send(t *testing.T, w http.ResponseWriter, r *http.Request, answer any) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	switch v := answer.(type) {
	case nil:
		w.WriteHeader(http.StatusNotFound)
		answer = obj{"errors": []string{}, "message": "not found", "url": site + "/api/swagger"}
	case []obj:
		answer = page(w, r, v)
	case obj:
		if data, ok := v["data"].([]obj); ok {
			v["data"] = page(w, r, data)
		}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		t.Error(err)
	}
}

func page(w http.ResponseWriter, r *http.Request, all []obj) []obj {
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 1 || limit > 50 {
		limit = 30
	}
	at, err := strconv.Atoi(query.Get("page"))
	if err != nil || at < 1 {
		at = 1
	}
	link := func(n int, rel string) string {
		q := url.Values{}
		for name := range query {
			q.Set(name, query.Get(name))
		}
		q.Set("page", strconv.Itoa(n))
		return fmt.Sprintf(`<%s%s?%s>; rel="%s"`, site, r.URL.Path, q.Encode(), rel)
	}
	var links []string
	last := (len(all) + limit - 1) / limit
	if at < last {
		links = append(links, link(at+1, "next"), link(last, "last"))
	}
	if at > 1 {
		links = append(links, link(1, "first"), link(at-1, "prev"))
	}
	if len(links) > 0 {
		w.Header().Set("Link", strings.Join(links, ","))
	}
	w.Header().Set("X-Total-Count", strconv.Itoa(len(all)))
	from := min((at-1)*limit, len(all))
	return all[from:min(from+limit, len(all))]
}
