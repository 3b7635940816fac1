package egress_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/gitgate"
	"deckhand/internal/sandbox/egress"
)

const (
	gitToken = "t0ken-0f-the-gate"
	gateURL  = "http://" + gitgate.Name
	refs     = "/octo/app.git/info/refs?service=git-upload-pack"
)

// gitHost is a host that wants a token, and what it was asked.
type gitHost struct {
	*origin
	site gitgate.Site
	gate string // where it is inside

	mu     sync.Mutex
	token  string // what it takes
	seen   []*http.Request
	bodies [][]byte
	// answer is for requests with the right token; nil is an empty repository.
	answer http.HandlerFunc
}

func newGitHost(t testing.TB, secure bool) *gitHost {
	t.Helper()
	g := &gitHost{token: gitToken}
	if g.origin = newOrigin(t, g.serve); secure {
		g.origin = newTLSOrigin(t, g.serve)
	}
	u, err := url.Parse(g.at("git.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	var ok bool
	if g.site, ok = gitgate.Origin(u); !ok {
		t.Fatal(u)
	}
	g.gate = g.site.Gate()
	return g
}

func (g *gitHost) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	g.seen, g.bodies = append(g.seen, r), append(g.bodies, body)
	token, answer := g.token, g.answer
	g.mu.Unlock()
	if !shown(r, token) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you, "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
		return
	}
	if answer != nil {
		answer(w, r)
		return
	}
	advertise(w, r)
}

func shown(r *http.Request, token string) bool {
	_, password, _ := r.BasicAuth()
	return password == token || r.Header.Get("Authorization") == "Bearer "+token
}

// advertise answers as git does.
func advertise(w http.ResponseWriter, r *http.Request) {
	service := strings.TrimPrefix(r.URL.RawQuery, "service=")
	kind := "application/x-" + service + "-advertisement"
	if service == "" {
		kind = "application/x-" + r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:] + "-result"
	}
	w.Header().Set("Content-Type", kind)
	io.WriteString(w, "refs of "+r.URL.Path)
}

func (g *gitHost) last() (*http.Request, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[len(g.seen)-1], string(g.bodies[len(g.bodies)-1])
}

func (g *gitHost) asked() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

func (g *gitHost) set(token string, answer http.HandlerFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token, g.answer = token, answer
}

// newGate is a world with a token for the host.
func newGate(t testing.TB, g *gitHost, policy egress.Policy, grant func(id string, site gitgate.Site) (gitgate.Grant, error)) *world {
	t.Helper()
	if grant == nil {
		grant = only(g.site, gitgate.Grant{Credentials: gitgate.Credentials("gitea", gitToken, true)})
	}
	w := newWorld(t, policy, near(g.at("git.example.com")), func(c *egress.Config) {
		c.Git = func(_ context.Context, id string, site gitgate.Site) (gitgate.Grant, error) { return grant(id, site) }
	})
	if g.Certificate() != nil {
		pool := x509.NewCertPool()
		pool.AddCert(g.Certificate())
		w.Trust(pool)
	}
	return w
}

func only(site gitgate.Site, grant gitgate.Grant) func(string, gitgate.Site) (gitgate.Grant, error) {
	return func(_ string, at gitgate.Site) (gitgate.Grant, error) {
		if at != site {
			return gitgate.Grant{}, gitgate.ErrNoToken
		}
		return grant, nil
	}
}

// request makes one on a connection of its own, and follows no redirect.
func (w *world) request(method, address, body string, header ...string) (*http.Response, string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, address, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	tr := w.transport()
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	all := fmt.Sprint(resp.Header) + string(text)
	for _, leak := range []string{gitToken, base64.StdEncoding.EncodeToString([]byte("oauth2:" + gitToken)), "Www-Authenticate"} {
		if strings.Contains(all, leak) {
			w.Errorf("%s %s: the answer has %q in it: %s", method, address, leak, all)
		}
	}
	return resp, string(text)
}

func TestGateAddsTheToken(t *testing.T) {
	g := newGitHost(t, true)
	w := newGate(t, g, open, nil)
	resp, body := w.request("GET", g.gate+refs, "", "Authorization", "Basic bWFsbG9yeTpwdw==", "Cookie", "a=b", "Private-Token", "x", "Git-Protocol", "version=2", "X-Forwarded-For", "1.2.3.4")
	if resp.StatusCode != 200 || body != "refs of /octo/app.git/info/refs" {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	r, _ := g.last()
	if user, password, _ := r.BasicAuth(); user != "oauth2" || password != gitToken || r.Host != g.site.Host || r.Header.Get("Git-Protocol") != "version=2" {
		t.Errorf("%s %v", r.Host, r.Header)
	}
	for _, name := range []string{"Cookie", "Private-Token", "X-Forwarded-For"} {
		if r.Header.Get(name) != "" {
			t.Errorf("%s went on to the host", name)
		}
	}
	e := w.last()
	w.recorded(e, "GET", "git.example.com", egress.Allowed, "git: read octo/app")
	if e.Port != g.port || e.Sent < 500 || e.Received < 500 { // TLS counts
		t.Errorf("%+v", e)
	}
}

func TestGateKeepsBodies(t *testing.T) {
	g := newGitHost(t, false)
	w := newGate(t, g, open, nil)
	for service, c := range map[string]struct{ encoding, body string }{
		"git-upload-pack": {"gzip", "\x1f\x8bzipped"}, "git-receive-pack": {"", "000ashal\x00x0000" + strings.Repeat("pack", 1<<20)},
	} {
		resp, text := w.request("POST", g.gate+"/octo/app.git/"+service, c.body, "Content-Encoding", c.encoding, "Content-Type", "application/json")
		if resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		r, got := g.last()
		if got != c.body || r.Header.Get("Content-Encoding") != c.encoding || r.Header.Get("Content-Type") != "application/x-"+service+"-request" {
			t.Errorf("%s: %d bytes, %v", service, len(got), r.Header)
		}
	}
	w.recorded(w.last(), "POST", "git.example.com", egress.Allowed, "octo/app")
}

// What a host sends arrives while it sends.
func TestGateStreams(t *testing.T) {
	g := newGitHost(t, false)
	read := make(chan struct{})
	g.set(gitToken, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		io.WriteString(w, "one")
		_ = http.NewResponseController(w).Flush()
		<-read
		io.WriteString(w, "two")
	})
	w := newGate(t, g, open, nil)
	resp, err := w.client().Post(g.gate+"/octo/app.git/git-upload-pack", "", strings.NewReader("want"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	close(read)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "two" {
		t.Errorf("%q %v", rest, err)
	}
}

// The policy is asked about the real host.
func TestGateObeysThePolicy(t *testing.T) {
	g := newGitHost(t, false)
	at := strings.TrimPrefix(g.at("git.example.com"), "http://")
	for _, c := range []struct {
		policy egress.Policy
		status int
		says   string
	}{
		{egress.Policy{Mode: egress.Off}, 403, `egress policy "off" allows nothing`},
		{list("other.test", gitgate.Name), 403, `egress policy "allowlist" does not allow git.example.com`},
		{list(at), 200, "refs of"},
	} {
		w := newGate(t, g, c.policy, nil)
		before := g.asked()
		resp, body := w.request("GET", g.gate+refs, "")
		if resp.StatusCode != c.status || !strings.Contains(body, c.says) || c.status == 403 && g.asked() != before {
			t.Errorf("%v: %d %s", c.policy, resp.StatusCode, body)
		}
		if kind := resp.Header.Get("Content-Type"); c.status == 403 && !strings.HasPrefix(kind, "text/plain") {
			t.Errorf("git does not show %s", kind)
		}
		if e := w.last(); e.Host != "git.example.com" {
			t.Errorf("%+v", e)
		}
	}
	w := newWorld(t, open, nil, func(c *egress.Config) {
		c.Git = func(context.Context, string, gitgate.Site) (gitgate.Grant, error) {
			return gitgate.Grant{Credentials: gitgate.Credentials("gitea", gitToken, true)}, nil
		}
	})
	if resp, body := w.request("GET", g.gate+refs, ""); resp.StatusCode != 403 || !strings.Contains(body, "only public addresses are allowed") {
		t.Errorf("a private address: %d %s", resp.StatusCode, body)
	}
}

// A policy that changes cuts what goes through the gate as well.
func TestGateIsCut(t *testing.T) {
	g := newGitHost(t, false)
	done := make(chan struct{})
	g.set(gitToken, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(done)
	})
	w := newGate(t, g, open, nil)
	resp, err := w.client().Post(g.gate+"/octo/app.git/git-upload-pack", "", strings.NewReader("want"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	w.policy.Store(&egress.Policy{Mode: egress.Off})
	w.Changed("box")
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("it went on")
	}
	<-done
}

func TestGateRefuses(t *testing.T) {
	g := newGitHost(t, false)
	own := gitgate.Grant{Credentials: gitgate.Credentials("gitea", gitToken, true), Confined: true, Own: "octo/app"}
	w := newGate(t, g, open, only(g.site, own))
	for _, c := range []struct{ method, address, body, says string }{
		{"GET", gateURL + "/http/elsewhere.test/octo/app.git/info/refs?service=git-upload-pack", "", "no token is stored for http://elsewhere.test"},
		{"GET", gateURL + "/https/" + g.site.Host + refs, "", "no token is stored for https://git.example.com"},
		{"GET", gateURL + "/http/git.example.com" + refs, "", "no token is stored for http://git.example.com"},
		{"GET", g.gate + "/octo/other.git/info/refs?service=git-receive-pack", "", "can push to octo/app and to no other repository, so not to octo/other"},
		{"POST", g.gate + "/octo/other.git/git-receive-pack", "0000", "no other repository"},
		{"POST", g.gate + "/octo/app.git/git-receive-pack", "0014ref\x00push-options0000", "push options are not passed on"},
		{"POST", g.gate + "/octo/app.git/git-receive-pack", "\x1f\x8bzipped", "not a push as git sends it"},
		{"POST", g.gate + "/octo/other.git/info/lfs/objects/batch", `{"operation":"upload"}`, "no other repository"},
		{"POST", g.gate + "/octo/app.git/info/lfs/objects/batch", `nonsense`, "not a request for LFS objects"},
		{"POST", g.gate + "/octo/app.git/info/lfs/objects/batch", `{"operation":"download","x":"` + strings.Repeat("x", gitgate.MaxBatch) + `"}`, "too many"},
		{"GET", g.gate + "/octo/app/settings", "", "for git alone"},
		{"GET", g.gate + refs, "a body", "git sends nothing"},
	} {
		resp, body := w.request(c.method, c.address, c.body)
		if resp.StatusCode/100 != 4 || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.address, resp.StatusCode, body)
		}
		if e := w.last(); e.Verdict != egress.Refused {
			t.Errorf("%+v", e)
		}
	}
	if n := g.asked(); n != 0 {
		t.Errorf("the host was asked %d times", n)
	}
	for _, address := range []string{g.gate + "/octo/other.git/info/refs?service=git-upload-pack", g.gate + "/octo/app.git/info/refs?service=git-receive-pack"} {
		if resp, body := w.request("GET", address, ""); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", address, resp.StatusCode, body)
		}
	}
	elsewhere := newGate(t, g, open, only(g.site, gitgate.Grant{Credentials: own.Credentials, Confined: true}))
	if resp, body := elsewhere.request("GET", g.gate+"/octo/app.git/info/refs?service=git-receive-pack", ""); resp.StatusCode != 403 || !strings.Contains(body, "about another repository") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	broken := newGate(t, g, open, func(string, gitgate.Site) (gitgate.Grant, error) {
		return gitgate.Grant{}, errors.New("the disk is gone")
	})
	if resp, body := broken.request("GET", g.gate+refs, ""); resp.StatusCode != 503 || strings.Contains(body, "disk") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// Requests that mean one thing here and another at the host.
func TestGateSmuggling(t *testing.T) {
	g := newGitHost(t, false)
	stranger := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "stranger %v", r.Header) })
	w := newWorld(t, open, near(g.at("git.example.com"), stranger.at("stranger.test")), func(c *egress.Config) {
		c.Git = func(_ context.Context, _ string, site gitgate.Site) (gitgate.Grant, error) {
			return only(g.site, gitgate.Grant{Credentials: gitgate.Credentials("gitea", gitToken, true)})("", site)
		}
	})
	inside := "/http/" + g.site.Host
	for _, c := range []struct{ line, header string }{
		{"GET " + inside + refs, "Host: " + gitgate.Name},
		{"GET http://" + gitgate.Name + ":8080" + inside + refs, ""},
		{"GET http://ada:pw@" + gitgate.Name + inside + refs, ""},
		{"GET https://" + gitgate.Name + inside + refs, ""},
		{"GET " + gateURL + "/http/ada:pw@" + g.site.Host + refs, ""},
		{"GET " + gateURL + inside + "/octo%2fapp.git/info/refs?service=git-upload-pack", ""},
		{"GET " + gateURL + inside + "/octo/x/..%2fapp.git/info/refs?service=git-upload-pack", ""},
		{"GET " + gateURL + inside + "/octo/../octo/app.git/info/refs?service=git-upload-pack", ""},
		{"GET " + gateURL + inside + "//octo/app.git/info/refs?service=git-upload-pack", ""},
		{"GET " + gateURL + inside + "/octo/app.git/info/refs?service=git-upload-pack#x", ""},
		{"GET " + gateURL + "/http/stranger.test@" + g.site.Host + refs, ""},
		{"GET " + gateURL + "/http/" + g.site.Host + "@stranger.test" + refs, ""},
		{"GET " + gateURL + inside + refs, "Transfer-Encoding: chunked\r\nContent-Length: 3"},
		{"GET " + gateURL + inside + refs, "Content-Length: 3\r\nContent-Length: 4"},
		{"CONNECT " + gitgate.Name + ":443", ""},
		{"CONNECT " + gitgate.Name + ":80", ""},
	} {
		header := c.header
		if header != "" {
			header += "\r\n"
		}
		resp, body := w.dial().send(c.line + " HTTP/1.1\r\n" + header + "Host: stranger.test\r\n\r\nabc").answer("GET")
		if resp.StatusCode != 400 {
			t.Errorf("%s: %d %s", c.line, resp.StatusCode, body)
		}
	}
	if n := g.asked(); n != 0 {
		t.Errorf("the host was asked %d times", n)
	}
	// The Host header counts for nothing, here as anywhere.
	resp, body := w.dial().send("GET " + stranger.at("stranger.test") + inside + refs + " HTTP/1.1\r\nHost: " + gitgate.Name + "\r\n\r\n").answer("GET")
	if resp.StatusCode != 200 || !strings.HasPrefix(body, "stranger") || strings.Contains(body, "Authorization") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, body := w.dial().send("GET " + gateURL + inside + refs + " HTTP/1.1\r\nHost: stranger.test\r\n\r\n").answer("GET"); resp.StatusCode != 200 || body != "refs of /octo/app.git/info/refs" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if r, _ := g.last(); r.Host != g.site.Host {
		t.Errorf("the host was asked for %s", r.Host)
	}
	// Without a gate there is no such name, and no name server hears of it.
	none := newWorld(t, open, nil)
	if code, text := none.get(gateURL + inside + refs); code != 400 || dns.times(gitgate.Name) != 0 {
		t.Errorf("%d %s", code, text)
	}
}
