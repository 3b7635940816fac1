package bitbucket

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/gitprovider"
)

// question is a call and the request that it must become: method, address and body.
type question struct {
	do   func(ctx context.Context, p gitprovider.Provider) error
	want string
}

// askedRight makes the calls and looks at the last request of each.
func askedRight(t *testing.T, open func(*http.Client, string, string) gitprovider.Provider, fake http.Handler, questions []question) {
	t.Helper()
	var mu sync.Mutex
	var last string
	p := answering(t, open, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		last = strings.TrimSpace(r.Method + " " + r.URL.EscapedPath() + " " + strings.ReplaceAll(r.URL.Query().Encode(), "+", " ") + " " + string(body))
		mu.Unlock()
		fake.ServeHTTP(w, r)
	})
	for _, q := range questions {
		last = ""
		_ = q.do(t.Context(), p) // whether the fake knows an answer is of no matter
		if last != q.want {
			t.Errorf("asked %s\n want %s", last, q.want)
		}
	}
}

func propose(proposal gitprovider.Proposal) func(context.Context, gitprovider.Provider) error {
	return func(ctx context.Context, p gitprovider.Provider) error { return second(p.Propose(ctx, proposal)) }
}

func proposed(repository, target string) func(context.Context, gitprovider.Provider) error {
	return func(ctx context.Context, p gitprovider.Provider) error {
		return second(p.Proposed(ctx, repository, `fix"one`, target))
	}
}

func TestCloudIsAsked(t *testing.T) {
	draft := gitprovider.Proposal{Repository: "crew/app", Title: "New rope", Body: "Long.", Source: "rope", Draft: true, Labels: []string{"bug"}}
	whole := draft
	whole.Draft, whole.Target = false, "release/1"
	const pulls = "/2.0/repositories/crew/app/pullrequests"
	askedRight(t, cloudAt, newCloudFake(), []question{
		{propose(draft), `POST ` + pulls + `  {"description":"Long.","draft":true,"source":{"branch":{"name":"rope"}},"title":"New rope"}`},
		{propose(whole), `POST ` + pulls + `  {"description":"Long.","destination":{"branch":{"name":"release/1"}},"draft":false,"source":{"branch":{"name":"rope"}},"title":"New rope"}`},
		{proposed("crew/app", ""), `GET ` + pulls + ` pagelen=50&q=state %3D %22OPEN%22 AND source.branch.name %3D %22fix%5C%22one%22`},
		{proposed("crew/app", "main"), `GET ` + pulls + ` pagelen=50&q=state %3D %22OPEN%22 AND source.branch.name %3D %22fix%5C%22one%22 AND destination.branch.name %3D %22main%22`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return p.Comment(ctx, "crew/app", 4, false, "Hi")
		}, `POST /2.0/repositories/crew/app/issues/4/comments  {"content":{"raw":"Hi"}}`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return p.Comment(ctx, "crew/app", 12, true, "Hi")
		}, `POST ` + pulls + `/12/comments  {"content":{"raw":"Hi"}}`},
		{func(ctx context.Context, p gitprovider.Provider) error { return second(p.Tasks(ctx)) },
			`GET /2.0/repositories/crew/hoist/issues pagelen=50&q=%28state %3D %22new%22 OR state %3D %22open%22%29 AND assignee.uuid %3D %22%7Bu-ada%7D%22&sort=-created_on`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return second(p.Branches(ctx, "crew/app", gitprovider.BranchQuery{Query: `a"b`, Page: 3, PerPage: 7}))
		}, `GET /2.0/repositories/crew/app/refs/branches page=3&pagelen=7&q=name ~ %22a%5C%22b%22&sort=-target.date`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return second(p.File(ctx, "crew/app", "main", "/a b/../c.md"))
		},
			`GET /2.0/repositories/crew/app/src/main/a%20b/%2E%2E/c.md format=meta`},
		{func(ctx context.Context, p gitprovider.Provider) error { return second(p.Repository(ctx, "../app")) }, `GET /2.0/repositories/%2E%2E/app`},
	})
}

func TestDataCenterIsAsked(t *testing.T) {
	draft := gitprovider.Proposal{Repository: "PRJ/app", Title: "New rope", Body: "Long.", Source: "rope", Draft: true, Labels: []string{"bug"}}
	whole := draft
	whole.Draft, whole.Target = false, "release/1"
	const (
		repo  = "/rest/api/1.0/projects/PRJ/repos/app"
		pulls = repo + "/pull-requests"
		in    = `"repository":{"project":{"key":"PRJ"},"slug":"app"}}`
	)
	askedRight(t, centerAt, newCenterFake(), []question{
		{propose(draft), `POST ` + pulls + `  {"description":"Long.","draft":true,"fromRef":{"id":"refs/heads/rope",` + in + `,"title":"New rope","toRef":{"id":"refs/heads/main",` + in + `}`},
		{propose(whole), `POST ` + pulls + `  {"description":"Long.","fromRef":{"id":"refs/heads/rope",` + in + `,"title":"New rope","toRef":{"id":"refs/heads/release/1",` + in + `}`},
		{proposed("PRJ/app", "main"), `GET ` + pulls + ` at=refs%2Fheads%2Ffix%22one&direction=OUTGOING&limit=50&start=0&state=OPEN`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return p.Comment(ctx, "PRJ/app", 12, true, "Hi")
		}, `POST ` + pulls + `/12/comments  {"text":"Hi"}`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return second(p.Branches(ctx, "PRJ/app", gitprovider.BranchQuery{Query: "a&b", Page: 3, PerPage: 7}))
		}, `GET ` + repo + `/branches filterText=a%26b&limit=21&orderBy=MODIFICATION&start=0`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return second(p.File(ctx, "PRJ/app", "fix/one", "/a b/../c.md"))
		}, `GET ` + repo + `/raw/a%20b/%2E%2E/c.md at=fix%2Fone`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return second(p.File(ctx, "PRJ/app", "", "c.md"))
		}, `GET ` + repo + `/raw/c.md`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return second(p.Folder(ctx, "PRJ/app", "fix/one", "none"))
		},
			`GET ` + repo + `/browse/none at=fix%2Fone&limit=1000&start=0`},
		{func(ctx context.Context, p gitprovider.Provider) error {
			return second(p.Repository(ctx, "~ada/notes"))
		}, `GET /rest/api/1.0/projects/~ada/repos/notes`},
	})
	quiet := instead(newCenterFake(), map[string]string{"/dashboard/pull-requests": `{"isLastPage":true,"values":[]}`})
	askedRight(t, centerAt, quiet, []question{
		{func(ctx context.Context, p gitprovider.Provider) error { return second(p.Tasks(ctx)) }, `GET /rest/api/1.0/dashboard/pull-requests limit=50&order=NEWEST&role=AUTHOR&start=0&state=OPEN`},
	})
}
