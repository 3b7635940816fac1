package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/outbound"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "ada:s3cret-token"

// start serves, and makes a caller for it.
func start(t *testing.T, h http.HandlerFunc) *Caller {
	s := httptest.NewServer(h)
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); s.Close() })
	return of(&http.Client{Transport: transport}, s.URL)
}

func of(client *http.Client, host string) *Caller {
	return New(Options{Client: client, Token: token, Host: host, Name: "gitlab"}, "gitlab.com",
		func(site *url.URL) *url.URL { return site.JoinPath("api") }, func(h http.Header) { h.Set("X-Token", token) })
}

func TestACall(t *testing.T) {
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 64)
		n, _ := r.Body.Read(body)
		fmt.Fprintf(w, "%q", r.Method+" "+r.URL.RequestURI()+" "+string(body[:n])+" "+r.Header.Get("X-Token")+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Accept"))
	})
	for _, test := range []struct {
		r    Request
		want string
	}{
		{Request{Path: "/a%2Fb", Query: url.Values{"q": {"x y&z"}}}, "GET /api/a%2Fb?q=x+y%26z  ada:s3cret-token  application/json"},
		{Request{Method: "PUT", Path: Path("a", "b/c"), Body: map[string]int{"n": 1}}, `PUT /api/a/b%2Fc {"n":1} ada:s3cret-token application/json application/json`},
		{Request{Path: "/x", Accept: "text/plain"}, "GET /api/x  ada:s3cret-token  text/plain"},
		{Request{Path: "/graphql", Elsewhere: c.Site}, "GET /graphql  ada:s3cret-token  application/json"},
	} {
		var got string
		if a, err := c.Do(t.Context(), test.r, &got); err != nil || got != test.want || a.Status != http.StatusOK {
			t.Errorf("%+v: %q %v, want %q", test.r, got, err, test.want)
		}
	}
	for what, r := range map[string]Request{
		"another host":         {Path: "/x", Elsewhere: &url.URL{Scheme: "http", Host: "other.example.org"}},
		"another port":         {Path: "/x", Elsewhere: &url.URL{Scheme: "http", Host: c.Site.Hostname() + ":1"}},
		"an address as a path": {Path: ".other.example.org/x", Elsewhere: &url.URL{Scheme: "http", Host: c.Site.Host}},
		"what is no JSON":      {Path: "/x", Body: make(chan int)},
		"no method":            {Path: "/x", Method: "A B"},
	} {
		if _, err := c.Do(t.Context(), r, nil); gitprovider.ReasonOf(err) != gitprovider.Refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestStatuses(t *testing.T) {
	const body = `{"message": "It\nis   wrong: ada:s3cret-token, YWRhOnMzY3JldC10b2tlbg== and s3cret-token\u0000"}`
	for _, test := range []struct {
		status  int
		headers string
		body    string
		want    gitprovider.Reason
		says    string
		retry   time.Duration
	}{
		{400, "", body, gitprovider.Refused, "It is wrong: ***, *** and ***", 0},
		{401, "", body, gitprovider.BadToken, "Store a new one", 0},
		{403, "", body, gitprovider.Scope, "It is wrong: ***, *** and ***", 0},
		{403, "X-Ratelimit-Remaining: 12", body, gitprovider.Scope, "It is wrong", 0},
		{403, "X-Ratelimit-Remaining: 0", "", gitprovider.RateLimited, "Try again later", 0},
		{403, "Retry-After: 30", "", gitprovider.RateLimited, "", 30 * time.Second},
		{403, "", `{"message": "You have exceeded a secondary rate limit."}`, gitprovider.RateLimited, "", 0},
		{404, "", body, gitprovider.NotFound, "", 0}, {410, "", body, gitprovider.NotFound, "", 0},
		{405, "", body, gitprovider.Refused, "It is wrong", 0}, {409, "", body, gitprovider.Refused, "It is wrong", 0}, {422, "", body, gitprovider.Refused, "It is wrong", 0},
		{422, "", "<html>", gitprovider.Refused, "refused the request.", 0},
		{408, "", "", gitprovider.Unavailable, "", 0},
		{429, "Retry-After: 5", "", gitprovider.RateLimited, "", 5 * time.Second},
		{429, "Retry-After: -5", "", gitprovider.RateLimited, "", 0},
		{429, "Retry-After: 99999999", "", gitprovider.RateLimited, "", maxWait},
		{429, "Retry-After: soon", "", gitprovider.RateLimited, "", 0},
		{429, "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", "", gitprovider.RateLimited, "", 0},
		{429, "X-Ratelimit-Reset: 1", "", gitprovider.RateLimited, "", 0},
		{500, "", body, gitprovider.Unavailable, "", 0}, {502, "", "<html>", gitprovider.Unavailable, "", 0}, {503, "", "", gitprovider.Unavailable, "", 0},
		{304, "", "", gitprovider.Unavailable, "", 0}, {302, "", "", gitprovider.Unavailable, "", 0},
		{200, "", "", gitprovider.Unavailable, "", 0}, {200, "", "<html>", gitprovider.Unavailable, "", 0}, {200, "", `{"a": `, gitprovider.Unavailable, "", 0},
	} {
		c := start(t, func(w http.ResponseWriter, _ *http.Request) {
			if name, value, ok := strings.Cut(test.headers, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.body))
		})
		var out any
		_, err := c.Get(t.Context(), "/x", nil, &out)
		e, _ := errors.AsType[*gitprovider.Error](err)
		if e == nil || e.Reason != test.want || !strings.Contains(e.Message, test.says) || e.RetryAfter != test.retry || e.Provider != "gitlab" || e.Host != c.Site.Host {
			t.Errorf("%d %s: %+v", test.status, test.headers, e)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the token is in the error: %v", err)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	for size, want := range map[int]gitprovider.Reason{maxBody: "", maxBody + 1: gitprovider.Unavailable} {
		c := start(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
		if body, _, err := c.Raw(t.Context(), Request{Path: "/x"}); gitprovider.ReasonOf(err) != want || want == "" && len(body) != size || want != "" && body != nil {
			t.Errorf("%d bytes: %d %v", size, len(body), err)
		}
	}
}

func TestWait(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	for name, value := range map[string]string{
		"Retry-After": now.Add(time.Minute).Format(http.TimeFormat), "X-Ratelimit-Reset": fmt.Sprint(now.Add(time.Minute).Unix()), "Ratelimit-Reset": fmt.Sprint(now.Add(time.Minute).Unix()),
	} {
		if got := wait(http.Header{name: {value}}, now); got != time.Minute {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// stuck never answers.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestNobodyWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := of(&http.Client{Transport: stuck{}}, "example.org"), time.Now()
		if _, err := c.Get(t.Context(), "/x", nil, nil); gitprovider.ReasonOf(err) != gitprovider.Unavailable || time.Since(began) != timeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Get(ctx, "/x", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who wants it faster: %v", err)
		}
	})
}

// broken fails like a dialler does.
type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

func TestABlockedAddressSaysHowToPermitIt(t *testing.T) {
	blocked := outbound.Policy{}
	client := outbound.NewClient(blocked, 0)
	defer client.CloseIdleConnections()
	_, err := of(client, "http://127.0.0.1:9").Get(t.Context(), "/x", nil, nil)
	if gitprovider.ReasonOf(err) != gitprovider.Blocked || !strings.Contains(err.Error(), "is not allowed. The server refused to connect") || !strings.Contains(err.Error(), "--allow-private 127.0.0.1:9") {
		t.Errorf("%v", err)
	}
	_, err = of(&http.Client{Transport: broken{errors.New("a dialler that prints " + token)}}, "example.org").Get(t.Context(), "/x", nil, nil)
	if gitprovider.ReasonOf(err) != gitprovider.Unavailable || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}

// A host without a scheme is asked over https. One that has none says how to store it.
func TestAHostWithoutTLSSaysHowToStoreIt(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); s.Close() })
	_, err := of(&http.Client{Transport: transport}, strings.TrimPrefix(s.URL, "http://")).Get(t.Context(), "/x", nil, nil)
	if gitprovider.ReasonOf(err) != gitprovider.Unavailable || !strings.Contains(err.Error(), "store the host as "+s.URL) || strings.Contains(err.Error(), "again later") {
		t.Errorf("%v", err)
	}
}

func TestHostsThatCannotBeUsed(t *testing.T) {
	for _, host := range []string{"ftp://h", "https://u:p@h", "://", "file:///etc", "https://", "h?x=1", "h#x", "a b"} {
		c := of(&http.Client{Transport: broken{errors.New("dialled")}}, host)
		if _, err := c.Get(t.Context(), "/x", nil, nil); gitprovider.ReasonOf(err) != gitprovider.Refused || !strings.Contains(err.Error(), "settings") {
			t.Errorf("%q: %v", host, err)
		}
	}
	if _, err := (Options{Name: "enterprise_sso"}).Site(""); gitprovider.ReasonOf(err) != gitprovider.Refused {
		t.Errorf("no host at all: %v", err)
	}
	for host, want := range map[string]string{
		"": "https://gitlab.com", "Git.Example.org": "https://git.example.org", "h:8443": "https://h:8443", "http://127.0.0.1:1/": "http://127.0.0.1:1", "h/git/": "https://h/git",
	} {
		if site, err := (Options{Host: host}).Site("gitlab.com"); err != nil || site.String() != want {
			t.Errorf("%q: %v %v", host, site, err)
		}
	}
}

// A chain that leaves and comes back gets nothing either: a foreign server chose where it ends.
func TestRedirects(t *testing.T) {
	var seen []string
	note := func(who string, r *http.Request) {
		seen = append(seen, fmt.Sprintf("%s %s %s token:%t", who, r.Method, r.URL.Path, r.Header.Get("X-Token") != ""))
	}
	var home string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note("other", r)
		http.Redirect(w, r, home+"/end", http.StatusTemporaryRedirect)
	}))
	defer other.Close()
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		note("home", r)
		switch r.URL.Path {
		case "/api/moved":
			http.Redirect(w, r, "/api/new", http.StatusTemporaryRedirect)
		case "/api/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/api/round":
			http.Redirect(w, r, "/api/round", http.StatusFound)
		default:
			_, _ = w.Write([]byte("{}"))
		}
	})
	home = c.Site.String()
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/moved", "home GET /api/moved token:true, home GET /api/new token:true"},
		{"POST", "/moved", "home POST /api/moved token:true, home POST /api/new token:true"},
		{"GET", "/away", "home GET /api/away token:true, other GET / token:false, home GET /end token:false"},
		{"POST", "/away", "home POST /api/away token:true"},
	} {
		seen = nil
		_, err := c.Do(t.Context(), Request{Method: test.method, Path: test.path, Body: map[string]int{}}, nil)
		if got := strings.Join(seen, ", "); got != test.want || (err != nil) != (test.method == "POST" && test.path == "/away") {
			t.Errorf("%s %s: %s %v", test.method, test.path, got, err)
		}
	}
	seen = nil
	if _, err := c.Get(t.Context(), "/round", nil, nil); gitprovider.ReasonOf(err) != gitprovider.Unavailable || len(seen) != 10 {
		t.Errorf("a circle: %v after %d", err, len(seen))
	}
}
