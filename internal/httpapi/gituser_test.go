package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi/git"
)

// userRoutes are the routes that ask a provider, each with a query that is right.
var userRoutes = map[string]string{
	"/api/user/info": git.NeedToken, "/api/user/installations?provider=github": git.NeedToken, "/api/user/repositories": git.NeedToken, "/api/user/search/repositories?query=x": git.NeedSearch,
	"/api/user/search/branches?repository=a/b&query=x": git.NeedSearch, "/api/user/repository/branches?repository=a/b": git.NeedToken, "/api/user/suggested-tasks": git.NeedTasks,
	"/api/user/repository/a/b/microagents": git.NeedToken, "/api/user/repository/a/b/microagents/content?file_path=x.md": git.NeedToken,
}

func TestUserRoutesWithoutToken(t *testing.T) {
	_, with := newStreet(nil)
	r := newRig(t, with)
	for _, stored := range []bool{false, true} {
		if stored {
			r.settle("ada")
		}
		for route, text := range userRoutes {
			want, _ := json.Marshal(text)
			if a := r.do("GET", route, "").want(t, 401); a.body != string(want) {
				t.Errorf("%s: %s", route, a.body)
			}
		}
	}
}

// broken is a host that fails in everything with the same error.
func broken(err error) *place {
	return &place{
		user: func(context.Context) (gitprovider.User, error) { return gitprovider.User{}, err },
		repositories: func(gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
			return gitprovider.Repositories{}, err
		},
		search: func(context.Context, gitprovider.SearchQuery) ([]gitprovider.Repository, error) { return nil, err },
		branches: func(string, gitprovider.BranchQuery) (gitprovider.Branches, error) {
			return gitprovider.Branches{}, err
		},
		installations: func() ([]string, error) { return nil, err },
		tasks:         func(context.Context) ([]gitprovider.Task, error) { return nil, err },
		fails:         err,
	}
}

func TestUserRoutesWhenTheProviderFails(t *testing.T) {
	limited := failing("github", gitprovider.RateLimited)
	limited.RetryAfter = time.Minute
	for name, c := range map[string]struct {
		err    error
		status int
		words  string
	}{
		"token": {failing("github", gitprovider.BadToken), 401, "rejected the stored token"}, "scope": {failing("github", gitprovider.Scope), 401, "not allowed to do this"},
		"rate": {limited, 429, "Rate limited"}, "away": {failing("github", gitprovider.Unavailable), 503, "is not responding"}, "unsupported": {failing("github", gitprovider.Unsupported), 400, "Not found on"},
		"time": {context.DeadlineExceeded, 503, "GitHub is not responding"}, "unknown": {failing("github", gitprovider.NotFound), 404, "Not found on"}, "refused": {failing("github", gitprovider.Refused), 400, "refused the request"},
	} {
		t.Run(name, func(t *testing.T) {
			_, with := newStreet(map[string]*place{"github": broken(c.err)})
			r := newRig(t, with)
			r.tokens("ada", "github")
			for route := range userRoutes {
				a := r.do("GET", route, "").want(t, c.status, c.words)
				var sentence string
				if json.Unmarshal([]byte(a.body), &sentence) != nil {
					t.Errorf("%s: not a string: %s", route, a.body)
				}
				if c.err == error(limited) && a.header.Get("Retry-After") != "60" {
					t.Errorf("%s: Retry-After %q", route, a.header.Get("Retry-After"))
				}
			}
			if strings.Contains(r.logs.String(), canary) {
				t.Error("a token is in the log")
			}
		})
	}
}

func TestUserInfo(t *testing.T) {
	full := &place{user: func(context.Context) (gitprovider.User, error) {
		return gitprovider.User{ID: "7", Login: "ada", AvatarURL: "https://a.example/7", Company: "Engines", Name: "Ada", Email: "ada@example.org"}, nil
	}}
	_, with := newStreet(map[string]*place{"github": broken(failing("github", gitprovider.Unavailable)), "gitlab": full, "gitea": knows("9")})
	r := newRig(t, with)
	r.tokens("ada", "github", "gitlab", "gitea")
	a := r.do("GET", "/api/user/info", "").want(t, 200)
	if a.body != `{"id":"7","login":"ada","avatar_url":"https://a.example/7","company":"Engines","name":"Ada","email":"ada@example.org"}` || a.header.Get("X-Failed-Providers") != "github" {
		t.Errorf("%s %q", a.body, a.header.Get("X-Failed-Providers"))
	}
	r.tokens("ada", "gitea")
	r.do("GET", "/api/user/info", "").want(t, 200, `{"id":"9","login":"login-9","avatar_url":"","company":null,"name":null,"email":null}`)
	r.as("bob", "GET", "/api/user/info", "").want(t, 401)
}

// What one provider said is not kept back by another that says nothing.
func TestUserInfoDespiteASilentProvider(t *testing.T) {
	left := make(chan error, 1)
	silent := &place{user: func(ctx context.Context) (gitprovider.User, error) {
		<-ctx.Done()
		left <- ctx.Err()
		return gitprovider.User{}, ctx.Err()
	}}
	_, with := newStreet(map[string]*place{"github": knows("7"), "gitlab": silent})
	r := newRig(t, with)
	r.tokens("ada", "github", "gitlab")
	a := r.do("GET", "/api/user/info", "").want(t, 200, `"login":"login-7"`)
	if err := <-left; !errors.Is(err, context.Canceled) || a.header.Get("X-Failed-Providers") != "" {
		t.Errorf("the other was given up with %v, and called failed: %q", err, a.header.Get("X-Failed-Providers"))
	}
}

func TestInstallations(t *testing.T) {
	_, with := newStreet(map[string]*place{"github": {installations: func() ([]string, error) { return []string{"1", "2"}, nil }},
		"gitlab": {installations: func() ([]string, error) { return nil, failing("gitlab", gitprovider.Unsupported) }}})
	r := newRig(t, with)
	r.tokens("ada", "github", "gitlab")
	r.do("GET", "/api/user/installations?provider=github", "").want(t, 200, `["1","2"]`)
	r.do("GET", "/api/user/installations?provider=gitlab", "").want(t, 400, `"Not found on GitLab."`)
	r.do("GET", "/api/user/installations?provider=gitea", "").want(t, 401, git.NeedToken)
	r.do("GET", "/api/user/installations", "").want(t, 422, `["query","provider"]`)
	r.do("GET", "/api/user/installations?provider=svn", "").want(t, 422, `["query","provider"]`)
}

// linkNext is how clients find the number of the next page.
var linkNext = regexp.MustCompile(`<[^>]*[?&]page=(\d+)(?:&[^>]*)?>; rel="next"`)

func TestListRepositories(t *testing.T) {
	var asked []gitprovider.RepositoryQuery
	stars := 5
	hub := &place{repositories: func(q gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
		asked = append(asked, q)
		n := strconv.Itoa(q.Page)
		out := gitprovider.Repositories{Items: []gitprovider.Repository{{ID: n, Name: "team/app" + n, Public: true, Stars: &stars, PushedAt: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), Owner: "organization", MainBranch: "main"}, {ID: n + "b", Name: "team/b" + n}}}
		if q.Page < 3 {
			out.Next = q.Page + 1
		}
		return out, nil
	}}
	lab := &place{repositories: func(gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
		return gitprovider.Repositories{Items: []gitprovider.Repository{{ID: "9", Name: "a/b/c/d"}}}, nil
	}}
	_, with := newStreet(map[string]*place{"github": hub, "gitlab": lab, "gitea": broken(failing("gitea", gitprovider.Unavailable))})
	r := newRig(t, with)
	r.tokens("ada", "github", "gitlab", "gitea")
	a := r.do("GET", "/api/user/repositories?selected_provider=github&page=2&per_page=2&sort=created&installation_id=77", "").want(t, 200,
		`{"id":"2","full_name":"team/app2","git_provider":"github","is_public":true,"stargazers_count":5,`, `"pushed_at":"2025-01-02T03:04:05Z","owner_type":"organization","main_branch":"main"}`,
		`{"id":"2b","full_name":"team/b2","git_provider":"github","is_public":false,"stargazers_count":null,`, `"pushed_at":null,"owner_type":null,"main_branch":null}`)
	if q := asked[0]; q != (gitprovider.RepositoryQuery{Sort: "created", Page: 2, PerPage: 2, Installation: "77"}) {
		t.Errorf("%+v", q)
	}
	for _, v := range decoded[[]api.GitRepository](t, a) {
		if v.LinkHeader == nil || linkNext.FindStringSubmatch(*v.LinkHeader) == nil || linkNext.FindStringSubmatch(*v.LinkHeader)[1] != "3" {
			t.Errorf("%s: %v", v.FullName, v.LinkHeader)
		}
	}
	for _, v := range decoded[[]api.GitRepository](t, r.do("GET", "/api/user/repositories?selected_provider=github&page=3&per_page=2", "").want(t, 200)) {
		if v.LinkHeader != nil {
			t.Errorf("after the last page: %s", *v.LinkHeader)
		}
	}
	// Without a provider: the first page of each; who fails spoils nothing.
	a = r.do("GET", "/api/user/repositories?page=3", "").want(t, 200, "team/app1", "a/b/c/d")
	if a.header.Get("X-Failed-Providers") != "gitea" || !strings.Contains(r.logs.String(), "git provider request failed") {
		t.Errorf("%v", a.header)
	}
	for query, name := range map[string]string{"per_page=0": "per_page", "per_page=101": "per_page", "page=0": "page", "selected_provider=svn": "selected_provider", "page=x": "page"} {
		r.do("GET", "/api/user/repositories?"+query, "").want(t, 422, `["query","`+name+`"]`)
	}
	r.do("GET", "/api/user/repositories?selected_provider=bitbucket&page=1&per_page=10", "").want(t, 401, git.NeedToken)
}

// The providers are asked at the same time: each waits for the others here.
func TestProvidersAreAskedTogether(t *testing.T) {
	var missing atomic.Int64
	missing.Store(2)
	met := make(chan struct{})
	meet := func(ctx context.Context, q gitprovider.SearchQuery) ([]gitprovider.Repository, error) {
		if missing.Add(-1) == 0 {
			close(met)
		}
		select {
		case <-met:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return []gitprovider.Repository{{ID: "1", Name: "x/" + q.Text + q.Sort + q.Order + strconv.Itoa(q.PerPage)}}, nil
	}
	_, with := newStreet(map[string]*place{"github": {search: meet}, "gitlab": {search: meet}})
	r := newRig(t, with)
	r.tokens("ada", "github", "gitlab")
	a := r.do("GET", "/api/user/search/repositories?query=engine", "").want(t, 200)
	got := decoded[[]api.GitRepository](t, a)
	if len(got) != 2 || got[0].GitProvider != "github" || got[1].GitProvider != "gitlab" || got[0].FullName != "x/enginestarsdesc5" || got[0].LinkHeader != nil {
		t.Errorf("%s", a.body)
	}
	r.do("GET", "/api/user/search/repositories", "").want(t, 422, `["query","query"]`)
	r.do("GET", "/api/user/search/repositories?query=x&order=up", "").want(t, 422, `["query","order"]`)
	r.do("GET", "/api/user/search/repositories?query=x&per_page=500", "").want(t, 422, `["query","per_page"]`)
}

func TestBranches(t *testing.T) {
	pushed := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	hub := &place{branches: func(repository string, q gitprovider.BranchQuery) (gitprovider.Branches, error) {
		if repository != "team/app" {
			return gitprovider.Branches{}, failing("github", gitprovider.NotFound)
		}
		name := "main"
		if q.Query != "" {
			name = q.Query + "-found"
		}
		return gitprovider.Branches{Items: []gitprovider.Branch{{Name: name, Commit: "abc", Protected: true, PushedAt: pushed}, {Name: strconv.Itoa(q.Page) + "/" + strconv.Itoa(q.PerPage)}}, More: q.Page < 2, Total: 42}, nil
	}}
	lab := &place{branches: func(repository string, _ gitprovider.BranchQuery) (gitprovider.Branches, error) {
		if repository != "deep/er/app" {
			return gitprovider.Branches{}, failing("gitlab", gitprovider.NotFound)
		}
		return gitprovider.Branches{Items: []gitprovider.Branch{{Name: "trunk"}}, Total: -1}, nil
	}}
	_, with := newStreet(map[string]*place{"github": hub, "gitlab": lab})
	r := newRig(t, with)
	r.tokens("ada", "github", "gitlab")
	a := r.do("GET", "/api/user/repository/branches?repository=team/app&page=1", "").want(t, 200)
	if a.body != `{"branches":[{"name":"main","commit_sha":"abc","protected":true,"last_push_date":"2025-01-02T03:04:05Z"},{"name":"1/30","commit_sha":"","protected":false,"last_push_date":null}],`+
		`"has_next_page":true,"current_page":1,"per_page":30,"total_count":42}` {
		t.Errorf("%s", a.body)
	}
	r.do("GET", "/api/user/repository/branches?repository=team/app&page=2&per_page=7", "").want(t, 200, `"2/7"`, `"has_next_page":false,"current_page":2,"per_page":7`)
	a = r.do("GET", "/api/user/repository/branches?repository=deep/er/app&per_page=30", "").want(t, 200, `"trunk"`, `"total_count":null`)
	if a.header.Get("X-Failed-Providers") != "" || strings.Contains(r.logs.String(), "did not answer") {
		t.Error("a provider is said to fail because another one has the repository")
	}
	r.do("GET", "/api/user/repository/branches?repository=deep/er/app", "").want(t, 200, `[{"name":"trunk",`)
	if all := r.do("GET", "/api/user/repository/branches?repository=team/app", "").want(t, 200, `[{"name":"main",`, `"1/100"`, `"2/100"`); strings.Contains(all.body, `"3/100"`) {
		t.Errorf("it asks beyond the last page: %s", all.body)
	}
	r.do("GET", "/api/user/repository/branches?repository=deep/er/app&selected_provider=github", "").want(t, 404, "Not found on GitHub")
	r.do("GET", "/api/user/search/branches?repository=team/app&query=fix", "").want(t, 200, `[{"name":"fix-found",`)
	for _, bad := range []string{"x", "../x", "--upload-pack=x/y", "a/b%20c", "https://h/a/b"} {
		r.do("GET", "/api/user/repository/branches?repository="+bad, "").want(t, 422, `["query","repository"]`)
		r.do("GET", "/api/user/search/branches?query=x&repository="+bad, "").want(t, 422, `["query","repository"]`)
	}
	r.do("GET", "/api/user/search/branches?repository=a/b", "").want(t, 422, `["query","query"]`)
}
