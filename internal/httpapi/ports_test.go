package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"deckhand/api"
	"deckhand/internal/httpapi/forward"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

const applicationFlag = "DECKHAND_TEST_APPLICATION"

// TestApplication is no test: in a sandbox it is the application whose port the
// tests reach. It writes the port into the file that its variable names.
func TestApplication(t *testing.T) {
	file := os.Getenv(applicationFlag)
	if file == "" {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		w.Header().Add("Set-Cookie", "theme=dark")
		w.Header().Add("Set-Cookie", rest.CookieName+"=forged; Domain=localhost")
		w.Header().Set("X-Frame-Options", "DENY")
		w.WriteHeader(http.StatusTeapot)
		_ = json.NewEncoder(w).Encode(seen{Method: r.Method, URI: r.RequestURI, Host: r.Host, Header: r.Header, Body: n, Whole: err == nil})
	})
	proceed := make(chan struct{})
	mux.HandleFunc("/proceed", func(http.ResponseWriter, *http.Request) { proceed <- struct{}{} })
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; ; i++ {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-proceed:
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("/socket", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil) // the origin must be that of the host
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, b, err := c.Read(r.Context())
			if err != nil {
				return
			}
			_ = c.Write(r.Context(), kind, append([]byte("echo "), b...))
		}
	})
	mux.HandleFunc("/broken", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := os.WriteFile(file, []byte(port+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = http.Serve(l, mux)
}

// seen is what the application was asked.
type seen struct {
	Method, URI, Host string
	Header            http.Header
	Body              int64
	Whole             bool
}

// harbour is the API with an application that listens in a sandbox.
type harbour struct {
	*sandboxRig
	id   string
	box  *sandbox.Sandbox
	port int
	// at is the application's address, and browser reaches it and us.
	at      string
	browser *http.Client
}

func newHarbour(t *testing.T) *harbour {
	t.Helper()
	h := &harbour{sandboxRig: newSandboxRig(t, tune{config: func(c *Config) { c.Forwarding = forward.Forwarding{Key: [32]byte{1}, Domain: rest.LocalDomain} }})}
	server := strings.TrimPrefix(h.base, "http://")
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server) // as browsers do with names below localhost
	}}
	h.browser = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	h.id, h.box = h.begun()
	h.port = h.application(h.box)
	h.at = h.hosts(h.id)[h.port]
	if h.at == "" {
		t.Fatalf("port %d has no web host", h.port)
	}
	return h
}

// application starts one in a sandbox, and returns its port.
func (h *harbour) application(box *sandbox.Sandbox) int {
	h.t.Helper()
	program, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	// A pipe has no end until the application opened it: no polling is needed.
	res, err := box.Exec(h.t.Context(), sandbox.Command{ID: "app-" + strconv.Itoa(len(program)), Text: fmt.Sprintf(
		"mkfifo port && (%s=port '%s' -test.run='^TestApplication$' >log 2>&1 &) && cat port", applicationFlag, program)}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(res.Output)))
	if err != nil {
		h.t.Fatalf("%v: %s", err, res.Output)
	}
	return port
}

// hosts are the web hosts of a conversation, by port.
func (h *harbour) hosts(id string) map[int]string {
	h.t.Helper()
	out := map[int]string{}
	for at, port := range decoded[api.WebHosts](h.t, h.do("GET", "/api/conversations/"+id+"/web-hosts", "").want(h.t, 200)).Hosts {
		out[port] = at
	}
	return out
}

// visit asks for an address the way a browser does.
func (h *harbour) visit(method, at string, body io.Reader, header ...string) (*http.Response, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, at, body)
	if err != nil {
		h.t.Fatal(err)
	}
	setHeader(req, header)
	res, err := h.browser.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res, string(b)
}

func (h *harbour) expect(at string, status int, part string) {
	h.t.Helper()
	if res, body := h.visit("GET", at, nil); res.StatusCode != status || !strings.Contains(body, part) {
		h.t.Errorf("%s: %d %s, want %d with %q", at, res.StatusCode, body, status, part)
	}
}

// TestForwarded has one application for all that leave it as it is. The last one
// spends what may be tried.
func TestForwarded(t *testing.T) {
	h := newHarbour(t)
	for _, c := range []struct {
		name string
		test func(t *testing.T, h *harbour)
	}{
		{"request", forwardedRequest}, {"page", forwardedPageCannotCallUs}, {"log", forwardedRequestInTheLog}, {"loop", forwardedToOurselves}, {"names", forwardedNames},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, sandboxRig, mine, browser := *h.rig, *h.sandboxRig, *h, *h.browser
			r.t = t
			sandboxRig.rig, mine.sandboxRig, mine.browser = &r, &sandboxRig, &browser
			c.test(t, &mine)
		})
	}
}

func TestWebHosts(t *testing.T) {
	h := newHarbour(t)
	u, err := url.Parse(h.at)
	if err != nil || u.Scheme != "http" || !strings.HasPrefix(h.base[len("http://127.0.0.1"):], ":"+u.Port()) || !strings.HasSuffix(u.Hostname(), ".localhost") {
		t.Errorf("the address is %s", h.at)
	}
	path := "/api/conversations/" + h.id + "/web-hosts"
	h.rig.as("bob", "GET", path, "").want(t, 404)
	if a := h.do("GET", path, "", "Host", "192.0.2.7:3000").want(t, 200, `"hosts":{}`); !strings.Contains(a.body, "--ports-domain") {
		t.Errorf("a client elsewhere gets %s", a.body)
	}
	stopped := h.stopped()
	if a := h.do("GET", "/api/conversations/"+stopped+"/web-hosts", ""); a.status != 200 || a.body != `{"hosts":{}}` {
		t.Errorf("of a stopped conversation: %d %s", a.status, a.body)
	}
	h.asleep(stopped)
}

// The operator of a shared server gives the ports a domain.
func TestWebHostsBelowADomain(t *testing.T) {
	h := newSandboxRig(t, tune{config: func(c *Config) {
		c.Forwarding = forward.Forwarding{Key: [32]byte{1}, Domain: "ports.example.org", Scheme: "https", Port: "8443"}
	}})
	id, _ := h.begun()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the sandbox of this test shares our network
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	want := "https://" + h.api.Forwarding.Label(session.ID(id), port) + ".ports.example.org:8443"
	got := decoded[api.WebHosts](t, h.do("GET", "/api/conversations/"+id+"/web-hosts", "", "Host", "192.0.2.7").want(t, 200))
	if got.Hosts[want] != port {
		t.Errorf("%s is not among %v", want, got)
	}
	none := newSandboxRig(t)
	id, _ = none.begun()
	none.do("GET", "/api/conversations/"+id+"/web-hosts", "").want(t, 200, `"hosts":{}`, `"hint":`)
}

// A legacy front end asks for the hosts once, before anything listens, and then looks
// from its page whether something answers.
func TestWebHostsOfALegacyFrontEnd(t *testing.T) {
	h := newSandboxRig(t, withFrontEnd(t, frontEndFolder(t)), tune{config: func(c *Config) { c.Forwarding = forward.Forwarding{Key: [32]byte{1}, Domain: rest.LocalDomain} }})
	h.settle("ada")
	id := h.create(`{}`)
	path := "/api/conversations/" + id + "/web-hosts"
	first := h.do("GET", path, "").want(t, 200)
	ports := v0.AppPorts(session.ID(id))
	if got := decoded[api.WebHosts](t, first).Hosts; len(got) != 2 || len(ports) != 2 {
		t.Errorf("%v", got)
	} else {
		for at, port := range got {
			if !slices.Contains(ports, port) || !strings.Contains(at, ".localhost:") {
				t.Errorf("%s leads to port %d", at, port)
			}
		}
	}
	if again := h.do("GET", path, "").want(t, 200); again.body != first.body {
		t.Errorf("%s, then %s", first.body, again.body)
	}
	_, at, _ := net.SplitHostPort(strings.TrimPrefix(h.base, "http://"))
	for origin, want := range map[string]string{
		"http://localhost:" + at: "http://localhost:" + at, "http://127.0.0.1:" + at: "http://127.0.0.1:" + at,
		"http://localhost:1": "", "http://evil.example": "", "": "",
	} {
		res := &http.Response{Header: http.Header{}, Request: &http.Request{Host: "p1-x.localhost:" + at, Header: http.Header{}}}
		if origin != "" {
			res.Request.Header.Set("Origin", origin)
		}
		if err := h.api.ports.Incoming(res); err != nil || res.Header.Get("Access-Control-Allow-Origin") != want {
			t.Errorf("%q may read: %v %v", origin, res.Header, err)
		}
	}
}

func forwardedRequest(t *testing.T, h *harbour) {
	const size = 20 << 20
	key := h.keys["ada"]
	res, body := h.visit("PATCH", h.at+"/a%2Fb/c?x=1;y=%zz", io.LimitReader(zeros{}, size), "X-Session-API-Key", key, "Authorization", "Bearer "+key, "X-Copy", "is "+key,
		"Cookie", `a="b c"; `+rest.CookieName+`=v1.secret; d=e`, "X-Forwarded-For", "192.0.2.1", "Sec-Fetch-Site", "cross-site", "X-App", "yes", "Origin", "https://elsewhere.example")
	var got seen
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if res.StatusCode != http.StatusTeapot || got.Method != "PATCH" || got.URI != "/a%2Fb/c?x=1;y=%zz" || got.Body != size || !got.Whole || "http://"+got.Host != h.at {
		t.Errorf("the application answered %d and saw %+v", res.StatusCode, got)
	}
	for name, want := range map[string]string{
		"X-Session-Api-Key": "", "Authorization": "", "X-Copy": "", "Cookie": `a="b c"; d=e`, "X-App": "yes", "Origin": "https://elsewhere.example", "X-Forwarded-For": "",
		"X-Forwarded-Host": got.Host, "X-Forwarded-Proto": "http",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("the application saw %s: %q, want %q", name, got.Header.Get(name), want)
		}
	}
	if strings.Contains(body, key) || strings.Contains(body, "v1.secret") {
		t.Error("a secret of the server reached the application")
	}
	_, at, _ := strings.Cut(h.base, "http://127.0.0.1")
	if want := "frame-ancestors 'self' localhost" + at + " 127.0.0.1" + at; res.Header.Get("Content-Security-Policy") != want {
		t.Errorf("pages may be framed by %q, want %q", res.Header.Get("Content-Security-Policy"), want)
	}
	if c := res.Header["Set-Cookie"]; len(c) != 1 || c[0] != "theme=dark" {
		t.Errorf("cookies are set: %q", c)
	}
	if res.Header.Get("Referrer-Policy") != "same-origin" || res.Header.Get("Cache-Control") != "" || res.Header.Get("X-Request-Id") != "" {
		t.Errorf("the headers of the answer are %v", res.Header)
	}
	// An application may use one of our headers for its own keys.
	_, body = h.visit("GET", h.at, nil, "Authorization", "Bearer its-own")
	if !strings.Contains(body, "its-own") {
		t.Error("a key of the application's own is withheld from it")
	}
}

// zeros never end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestForwardedStream(t *testing.T) {
	h := newHarbour(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", h.at+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for i := range 3 { // each is read before the next is made
		if !lines.Scan() || lines.Text() != "data: "+strconv.Itoa(i) {
			t.Fatalf("event %d: %q %v", i, lines.Text(), lines.Err())
		}
		lines.Scan()
		h.expect(h.at+"/proceed", 200, "")
	}
	if n := h.api.Pending(); n != 0 {
		t.Errorf("%d requests are counted as pending", n)
	}
	h.api.Close()
	for lines.Scan() { // ends, since the server stops
	}
}

func TestForwardedSocket(t *testing.T) {
	h := newHarbour(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dial := func(origin string) (*websocket.Conn, error) {
		c, _, err := websocket.Dial(ctx, h.at+"/socket", &websocket.DialOptions{HTTPClient: h.browser, HTTPHeader: http.Header{"Origin": {origin}}})
		return c, err
	}
	c, err := dial(h.at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	for _, text := range []string{"one", strings.Repeat("x", 20<<10)} {
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, b, err := c.Read(ctx); err != nil || string(b) != "echo "+text {
			t.Fatalf("%.40q %v", b, err)
		}
	}
	if _, err := dial("http://elsewhere.example"); err == nil {
		t.Error("the application's own check of the origin does not hold")
	}
	h.api.Close()
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("the socket outlives the server: %v", err)
	}
}

func forwardedNames(t *testing.T, h *harbour) {
	u, _ := url.Parse(h.at)
	label, domain, _ := strings.Cut(u.Host, ".")
	number, mac, _ := strings.Cut(label, "-")
	other, _ := h.begun()
	flip := map[bool]string{true: "b", false: "a"}[mac[0] == 'a'] + mac[1:]
	for name, status := range map[string]int{
		label: http.StatusTeapot, strings.ToUpper(label): http.StatusTeapot,
		number + "-" + flip: 404, number + "-" + mac[1:]: 404, number: 404, "p" + label: 404, "x." + label: 404, "p0-" + mac: 404, "p080-" + mac: 404, "p99999-" + mac: 404,
		"p" + strconv.Itoa(h.port+1) + "-" + mac:                                404, // another port
		h.api.Forwarding.Label(session.ID(h.id+"x"), h.port):                    404, // of no conversation
		h.api.Forwarding.Label(session.ID(other), 1):                            502, // nothing listens there
		(&forward.Forwarding{Key: [32]byte{2}}).Label(session.ID(h.id), h.port): 404, // of another server
	} {
		res, body := h.visit("GET", "http://"+name+"."+domain+"/api/me", nil, "X-Session-API-Key", h.keys["ada"])
		if res.StatusCode != status || strings.Contains(body, `"user":"ada"`) {
			t.Errorf("%s: %d %s, want %d", name, res.StatusCode, body, status)
		}
	}
	h.expect(h.at+"/broken", 502, "closed the connection")
	for range 40 {
		res, _ := h.visit("GET", "http://"+number+"-"+flip+"."+domain, nil)
		if res.StatusCode == http.StatusTooManyRequests {
			h.expect(h.at, http.StatusTeapot, "") // who knows a name is not slowed down
			return
		}
	}
	t.Error("names can be tried without end")
}

// A name that the operator allowed is ours, also below localhost.
func TestForwardedNamesAreNotOurs(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) {
		c.Access.Hosts, c.Forwarding = []string{"deckhand.localhost"}, forward.Forwarding{Domain: rest.LocalDomain}
	}})
	for host, status := range map[string]int{"deckhand.localhost": 200, "localhost:3000": 200, "127.0.0.1": 200, "evil.localhost": 404, "p1-aaaaaaaaaaaaaaaaaaaaaaaaaa.localhost": 404, "localhost.evil.test": 421} {
		if a := r.onHost(host, "/alive"); a.status != status {
			t.Errorf("Host %s: %d %s, want %d", host, a.status, a.body, status)
		}
	}
}

func TestForwardedPortGoesWithItsSandbox(t *testing.T) {
	h := newHarbour(t)
	h.expect(h.at, http.StatusTeapot, "")
	// Another server finds the name again, with nothing but the key and the workspaces.
	restarted := New(h.api.Config)
	defer restarted.Close()
	h.api.ports.Forget(strings.TrimPrefix(strings.SplitN(h.at, ".", 2)[0], "http://"))
	if id, err := restarted.ports.Find(h.request("GET", "/", nil), h.api.Forwarding.Label(session.ID(h.id), h.port), h.port); err != nil || string(id) != h.id {
		t.Errorf("after a restart the name leads to %q, %v", id, err)
	}
	h.stop(h.id, h.box)
	h.expect(h.at, http.StatusBadGateway, "is not running")
	h.asleep(h.id)
	h.do("DELETE", "/api/conversations/"+h.id, "").want(t, 200)
	h.expect(h.at, http.StatusNotFound, "deleted")
}

// What runs in a sandbox may read everything that its own pages can; so they can
// do nothing here, whatever the browser sends along.
func forwardedPageCannotCallUs(t *testing.T, h *harbour) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	h.browser.Jar = jar
	if res, body := h.visit("POST", h.base+"/api/login", strings.NewReader(`{"key":"`+h.keys["ada"]+`"}`), "Content-Type", "application/json", "Origin", h.base); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	if res, _ := h.visit("GET", h.base+"/api/me", nil, "Origin", h.base, "Sec-Fetch-Site", "same-origin"); res.StatusCode != 200 {
		t.Fatalf("our own page gets %d", res.StatusCode)
	}
	for name, header := range map[string][]string{
		"fetch": {"Origin", h.at, "Sec-Fetch-Site", "cross-site"}, "an old browser": {"Origin", h.at}, "an image": {"Sec-Fetch-Site", "same-site"}, "a frame without an origin": {"Origin", "null"},
	} {
		for _, method := range []string{"GET", "POST"} {
			if res, body := h.visit(method, h.base+"/api/settings", strings.NewReader(`{}`), append(header, "Content-Type", "application/json")...); res.StatusCode != 403 && res.StatusCode != 401 {
				t.Errorf("%s, %s: %d %s", name, method, res.StatusCode, body)
			}
		}
	}
	_, body := h.visit("GET", h.at, nil)
	if strings.Contains(body, rest.CookieName) {
		t.Error("the browser's login reached the application")
	}
}

func forwardedRequestInTheLog(t *testing.T, h *harbour) {
	h.expect(h.at+"/path-secret?query-secret", http.StatusTeapot, "")
	h.expect(h.at+"/proceed-not", http.StatusTeapot, "")
	logs := h.logs.String()
	for _, secret := range []string{"path-secret", "query-secret", strings.Split(h.at, "-")[1][:26]} {
		if strings.Contains(logs, secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
	if !strings.Contains(logs, `"port":`+strconv.Itoa(h.port)) || !strings.Contains(logs, h.id) {
		t.Error("the request is not in the log")
	}
}

// A sandbox that shares our network has our own port too; who visits it does not
// turn in circles.
func forwardedToOurselves(t *testing.T, h *harbour) {
	u, _ := url.Parse(h.base)
	port, _ := strconv.Atoi(u.Port())
	h.expect(h.hosts(h.id)[port], http.StatusLoopDetected, "belongs to Deckhand")
}
