package bitbucket

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// detour leads what is for the public host to a server on loopback, and notes the addresses.
type detour struct {
	to    *url.URL
	asked *[]string
}

func (d detour) RoundTrip(r *http.Request) (*http.Response, error) {
	*d.asked = append(*d.asked, r.URL.String()+" "+r.Header.Get("Authorization"))
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = d.to.Scheme, d.to.Host
	return http.DefaultTransport.RoundTrip(r)
}

// Cloud has one address, whatever way the host was written; every other host is a Data Center.
func TestWhichProduct(t *testing.T) {
	s := httptest.NewServer(newCloudFake())
	defer s.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"": "https://api.bitbucket.org/2.0/", "bitbucket.org": "https://api.bitbucket.org/2.0/", "https://Bitbucket.org/": "https://api.bitbucket.org/2.0/",
		"http://www.bitbucket.org": "https://api.bitbucket.org/2.0/", "api.bitbucket.org": "https://api.bitbucket.org/2.0/",
		"git.example.org": "https://git.example.org/rest/api/1.0/", "http://git.example.org:7990/stash/": "http://git.example.org:7990/stash/rest/api/1.0/",
		"bitbucket.org.example.org": "https://bitbucket.org.example.org/rest/api/1.0/", "notbitbucket.org": "https://notbitbucket.org/rest/api/1.0/",
	} {
		var asked []string
		p := New(call.Options{Client: &http.Client{Transport: detour{to, &asked}}, Host: host, Token: "t", Name: "bitbucket"})
		_, _ = p.Repository(t.Context(), "crew/app") // the fake knows it for one of the two products only
		first := want + "repositories/crew/app Bearer t"
		if !isCloud(host) {
			first = want + "projects/crew/repos/app Bearer t"
		}
		if len(asked) == 0 || asked[0] != first {
			t.Errorf("%q: asked %q, want %q", host, asked, first)
		}
	}
}

func TestAuthorization(t *testing.T) {
	for token, want := range map[string]string{"": "", "ATCTT3x": "Bearer ATCTT3x", "ada:secret": "Basic YWRhOnNlY3JldA==", "ada@example.org:ATATT3x": "Basic YWRhQGV4YW1wbGUub3JnOkFUQVRUM3g="} {
		h := http.Header{}
		authorize(token)(h)
		if got := h.Get("Authorization"); got != want {
			t.Errorf("%q: %q", token, got)
		}
	}
}

func TestBadHosts(t *testing.T) {
	p := New(call.Options{Client: http.DefaultClient, Host: "ftp://git.example.org", Token: "t", Name: "bitbucket"})
	for _, err := range []error{
		second(p.User(t.Context())), second(p.Tasks(t.Context())), second(p.Discussion(t.Context(), "a/b", 1)), second(p.Installations(t.Context())),
	} {
		if gitprovider.ReasonOf(err) != gitprovider.Refused {
			t.Errorf("%v", err)
		}
	}
	if found, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: "https://git.example.org/scm/a/b.git"}); len(found) > 0 || err != nil {
		t.Errorf("%v %v", found, err)
	}
}

func TestTogether(t *testing.T) {
	var ran atomic.Int32
	if err := together(t.Context(), 20, func(context.Context, int) error { ran.Add(1); return nil }); err != nil || ran.Load() != 20 {
		t.Errorf("%d ran, %v", ran.Load(), err)
	}
	wrong := errors.New("wrong")
	err := together(t.Context(), 20, func(ctx context.Context, i int) error {
		if i == 1 {
			return wrong
		}
		<-ctx.Done() // the others end only because one failed
		return ctx.Err()
	})
	if !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(wrong)
	if err := together(gone, 3, func(context.Context, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Page numbers come from outside.
func TestAbsurdPages(t *testing.T) {
	for _, p := range []gitprovider.Provider{answering(t, cloudAt, newCloudFake().ServeHTTP), answering(t, centerAt, newCenterFake().ServeHTTP)} {
		far, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Page: math.MaxInt, PerPage: math.MaxInt})
		if err != nil || len(far.Items) > 0 || far.Next != 0 {
			t.Errorf("%+v %v", far, err)
		}
		near, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Page: math.MinInt, PerPage: math.MinInt})
		if err != nil || len(near.Items) != 5 {
			t.Errorf("%+v %v", near, err)
		}
	}
}

func TestWindow(t *testing.T) {
	items := []int{1, 2, 3, 4, 5}
	for page, want := range map[int][]int{1: {1, 2}, 2: {3, 4}, 3: {5}, 4: {}} {
		if got := window(items, page, 2); !slices.Equal(got, want) {
			t.Errorf("page %d: %v", page, got)
		}
	}
}
