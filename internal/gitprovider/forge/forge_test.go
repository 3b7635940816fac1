package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply is what a host says to one question.
type reply struct {
	status       int
	body, header string
}

// host serves replies by path and counts the questions. Others get what "" says.
func host(t *testing.T, replies map[string]reply) (o call.Options, asked *[]string) {
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			t.Errorf("%s was asked with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		answer, ok := replies[r.URL.Path]
		if !ok {
			if answer, ok = replies[""]; !ok {
				answer = reply{status: http.StatusNotFound}
			}
		}
		if name, value, ok := strings.Cut(answer.header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(answer.status)
		_, _ = w.Write([]byte(answer.body))
	}))
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); s.Close() })
	return call.Options{Client: &http.Client{Transport: transport}, Token: "s3cret", Host: s.URL}, asked
}

func fresh() *memory { return &memory{hosts: map[string]entry{}} }

// The user's address is the one that each kind of API has for it.
func TestAHostIsAskedWhatItIs(t *testing.T) {
	signIn := reply{status: 200, body: "<!DOCTYPE html><title>Sign in</title>"}
	for what, c := range map[string]struct {
		replies map[string]reply
		path    string
	}{
		"Gitea": {map[string]reply{
			"/api/v1/version": {status: 200, body: `{"version": "1.26.0"}`}, "/api/v1/user": {status: 200, body: `{"id": 1, "login": "ada"}`},
		}, "/api/v1/user"},
		"Forgejo behind a sign-on": {map[string]reply{
			"": signIn, "/api/v1/version": {status: 200, body: `{"version": "12.0.1+gitea-1.22.0"}`}, "/api/v1/user": {status: 200, body: `{"id": 1, "login": "ada"}`},
		}, "/api/v1/user"},
		"GitLab": {map[string]reply{
			"/api/v4/version": {status: 200, body: `{"version": "18.1.0-ee", "revision": "abc"}`}, "/api/v4/user": {status: 200, body: `{"id": 1, "username": "ada"}`},
		}, "/api/v4/user"},
		"GitLab that does not say its version": {map[string]reply{
			"/api/v4/version": {status: 403, body: `{"error": "insufficient_scope"}`, header: `X-Gitlab-Meta: {"version":"1"}`}, "/api/v4/user": {status: 200, body: `{"id": 1, "username": "ada"}`},
		}, "/api/v4/user"},
		"GitHub Enterprise Server": {map[string]reply{
			"/api/v3/meta": {status: 200, body: `{"verifiable_password_authentication": true, "installed_version": "3.17.0"}`}, "/api/v3/user": {status: 200, body: `{"id": 1, "login": "ada"}`},
		}, "/api/v3/user"},
		"GitHub by its header": {map[string]reply{
			"/api/v3/meta": {status: 403, body: `{}`, header: "X-GitHub-Request-Id: 1:2"}, "/api/v3/user": {status: 200, body: `{"id": 1, "login": "ada"}`},
		}, "/api/v3/user"},
		"Bitbucket Data Center": {map[string]reply{
			"/rest/api/1.0/application-properties": {status: 200, body: `{"version": "9.4.1", "buildNumber": "9004001", "buildDate": "1", "displayName": "Bitbucket"}`},
		}, "/plugins/servlet/applinks/whoami"},
	} {
		o, asked := host(t, c.replies)
		p, err := open(t.Context(), fresh(), "enterprise_sso", o)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		*asked = nil
		_, err = p.User(t.Context())
		if len(*asked) == 0 || !strings.HasPrefix((*asked)[0], c.path) {
			t.Errorf("%s: the user was looked for at %v", what, *asked)
		}
		if e, ok := errors.AsType[*gitprovider.Error](err); ok && e.Provider != "enterprise_sso" {
			t.Errorf("%s: the error is of %q", what, e.Provider)
		}
	}
}

func TestHostsThatAreNotKnown(t *testing.T) {
	for what, c := range map[string]struct {
		replies map[string]reply
		want    gitprovider.Reason
	}{
		"nothing there":       {nil, gitprovider.Unsupported},
		"a sign-on page":      {map[string]reply{"": {status: 200, body: "<html>"}}, gitprovider.Unsupported},
		"something in JSON":   {map[string]reply{"": {status: 200, body: `{"hello": "world"}`}}, gitprovider.Unsupported},
		"JSON of no object":   {map[string]reply{"": {status: 200, body: `["version"]`}}, gitprovider.Unsupported},
		"a token it rejects":  {map[string]reply{"": {status: 401}}, gitprovider.BadToken},
		"a token for less":    {map[string]reply{"": {status: 403}}, gitprovider.Scope},
		"a token, after 500":  {map[string]reply{"": {status: 500}, "/api/v3/meta": {status: 401}}, gitprovider.BadToken},
		"one that is ill":     {map[string]reply{"": {status: 503}}, gitprovider.Unavailable},
		"one that is annoyed": {map[string]reply{"": {status: 429, header: "Retry-After: 9"}}, gitprovider.RateLimited},
	} {
		o, _ := host(t, c.replies)
		p, err := open(t.Context(), fresh(), "enterprise_sso", o)
		if p != nil || gitprovider.ReasonOf(err) != c.want || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), strings.TrimPrefix(o.Host, "http://")) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatAHostIsIsRemembered(t *testing.T) {
	o, asked := host(t, map[string]reply{"/api/v1/version": {status: 200, body: `{"version": "1.26.0"}`}})
	m := fresh()
	for range 3 {
		if _, err := open(t.Context(), m, "enterprise_sso", o); err != nil {
			t.Fatal(err)
		}
	}
	if len(*asked) != 2 { // GitLab's question, then Gitea's
		t.Errorf("asked %v", *asked)
	}
}

// tripper answers as Gitea does, without a network, so that time can be made to pass.
type tripper struct{ asked int }

func (f *tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	f.asked++
	w := httptest.NewRecorder()
	w.WriteHeader(http.StatusOK)
	_, _ = w.WriteString(`{"version": "1.26.0"}`)
	return w.Result(), nil
}

func TestItIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := &tripper{}, fresh()
		o := call.Options{Client: &http.Client{Transport: f}, Host: "git.example.org"}
		for _, c := range []struct {
			later time.Duration
			asked int
		}{{0, 2}, {59 * time.Minute, 2}, {time.Minute, 4}} {
			time.Sleep(c.later)
			if _, err := open(t.Context(), m, "enterprise_sso", o); err != nil || f.asked != c.asked {
				t.Errorf("%v later: asked %d times, %v", c.later, f.asked, err)
			}
		}
		for i := range maxHosts + 5 {
			o.Host = fmt.Sprintf("h%d.example.org", i)
			if _, err := open(t.Context(), m, "enterprise_sso", o); err != nil {
				t.Fatal(err)
			}
		}
		if len(m.hosts) > maxHosts {
			t.Errorf("%d hosts are remembered", len(m.hosts))
		}
	})
}

func TestNobodyIsAskedInVain(t *testing.T) {
	// No server listens: one request is enough.
	f := &lost{}
	o := call.Options{Client: &http.Client{Transport: f}, Host: "git.example.org"}
	if _, err := open(t.Context(), fresh(), "enterprise_sso", o); gitprovider.ReasonOf(err) != gitprovider.Unavailable || f.asked != 1 {
		t.Errorf("%v, asked %d times", err, f.asked)
	}
	// These are known.
	for _, host := range []string{"github.com", "gitlab.com", "bitbucket.org", "gitea.com", "codeberg.org"} {
		o.Host, f.asked = host, 0
		if _, err := open(t.Context(), fresh(), "enterprise_sso", o); err != nil || f.asked != 0 {
			t.Errorf("%s: %v, asked %d times", host, err, f.asked)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Host = "git.example.org"
	if _, err := open(ctx, fresh(), "enterprise_sso", o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type lost struct{ asked int }

func (l *lost) RoundTrip(*http.Request) (*http.Response, error) {
	l.asked++
	return nil, errors.New("no route to host")
}

func TestOpen(t *testing.T) {
	o := call.Options{Client: &http.Client{Transport: &lost{}}}
	for _, name := range []string{"github", "gitlab", "bitbucket", "gitea", "forgejo"} {
		p, err := Open(t.Context(), name, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = p.User(t.Context())
		if e, ok := errors.AsType[*gitprovider.Error](err); !ok || e.Provider != name || e.Reason != gitprovider.Unavailable {
			t.Errorf("%s: %+v", name, err)
		}
	}
	for name, want := range map[string]gitprovider.Reason{"": gitprovider.Unsupported, "sourceforge": gitprovider.Unsupported, "enterprise_sso": gitprovider.Refused} {
		if _, err := Open(t.Context(), name, o); gitprovider.ReasonOf(err) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
