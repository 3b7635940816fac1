package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// server counts the connections it is sent, so that a test can say that there were none.
type server struct {
	*httptest.Server
	conns atomic.Int64
	port  uint16
}

func newServer(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := &server{Server: httptest.NewUnstartedServer(h)}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	s.port = uint16(s.Listener.Addr().(*net.TCPAddr).Port)
	return s
}

func (s *server) at(host string) string {
	return "http://" + net.JoinHostPort(host, strconv.Itoa(int(s.port))) + "/"
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

// get returns the status, and closes everything.
func get(t *testing.T, c *http.Client, url string) (int, error) {
	t.Helper()
	defer c.CloseIdleConnections()
	resp, err := c.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, nil
}

func reaches(t *testing.T, c *http.Client, url string) {
	t.Helper()
	if status, err := get(t, c, url); err != nil || status != 200 {
		t.Errorf("GET %s: %d, %v", url, status, err)
	}
}

func isBlocked(t *testing.T, c *http.Client, url string) *BlockedError {
	t.Helper()
	_, err := get(t, c, url)
	var blocked *BlockedError
	if !errors.As(err, &blocked) {
		t.Errorf("GET %s: got error %v, want a BlockedError", url, err)
		return &BlockedError{}
	}
	return blocked
}

func TestClientBlocksLoopback(t *testing.T) {
	s := newServer(t, hello)
	c := NewClient(Policy{}, time.Minute)
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "::ffff:127.0.0.1", "::ffff:7f00:1"} {
		isBlocked(t, c, s.at(host))
	}
	if n := s.conns.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestClientAllows(t *testing.T) {
	s := newServer(t, hello)
	reaches(t, NewClient(Policy{AllowAllPrivate: true}, time.Minute), s.at("127.0.0.1"))
	byAddress := NewClient(Policy{Allow: []HostPort{{"127.0.0.1", s.port}}}, time.Minute)
	reaches(t, byAddress, s.at("127.0.0.1"))
	isBlocked(t, byAddress, s.at("localhost"))
	isBlocked(t, NewClient(Policy{Allow: []HostPort{{"127.0.0.1", s.port - 1}}}, time.Minute), s.at("127.0.0.1"))
}

func TestClientAllowsByName(t *testing.T) {
	s := newServer(t, hello)
	resolver, _ := newResolver(t, map[string][]netip.Addr{
		"llm.test":   {netip.MustParseAddr("127.0.0.1")},
		"other.test": {netip.MustParseAddr("127.0.0.1")},
	})
	policy := Policy{Allow: []HostPort{{"llm.test", s.port}}}
	c := newClient(policy, time.Minute, resolver)
	reaches(t, c, s.at("llm.test"))
	reaches(t, c, s.at("LLM.test"))
	isBlocked(t, c, s.at("other.test"))
	// Not dialled here: a mistake must not send anything to the real one.
	if (dialer{policy, resolver}).control(HostPort{"llm.test", s.port}, "169.254.169.254:80") == nil {
		t.Error("an allowed name reaches the metadata service")
	}
}

// Every address here is refused before a socket is made. The context is over, so that a mistake sends nothing either.
func TestMetadataIsNeverDialled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, host := range []string{
		"169.254.169.254", "[fe80::1%lo]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]",
		"[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "100.100.100.200",
	} {
		_, err := Policy{AllowAllPrivate: true}.DialContext(ctx, "tcp", host+":80")
		var blocked *BlockedError
		if !errors.As(err, &blocked) || !blocked.Never {
			t.Errorf("%s: got error %v", host, err)
		}
	}
}

// Names that only look like loopback, and spellings that some resolvers read as addresses.
func TestTrickyHosts(t *testing.T) {
	private := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	hosts := []string{"127.evil.com", "localhost.evil.com", "127.1", "0177.0.0.1", "2130706433.test", "0x7f.0.0.1"}
	answers := map[string][]netip.Addr{}
	for _, h := range hosts {
		answers[h] = private
	}
	resolver, _ := newResolver(t, answers)
	s := newServer(t, hello)
	c := newClient(Policy{Allow: []HostPort{{"localhost", s.port}, {"127.0.0.1", s.port}}}, time.Minute, resolver)
	for _, host := range hosts {
		if _, err := get(t, c, s.at(host)); err == nil {
			t.Errorf("%s is reached", host)
		}
	}
	if n := s.conns.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// A name is looked up once to be judged and once to be dialled, and says something else the second time.
func TestRebinding(t *testing.T) {
	s := newServer(t, hello)
	publicAddr := netip.MustParseAddr("93.184.216.34")
	resolver, dns := newResolver(t, map[string][]netip.Addr{"rebind.test": {publicAddr, netip.MustParseAddr("127.0.0.1")}})
	asked := HostPort{"rebind.test", s.port}
	d := dialer{resolver: resolver}

	first, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.test")
	if err != nil || len(first) != 1 || first[0].Unmap() != publicAddr {
		t.Fatalf("first answer: %v, %v", first, err)
	}
	if err := d.control(asked, netip.AddrPortFrom(publicAddr, s.port).String()); err != nil {
		t.Fatalf("the first answer would be refused: %v", err)
	}
	blocked := isBlocked(t, newClient(Policy{}, time.Minute, resolver), s.at("rebind.test"))
	if blocked.Addr != netip.MustParseAddr("127.0.0.1") || blocked.Asked != asked {
		t.Errorf("got %+v", blocked)
	}
	if n := s.conns.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if n := dns.times("rebind.test"); n != 2 {
		t.Errorf("the name was looked up %d times, want twice", n)
	}
}

func TestRedirectIsChecked(t *testing.T) {
	inner := newServer(t, hello)
	for _, target := range []string{inner.at("127.0.0.1"), inner.at("localhost"), "http://169.254.169.254/", "http://10.0.0.1/"} {
		outer := newServer(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
		isBlocked(t, NewClient(Policy{Allow: []HostPort{{"127.0.0.1", outer.port}}}, time.Minute), outer.URL)
	}
	if n := inner.conns.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestRedirectsAreFew(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if n > 0 {
			http.Redirect(w, r, fmt.Sprint("/?n=", n-1), http.StatusFound)
		}
	})
	c := NewClient(Policy{AllowAllPrivate: true}, time.Minute)
	reaches(t, c, s.URL+"/?n=10")
	if _, err := get(t, c, s.URL+"/?n=11"); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("got error %v", err)
	}
}

// Credentials go to the origin they were meant for: not to another host, not to a subdomain, not to another port, and
// not back to the first origin after a detour.
func TestRedirectDropsCredentials(t *testing.T) {
	secrets := []string{"Authorization", "Cookie", "X-Api-Key", "X-Goog-Api-Key", "X-Session-Api-Key", "Referer"}
	var seen http.Header
	var hops []string
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if len(hops) > 0 {
			next := hops[0]
			hops = hops[1:]
			http.Redirect(w, r, next, http.StatusTemporaryRedirect)
			return
		}
		seen = r.Header.Clone()
	})
	other := newServer(t, func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() })
	loop := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	resolver, _ := newResolver(t, map[string][]netip.Addr{"a.test": loop, "b.test": loop, "sub.a.test": loop})
	c := newClient(Policy{AllowAllPrivate: true}, time.Minute, resolver)
	defer c.CloseIdleConnections()
	for _, test := range []struct {
		name string
		hops []string
		kept bool
	}{
		{"same origin", []string{s.at("a.test")}, true},
		{"other host", []string{s.at("b.test")}, false},
		{"subdomain", []string{s.at("sub.a.test")}, false},
		{"other port", []string{other.at("a.test")}, false},
		{"there and back", []string{s.at("b.test"), s.at("a.test")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			hops = test.hops
			req, err := http.NewRequestWithContext(t.Context(), "POST", s.at("a.test")+"?key=secret", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range secrets {
				req.Header.Set(h, "secret")
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			for _, h := range secrets {
				if (seen.Get(h) != "") != test.kept {
					t.Errorf("%s arrived as %q", h, seen.Get(h))
				}
			}
			if seen.Get("Content-Type") != "application/json" {
				t.Error("the content type was lost")
			}
		})
	}
}

func TestSchemeIsPartOfTheOrigin(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"https://a.test/x", "https://A.test:443/y", true},
		{"http://a.test", "http://a.test:80", true},
		{"https://a.test", "http://a.test", false},
		{"https://a.test", "http://a.test:443", false},
		{"https://[::1]:1", "https://[::1]:1/x", true},
	} {
		a, b := httptest.NewRequest("GET", test.a, nil), httptest.NewRequest("GET", test.b, nil)
		if got := Origin(a.URL) == Origin(b.URL); got != test.same {
			t.Errorf("%s and %s: same is %v, want %v", test.a, test.b, got, test.same)
		}
	}
}

func TestProxiesInTheEnvironmentAreIgnored(t *testing.T) {
	proxy := newServer(t, hello)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	isBlocked(t, NewClient(Policy{}, time.Minute), "http://10.0.0.1/")
	if NewTransport(Policy{}).Proxy != nil || proxy.conns.Load() != 0 {
		t.Error("the proxy was used")
	}
}

func TestDialRefusesOddThings(t *testing.T) {
	p := Policy{AllowAllPrivate: true}
	for _, test := range [][2]string{
		{"udp", "127.0.0.1:53"}, {"unix", "/run/docker.sock"}, {"tcp", ":80"}, {"tcp", "127.0.0.1"},
		{"tcp", "127.0.0.1:http"}, {"tcp", "127.0.0.1:0"},
	} {
		if conn, err := p.DialContext(t.Context(), test[0], test[1]); err == nil {
			conn.Close()
			t.Errorf("%v was dialled", test)
		}
	}
	if err := (dialer{policy: p}).control(HostPort{"a", 1}, "nonsense"); err == nil {
		t.Error("what is no address may be dialled")
	}
	_, err := get(t, NewClient(p, time.Minute), "file:///etc/passwd")
	var urlErr *url.Error
	if !errors.As(err, &urlErr) {
		t.Errorf("file URL: got error %v", err)
	}
}

// What users read of a failure does not describe the network that it happened in.
func TestErrorsNameNoAddresses(t *testing.T) {
	broken := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		c.(*net.TCPConn).SetLinger(0) // a reset
		c.Close()
	})
	gone := newServer(t, hello)
	gone.Close()
	resolver, _ := newResolver(t, map[string][]netip.Addr{"llm.test": {netip.MustParseAddr("127.0.0.1")}})
	client := newClient(Policy{Allow: []HostPort{{"llm.test", broken.port}, {"llm.test", gone.port}}}, time.Minute, resolver)
	dead := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Addr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 53), Port: 53}, Err: errors.New("no route")}
	}}
	for _, test := range []struct {
		client *http.Client
		url    string
	}{
		{client, gone.at("llm.test")},
		{client, broken.at("llm.test")},
		{client, "http://llm.test:1/"}, // not permitted
		{client, "http://missing.test/"},
		{newClient(Policy{}, time.Minute, dead), "http://missing.test/"},
	} {
		_, err := get(t, test.client, test.url)
		if err == nil || strings.Contains(err.Error(), "127.0.0.") || strings.Contains(err.Error(), ":53") {
			t.Errorf("%s: %v", test.url, err)
		}
	}
	_, err := get(t, client, gone.at("llm.test"))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the cause is lost: %v", err)
	}
	var dns *net.DNSError
	if _, err := get(t, client, "http://missing.test/"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("the cause is lost: %v", err)
	}
}
