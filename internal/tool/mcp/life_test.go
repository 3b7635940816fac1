package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/outbound"
)

// A server that fails is reported once for each try, and tried again later, longer
// and longer later.
func TestFailureAndRecovery(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			r, w := newRig(t), serve(t, kind, testServer())
			broken := func(rw http.ResponseWriter, _ *http.Request) bool {
				http.Error(rw, "go away", http.StatusForbidden)
				return true
			}
			w.on(broken)
			s := r.set(w.server("srv"))
			if got := s.Tools(t.Context()); len(got) != 0 {
				t.Errorf("%v", toolNames(got))
			}
			st := r.reported()
			if st.Name != "srv" || st.State != Failed || !strings.Contains(st.Error, "Forbidden") || !strings.HasSuffix(st.Error, ".") {
				t.Errorf("%+v", st)
			}
			tried := len(w.seen())
			s.Tools(t.Context()) // too early
			if n := len(w.seen()); n != tried {
				t.Errorf("%d requests after %d", n, tried)
			}
			r.pass(firstPause)
			s.Tools(t.Context()) // which waits no more for one that failed
			r.reported()
			tried = len(w.seen())
			r.pass(firstPause - time.Millisecond) // the second pause is at least as long
			s.Tools(t.Context())
			if n := len(w.seen()); n != tried {
				t.Errorf("%d requests after %d", n, tried)
			}
			w.on(nil)
			r.pass(lastPause)
			s.Tools(t.Context())
			if st := r.reported(); st.State != Ready || !slices.Equal(st.Tools, []string{"echo"}) || st.Error != "" {
				t.Errorf("%+v", st)
			}
			good(t, r.run(r.named(s, "echo"), echoArgs{"hello"}), "hello")
			if len(r.reports) != 0 {
				t.Errorf("reported without need: %+v", <-r.reports)
			}
		})
	}
}

func TestPause(t *testing.T) {
	for fails, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 9: lastPause, 1000: lastPause} {
		for range 100 {
			if got := pause(fails); got < want/2 || got > want {
				t.Errorf("after %d failures: %v", fails, got)
			}
		}
	}
}

// A slow server is waited for once. The others are not blocked, and its
// tools come when they come.
func TestSlow(t *testing.T) {
	r := newRig(t)
	fast, slow := serve(t, SHTTP, testServer()), serve(t, SHTTP, testServer())
	release, asked := make(chan struct{}), make(chan struct{}, 100)
	slow.on(func(http.ResponseWriter, *http.Request) bool {
		asked <- struct{}{}
		<-release
		return false
	})
	r.pool.remoteWait, r.pool.quietWait = 20*time.Millisecond, time.Hour
	report := func() Status { // of the slow one
		for {
			if st := r.reported(); st.Name == "slow" {
				return st
			}
		}
	}
	s := r.set(fast.server("fast"), slow.server("slow"))
	until(t, func() bool { return slices.Equal(toolNames(s.Tools(t.Context())), []string{"echo"}) }) // the fast one may not be so fast here
	<-asked
	srv := s.all()[1]
	until(t, func() bool { // no call waits any more
		srv.mu.Lock()
		defer srv.mu.Unlock()
		return srv.slow
	})
	if st := report(); st.State != Starting || !st.Late {
		t.Errorf("when it is no longer waited for: %+v", st)
	}
	if st := s.States(); st[0].State != Ready || st[1].State != Starting || st[1].Error != "" {
		t.Errorf("%+v", st)
	}
	bad(t, r.run(&foreign{server: srv, offer: offer{name: "echo"}}, nil), "not started yet")
	r.pool.remoteWait = time.Hour
	s.Tools(t.Context()) // does not wait, or this would never end
	close(release)
	<-srv.begin(false)
	if got := toolNames(s.Tools(t.Context())); !slices.Equal(got, []string{"echo", "slow_echo"}) {
		t.Errorf("%v", got)
	}
	if st := report(); st.State != Ready {
		t.Errorf("when it is ready: %+v", st)
	}
}

// A server that takes long to start is reported while it is waited for.
func TestWaitIsReported(t *testing.T) {
	r, slow := newRig(t), serve(t, SHTTP, testServer())
	release := make(chan struct{})
	slow.on(func(http.ResponseWriter, *http.Request) bool {
		<-release
		return false
	})
	r.pool.remoteWait, r.pool.quietWait = time.Hour, 0
	s, done := r.set(slow.server("slow")), make(chan []string)
	go func() { done <- toolNames(s.Tools(t.Context())) }()
	if st := r.reported(); st.State != Starting || st.Late {
		t.Errorf("%+v", st)
	}
	close(release)
	if got := <-done; !slices.Equal(got, []string{"echo"}) {
		t.Errorf("%v", got)
	}
	if len(r.reports) != 0 {
		t.Errorf("reported without need: %+v", <-r.reports)
	}
}

// An unused connection is closed, and comes back under the same names.
func TestIdle(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			r := newRig(t)
			a, b := serve(t, kind, testServer()), serve(t, kind, testServer())
			s := r.set(a.server("a"), b.server("b"))
			tools := s.Tools(t.Context())
			s.rest()
			s.work.Wait()
			for _, st := range s.States() {
				if st.State != Stopped || st.Error != "" || len(st.Tools) != 0 {
					t.Errorf("%+v", st)
				}
			}
			good(t, r.run(tools[1], echoArgs{"woken"}), "woken") // only the one that is needed
			if st := s.States(); st[0].State != Stopped || st[1].State != Ready || !slices.Equal(st[1].Tools, []string{"b_echo"}) {
				t.Errorf("%+v", st)
			}
			if got := toolNames(s.Tools(t.Context())); !slices.Equal(got, []string{"echo", "b_echo"}) {
				t.Errorf("%v", got)
			}
			r.pool.Forget("s1")
			bad(t, r.run(tools[0], echoArgs{"x"}), "not configured")
			if st := r.pool.States("s1"); st != nil {
				t.Errorf("%+v", st)
			}
		})
	}
}

// The timer itself, which is the same for all kinds.
func TestIdleTimer(t *testing.T) {
	w := serve(t, SHTTP, testServer())
	r := newRig(t)
	r.pool.idle = time.Millisecond
	s := r.set(w.server("a"))
	s.Tools(t.Context())
	until(t, func() bool { return s.States()[0].State == Stopped })
}

// A change of the configuration touches only what changed.
func TestChange(t *testing.T) {
	r := newRig(t)
	a, b := serve(t, SHTTP, testServer()), serve(t, SHTTP, testServer())
	s := r.set(a.server("a"))
	tools := s.Tools(t.Context())
	kept := s.all()[0]
	if again := r.set(a.server("a"), b.server("b")); again != s || again.all()[0] != kept {
		t.Error("it was made anew")
	}
	if got := toolNames(s.Tools(t.Context())); !slices.Equal(got, []string{"echo", "b_echo"}) {
		t.Errorf("%v", got)
	}
	good(t, r.run(tools[0], echoArgs{"same"}), "same")
	r.set(b.server("b"))
	bad(t, r.run(tools[0], echoArgs{"gone"}), "not configured")
	if got := toolNames(s.Tools(t.Context())); !slices.Equal(got, []string{"b_echo"}) {
		t.Errorf("%v", got)
	}
	changed := b.server("b")
	changed.APIKey = key("another-key")
	r.set(changed)
	s.Tools(t.Context())
	if h := b.seen(); h[len(h)-1].Get("S") != "another-key" {
		t.Errorf("%v", h[len(h)-1])
	}
	r.pool.Close()
	if got := r.set(a.server("a")).Tools(t.Context()); got != nil {
		t.Errorf("%v", toolNames(got))
	}
}

// A call under way ends with its session, and its outcome is unknown.
func TestForgetDuringACall(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := testServer()
			begun, release := make(chan struct{}), make(chan struct{})
			handle(srv, "hang", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				close(begun)
				<-release // however little it cares
				return text("too late"), nil
			})
			r, w := newRig(t), serve(t, kind, srv)
			t.Cleanup(func() { close(release) })
			hang := r.named(r.set(w.server("srv")), "hang")
			go func() { <-begun; r.pool.Forget("s1") }()
			unknown(t, r.run(hang, nil))
		})
	}
}

// The addresses that a client may not dial are refused to tool servers too, also
// when a server sends us there.
func TestAddresses(t *testing.T) {
	inside := serve(t, SHTTP, testServer())
	away := httptest.NewServer(http.RedirectHandler(inside.url, http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	port := netip.MustParseAddrPort(strings.TrimPrefix(away.URL, "http://")).Port()
	r := newRig(t)
	r.client = outbound.NewClient(outbound.Policy{Allow: []outbound.HostPort{{Host: "127.0.0.1", Port: port}}}, 0)
	got := Probe(t.Context(), Config{Client: r.client, Servers: []Server{
		{Kind: SHTTP, Name: "direct", URL: inside.url}, {Kind: SSE, Name: "direct-sse", URL: inside.url},
		{Kind: SHTTP, Name: "sent", URL: away.URL}, {Kind: SSE, Name: "sent-sse", URL: away.URL},
		{Kind: SHTTP, Name: "metadata", URL: "http://169.254.169.254/latest"}}})
	for _, st := range got {
		if st.State != Failed || !strings.HasPrefix(st.Error, "Refused to connect") {
			t.Errorf("%+v", st)
		}
	}
	if n := len(inside.seen()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// Keys go to the address they are for, and nowhere else.
func TestKeysStayHome(t *testing.T) {
	const canary = "canary-key-7391"
	stranger := serve(t, SHTTP, testServer())
	redirect := httptest.NewServer(http.RedirectHandler(stranger.url, http.StatusTemporaryRedirect))
	t.Cleanup(redirect.Close)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, "event: endpoint\ndata: %s\n\n", stranger.url)
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(elsewhere.Close)
	r := newRig(t)
	s := r.set(Server{Kind: SHTTP, Name: "redirect", URL: redirect.URL, APIKey: key(canary)}, Server{Kind: SSE, Name: "elsewhere", URL: elsewhere.URL, APIKey: key(canary)})
	s.Tools(t.Context())
	if st := s.States()[1]; st.State != Failed || !strings.Contains(st.Error, "another host") {
		t.Errorf("%+v", st)
	}
	if st := s.States()[0]; st.State != Ready {
		t.Errorf("%+v", st)
	}
	for _, h := range stranger.seen() {
		if strings.Contains(fmt.Sprint(h), canary) || h.Get("X-OpenHands-ServerConversation-ID") != "" {
			t.Errorf("%v", h)
		}
	}
}

// Errors are for people, and tell them no secrets.
func TestErrorsAreClean(t *testing.T) {
	const canary = "canary-7391"
	echoing := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"%s is wrong for %s"}}`, r.Header.Get("S"), r.URL)
	}))
	t.Cleanup(echoing.Close)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	bare := strings.TrimPrefix(echoing.URL, "http://")
	r := newRig(t)
	var servers []Server
	for i, base := range []string{"http://user:" + canary + "-p@" + bare, strings.Replace(dead.URL, "http://", "http://user:"+canary+"@", 1), "http://nowhere.invalid"} {
		for _, kind := range kinds {
			servers = append(servers, Server{Kind: kind, Name: fmt.Sprint(kind, i), APIKey: key(canary + "-key"), URL: base + "/x?token=" + url.QueryEscape(canary+"-t")})
		}
	}
	for _, st := range Probe(t.Context(), Config{Client: r.client, Servers: servers}) {
		if st.State != Failed || st.Error == "" || strings.Contains(fmt.Sprint(st), canary) {
			t.Errorf("%+v", st)
		}
	}
}

// Probe tries what can be tried.
func TestProbe(t *testing.T) {
	r, w := newRig(t), serve(t, SSE, testServer())
	var strange atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		strange.Add(1)
		_, _ = rw.Write([]byte("<html>a web page</html>"))
	}))
	t.Cleanup(web.Close)
	got := Probe(t.Context(), Config{Client: r.client, Servers: []Server{w.server("good"), {Kind: SHTTP, Name: "page", URL: web.URL},
		{Kind: SSE, Name: "page2", URL: web.URL}, {Kind: Stdio, Name: "program", Command: "/bin/false"}}})
	if st := got[0].Wire(); !st.OK || st.Error != nil || !slices.Equal(st.Tools, []string{"echo"}) || st.Kind != "sse" || st.State != "ready" {
		t.Errorf("%+v", st)
	}
	for _, st := range got[1:3] {
		if w := st.Wire(); w.OK || w.Error == nil || w.Tools == nil {
			t.Errorf("%+v", w)
		}
	}
	if st := got[3]; st.State != Failed || !strings.Contains(st.Error, "cannot be tested here") || st.Address != "/bin/false" {
		t.Errorf("%+v", st)
	}
	if strange.Load() == 0 {
		t.Error("it was not asked")
	}
	if st := Probe(t.Context(), Config{Servers: []Server{w.server("good")}}); st[0].State != Failed {
		t.Errorf("connected without a client: %+v", st)
	}
}
