package gitea

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"deckhand/internal/gitprovider"
)

// TestOrders looks at what the host is asked: its words for orders are others than the port's.
func TestOrders(t *testing.T) {
	var asked url.Values
	fake := newFake().handler(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/repos/search" {
			asked = r.URL.Query()
		}
		fake.ServeHTTP(w, r)
	}))
	defer s.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	p := adapter(&http.Client{Transport: transport}, s.URL, "token")
	for _, test := range []struct{ sort, wantSort, wantOrder string }{
		{"pushed", "updated", "desc"}, {"updated", "updated", "desc"}, {"", "updated", "desc"}, {"x", "updated", "desc"},
		{"created", "created", "desc"}, {"full_name", "alpha", "asc"},
	} {
		// The fake knows only the first order; what counts is what it was asked.
		_, _ = p.Repositories(t.Context(), gitprovider.RepositoryQuery{Sort: test.sort, Page: 2, PerPage: 500})
		want := url.Values{"uid": {"1"}, "page": {"2"}, "limit": {"50"}, "sort": {test.wantSort}, "order": {test.wantOrder}}
		if !maps.EqualFunc(asked, want, slices.Equal) {
			t.Errorf("%+v: %v", test, asked)
		}
	}
	for _, test := range []struct{ sort, order, wantSort, wantOrder string }{
		{"stars", "desc", "stars", "desc"}, {"forks", "asc", "forks", "asc"}, {"updated", "", "updated", "desc"}, {"magic", "asc", "", ""},
	} {
		if _, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "e n&q=", Sort: test.sort, Order: test.order}); err != nil {
			t.Error(err)
		}
		if asked.Get("q") != "e n&q=" || asked.Get("limit") != "30" || asked.Get("sort") != test.wantSort || asked.Get("order") != test.wantOrder {
			t.Errorf("%+v: %v", test, asked)
		}
	}
}

func TestBranches(t *testing.T) {
	f := newFake()
	for range 120 {
		f.branches = append(f.branches, branchOf("bulk", "c5", false))
	}
	f.branches = append(f.branches, branchOf("last/Login", "c6", false))
	p, _ := connect(t, f)
	for name, test := range map[string]struct {
		q            gitprovider.BranchQuery
		first        string
		items, total int
		more         bool
	}{
		"a page":               {gitprovider.BranchQuery{Page: 1, PerPage: 2}, "main", 2, 126, true},
		"no page said":         {gitprovider.BranchQuery{}, "main", 30, 126, true},
		"found on all pages":   {gitprovider.BranchQuery{Query: "LOGIN", PerPage: 10}, "fix/login", 3, 3, false},
		"found, in pages":      {gitprovider.BranchQuery{Query: "login", Page: 1, PerPage: 2}, "fix/login", 2, 3, true},
		"found, the last page": {gitprovider.BranchQuery{Query: "login", Page: 2, PerPage: 2}, "last/Login", 1, 3, false},
		"found, beyond":        {gitprovider.BranchQuery{Query: "login", Page: 9, PerPage: 2}, "", 0, 3, false},
	} {
		got, err := p.Branches(t.Context(), "ada/engine", test.q)
		if err != nil || len(got.Items) != test.items || got.Total != test.total || got.More != test.more {
			t.Errorf("%s: %d of %d, more %t, %v", name, len(got.Items), got.Total, got.More, err)
			continue
		}
		if len(got.Items) > 0 && got.Items[0].Name != test.first {
			t.Errorf("%s begins with %s", name, got.Items[0].Name)
		}
	}
}

// Labels of the organisation count where the repository has none of the name;
// that they cannot be seen is no reason to fail.
func TestOrganisationLabels(t *testing.T) {
	f := newFake()
	for name, test := range map[string]struct {
		status int
		body   string
		want   gitprovider.Reason
	}{
		"there":     {200, `[{"id":77,"name":"shared"}]`, ""},
		"a person":  {404, `{"message":"not found"}`, gitprovider.Refused},
		"forbidden": {403, `{"message":"token does not have at least one of required scope(s)"}`, gitprovider.Refused},
		"broken":    {500, ``, gitprovider.Unavailable},
	} {
		mux := http.NewServeMux()
		mux.Handle("/", f.handler(t))
		mux.HandleFunc("GET /api/v1/orgs/ada/labels", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
		})
		s := httptest.NewServer(mux)
		transport := &http.Transport{}
		_, err := adapter(&http.Client{Transport: transport}, s.URL, "token").Propose(t.Context(), gitprovider.Proposal{
			Repository: "ada/engine", Title: "x", Source: "a", Target: "b", Labels: []string{"bug", "shared"},
		})
		if gitprovider.ReasonOf(err) != test.want {
			t.Errorf("%s: %v", name, err)
		}
		transport.CloseIdleConnections()
		s.Close()
	}
}
