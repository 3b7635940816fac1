package egress_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/gitgate"
	"deckhand/internal/sandbox/egress"
)

func TestGateTokenNotTaken(t *testing.T) {
	g := newGitHost(t, false)
	w := newGate(t, g, open, nil)
	g.set("another", nil)
	for _, address := range []string{refs, strings.Replace(refs, "upload", "receive", 1)} {
		resp, body := w.request("GET", g.gate+address, "")
		if resp.StatusCode != 403 || !strings.Contains(body, "the stored token for "+g.site.Host+" was not accepted") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	w.recorded(w.last(), "GET", "git.example.com", egress.Allowed, "not accepted")
	g.set(gitToken, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "Permission denied to ada, who came with "+gitToken, http.StatusForbidden)
	})
	if resp, body := w.request("GET", g.gate+strings.Replace(refs, "upload", "receive", 1), ""); resp.StatusCode != 403 || !strings.Contains(body, "does not allow pushing to octo/app with the stored token; it says: Permission denied to ada") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, status := range []int{404, 429, 500, 503} {
		g.set(gitToken, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("WWW-Authenticate", "Basic")
			w.Header().Set("Set-Cookie", "a=b")
			http.Error(w, "no luck with "+gitToken, status)
		})
		if resp, body := w.request("GET", g.gate+refs, ""); resp.StatusCode != status || !strings.Contains(body, "no luck with ***") || resp.Header.Get("Retry-After") != "7" || resp.Header.Get("Set-Cookie") != "" {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	g.set(gitToken, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Log in, please") })
	if resp, body := w.request("GET", g.gate+refs, ""); resp.StatusCode != 502 || !strings.Contains(body, "did not respond as a git server") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// A token that has run out does not close public repositories, and a host says
// which of several credentials it takes before something large is sent.
func TestGateTriesCredentials(t *testing.T) {
	g := newGitHost(t, false)
	public := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			http.Error(w, "bad credentials", http.StatusUnauthorized)
			return
		}
		advertise(w, r)
	}
	g.Config.Handler = http.HandlerFunc(public)
	w := newGate(t, g, open, nil)
	for _, c := range [][2]string{{"GET", refs}, {"POST", "/octo/app.git/git-upload-pack"}} {
		if resp, body := w.request(c[0], g.gate+c[1], strings.Repeat("x", len(c[0])%3)); resp.StatusCode != 200 {
			t.Errorf("%v: %d %s", c, resp.StatusCode, body)
		}
	}
	if resp, body := w.request("GET", g.gate+strings.Replace(refs, "upload", "receive", 1), ""); resp.StatusCode != 403 || !strings.Contains(body, "was not accepted") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	var pushed []byte
	g.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, basic := r.BasicAuth(); !basic {
			http.Error(w, "bearers are not known here", http.StatusUnauthorized)
			return
		}
		pushed, _ = io.ReadAll(r.Body)
		advertise(w, r)
	})
	w = newGate(t, g, open, only(g.site, gitgate.Grant{Credentials: gitgate.Credentials("enterprise_sso", gitToken, true)}))
	client := w.client()
	pack := append([]byte("0000"), bytes.Repeat([]byte("pack"), 1<<20)...)
	for _, c := range []struct {
		method, path string
		body         []byte
	}{{"GET", "/octo/app.git/info/refs?service=git-receive-pack", nil}, {"POST", "/octo/app.git/git-receive-pack", pack}} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, g.gate+c.path, bytes.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		if resp.Body.Close(); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", c.path, resp.StatusCode, text)
		}
	}
	if !bytes.Equal(pushed, pack) {
		t.Errorf("%d bytes arrived", len(pushed))
	}
}

// Git in the sandbox learns that there are no push options, whatever the host can do.
func TestGateHidesPushOptions(t *testing.T) {
	g := newGitHost(t, false)
	long := strings.Repeat("0000 refs/heads/many\n", 1000)
	g.set(gitToken, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-"+r.URL.Query().Get("service")+"-advertisement")
		io.WriteString(w, "refs/heads/main\x00atomic push-options quiet\n"+long+" push-options")
	})
	w := newGate(t, g, open, nil)
	for service, can := range map[string]string{"git-receive-pack": "push-refused", "git-upload-pack": "push-options"} {
		want := "refs/heads/main\x00atomic " + can + " quiet\n" + long + " push-options"
		if resp, body := w.request("GET", g.gate+"/octo/app.git/info/refs?service="+service, ""); resp.StatusCode != 200 || body != want {
			t.Errorf("%s: %d, %.80q", service, resp.StatusCode, body)
		}
	}
}

func TestGateRedirects(t *testing.T) {
	g := newGitHost(t, false)
	stranger := newGitHost(t, false)
	dns.set("stranger.test", "127.0.0.1")
	elsewhere := fmt.Sprintf("http://stranger.test:%d", stranger.port)
	w := newWorld(t, open, append(near(g.at("git.example.com")), near(elsewhere)...), func(c *egress.Config) {
		c.Git = func(_ context.Context, _ string, site gitgate.Site) (gitgate.Grant, error) {
			return only(g.site, gitgate.Grant{Credentials: gitgate.Credentials("gitea", gitToken, true)})("", site)
		}
	})
	for to, want := range map[string]string{
		"/octo/moved.git/info/refs?service=git-upload-pack":                   g.gate + "/octo/moved.git/info/refs?service=git-upload-pack",
		g.site.String() + "/octo/moved.git/info/refs?service=git-upload-pack": g.gate + "/octo/moved.git/info/refs?service=git-upload-pack",
		elsewhere + refs:                  elsewhere + refs,
		"https://" + g.site.Host + refs:   "https://" + g.site.Host + refs,
		elsewhere + "/?token=" + gitToken: elsewhere + "/?token=**********",
		"/user/login":                     "", "http://ada:pw@" + g.site.Host + refs: "", "file:///etc/passwd": "",
	} {
		g.set(gitToken, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusMovedPermanently)
			io.WriteString(w, "moved, "+gitToken)
		})
		resp, body := w.request("GET", g.gate+refs, "")
		if got := resp.Header.Get("Location"); got != want || want != "" && resp.StatusCode != 301 || want == "" && resp.StatusCode != 502 {
			t.Errorf("%s: %d %q %s", to, resp.StatusCode, got, body)
		}
	}
	g.set(gitToken, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere+refs, http.StatusFound) })
	resp, err := w.client().Get(g.gate + refs)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if r, _ := stranger.last(); r.Header.Get("Authorization") != "" || resp.StatusCode != 401 {
		t.Errorf("the other host was shown %v", r.Header)
	}
}

// Tokens are asked for at every request, for the sandbox that makes it.
func TestGateAsksEachTime(t *testing.T) {
	g := newGitHost(t, false)
	var mu sync.Mutex
	token := "first"
	var ids []string
	w := newGate(t, g, open, func(id string, site gitgate.Site) (gitgate.Grant, error) {
		mu.Lock()
		defer mu.Unlock()
		if ids = append(ids, id); token == "" {
			return gitgate.Grant{}, gitgate.ErrNoToken
		}
		return gitgate.Grant{Credentials: gitgate.Credentials("gitea", token, true)}, nil
	})
	client := w.client()
	for _, c := range []struct {
		stored, taken string
		status        int
	}{{"first", "first", 200}, {"second", "second", 200}, {"first", "second", 403}, {"", "second", 403}, {"second", "second", 200}} {
		mu.Lock()
		token = c.stored
		mu.Unlock()
		g.set(c.taken, nil)
		resp, err := client.Get(g.gate + refs)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); resp.StatusCode != c.status {
			t.Errorf("%+v: %d", c, resp.StatusCode)
		}
	}
	if fmt.Sprint(ids) != "[box box box box box]" {
		t.Errorf("asked for %v", ids)
	}
}

// Objects of LFS go the same way, and the host's answer does not bring the token.
func TestGateLFS(t *testing.T) {
	const oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
	g := newGitHost(t, false)
	g.set(gitToken, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/batch") {
			w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
			fmt.Fprintf(w, `{"objects":[{"oid":%q,"size":5,"actions":{"download":{"href":"%s/octo/app.git/info/lfs/objects/%s","header":{"Authorization":%q}}}}]}`,
				oid, g.site, oid, r.Header.Get("Authorization"))
			return
		}
		io.WriteString(w, "large")
	})
	w := newGate(t, g, open, nil)
	resp, body := w.request("POST", g.gate+"/octo/app.git/info/lfs/objects/batch", `{"operation":"download","objects":[{"oid":"`+oid+`","size":5}],"private_token":"x"}`, "Accept-Encoding", "gzip")
	inside := g.gate + "/octo/app.git/info/lfs/objects/" + oid
	if resp.StatusCode != 200 || !strings.Contains(body, inside) {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if r, sent := g.last(); r.Header.Get("Content-Type") != "application/vnd.git-lfs+json" || r.Header.Get("Accept-Encoding") != "" || strings.Contains(sent, "private_token") || !strings.Contains(sent, oid) {
		t.Errorf("%v %s", r.Header, sent)
	}
	if resp, body := w.request("GET", inside, ""); resp.StatusCode != 200 || body != "large" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
