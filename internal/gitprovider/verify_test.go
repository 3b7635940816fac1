package gitprovider

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/outbound"
)

// forge answers like a git host that has one repository, and remembers who asked
// how. done waits for abandoned requests, and tells.
func forge(t *testing.T, repository string) (base string, done func() (asked []string)) {
	var asked []string
	var mu sync.Mutex // several providers may have the same host
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
		if strings.TrimPrefix(r.URL.Path, "/scm") != "/"+repository+".git/info/refs" || r.URL.Query().Get("service") != "git-upload-pack" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string { s.Close(); return asked }
}

func TestTokensGoToTheirHostsOnly(t *testing.T) {
	for _, c := range []struct{ provider, repository, found string }{
		{"bitbucket", "team/a", "bitbucket"}, {"github", "team/b", "github"}, {"", "team/b", "github"}, {"", "team/a", "bitbucket"}, {"gitlab", "team/b", "gitlab"},
		// The one that is named comes first, then the others with something stored.
		{"github", "team/a", "bitbucket"}, {"gitlab", "team/a", "bitbucket"}, {"enterprise_sso", "team/a", "bitbucket"}, {"unheard-of", "team/b", "github"},
		{"github", "team/none", ""}, {"unheard-of", "team/none", ""}, {"github", "--upload-pack=x", ""},
	} {
		a, doneA := forge(t, "team/a")
		b, doneB := forge(t, "team/b")
		tokens := map[string]Token{"bitbucket": {"ann:app-password", a}, "github": {"secret-b", b}, "gitlab": {"", b}}
		got, err := Verify(t.Context(), http.DefaultClient, tokens, c.provider, c.repository, "")
		if got != c.found || (err == nil) != (c.found != "") {
			t.Errorf("%+v: %q %v", c, got, err)
		}
		var unreachable *UnreachableError
		if err != nil && (!errors.As(err, &unreachable) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "app-password")) {
			t.Errorf("%+v: %v", c, err)
		}
		askedA, askedB := doneA(), doneB()
		for _, line := range askedA {
			if !strings.HasSuffix(line, " "+Basic("ann:app-password")) && !strings.HasSuffix(line, " ") {
				t.Errorf("%+v: the first host was asked %s", c, line)
			}
		}
		for _, line := range askedB {
			if !strings.HasSuffix(line, " "+Basic("x-access-token:secret-b")) && !strings.HasSuffix(line, " ") {
				t.Errorf("%+v: the second host was asked %s", c, line)
			}
		}
		if strings.HasPrefix(c.repository, "-") && len(askedA)+len(askedB) > 0 {
			t.Errorf("a hostile name was passed on: %v %v", askedA, askedB)
		}
	}
}

// A public repository can be had with a token that is no good any more.
func TestPublicDespiteTheToken(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || !strings.HasPrefix(r.URL.Path, "/public/") {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	}))
	defer s.Close()
	tokens := map[string]Token{"github": {"expired", s.URL}}
	if got, err := Verify(t.Context(), http.DefaultClient, tokens, "github", "public/app", ""); got != "github" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if _, err := Verify(t.Context(), http.DefaultClient, tokens, "github", "private/app", ""); err == nil || !strings.Contains(err.Error(), "the stored token has no access") {
		t.Errorf("%v", err)
	}
}

func TestVerifySaysThatAnAddressIsBlocked(t *testing.T) {
	client := outbound.NewClient(outbound.Policy{}, 0)
	defer client.CloseIdleConnections()
	_, err := Verify(t.Context(), client, map[string]Token{"gitea": {"t", "http://localhost:9"}}, "gitea", "team/a", "")
	if err == nil || !strings.Contains(err.Error(), "the address is not allowed") || !strings.Contains(err.Error(), "--allow-private localhost:9") || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "::1") {
		t.Error(err)
	}
}

func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		tokens   []string
		provider string
		want     [][]string
	}{
		{nil, "", [][]string{nil, {"github", "gitlab", "bitbucket"}}},
		{nil, "gitlab", [][]string{{"gitlab"}, nil}},
		{[]string{"gitlab", "forgejo"}, "", [][]string{{"forgejo", "gitlab"}, {"github", "bitbucket"}}},
		{[]string{"gitlab"}, "github", [][]string{{"github"}, {"gitlab"}}},
	} {
		tokens := map[string]Token{}
		for _, p := range c.tokens {
			tokens[p] = Token{}
		}
		if got := candidates(tokens, c.provider); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestBaseURL(t *testing.T) {
	for _, c := range []struct{ provider, host, want string }{
		{"github", "", "https://github.com"}, {"gitlab", "", "https://gitlab.com"}, {"bitbucket", "", "https://bitbucket.org"}, {"github", "git.example.org", "https://git.example.org"},
		{"github", "git.example.org:8443", "https://git.example.org:8443"}, {"github", "http://127.0.0.1:1", "http://127.0.0.1:1"}, {"gitea", "", "https://gitea.com"},
		{"enterprise_sso", "", ""}, {"github", "ftp://h", ""}, {"github", "https://u:p@h", ""}, {"github", "://", ""}, {"github", "file:///etc", ""},
	} {
		u, err := baseURL(c.provider, c.host)
		got := ""
		if err == nil {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%s %q: %q %v, want %q", c.provider, c.host, got, err, c.want)
		}
	}
}

// Each kind of host gets the token in the way it understands, at the path where
// it has its repositories.
func TestWaysToShowAToken(t *testing.T) {
	for _, c := range []struct{ provider, path, accepts string }{
		{"gitlab", "/team/a.git", Basic("oauth2:t0ken")},
		{"gitea", "/team/a.git", Basic("oauth2:t0ken")},
		{"bitbucket", "/scm/team/a.git", "Bearer t0ken"},
		{"bitbucket", "/scm/team/a.git", Basic("x-token-auth:t0ken")},
		{"enterprise_sso", "/team/a.git", "Bearer t0ken"},
		{"enterprise_sso", "/team/a.git", Basic("oauth2:t0ken")},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != c.path+"/info/refs" || r.Header.Get("Authorization") != c.accepts {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		}))
		got, err := Verify(t.Context(), http.DefaultClient, map[string]Token{c.provider: {"t0ken", s.URL}}, c.provider, "team/a", "")
		if got != c.provider || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		if at, err := CloneURL(c.provider, s.URL, "team/a"); err != nil || at != s.URL+c.path {
			t.Errorf("%+v is cloned from %s, %v", c, at, err)
		}
		s.Close()
	}
	if at, err := CloneURL("bitbucket", "", "team/a"); err != nil || at != "https://bitbucket.org/team/a.git" {
		t.Errorf("the public Bitbucket's is cloned from %s, %v", at, err)
	}
}
