package egress_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox/egress"
)

// skip says loudly what was not tested. Where everything must be, it is a failure.
func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED: " + why)
}

// A name says something else each time it is asked.
func TestRebinding(t *testing.T) {
	o := newOrigin(t, hello)
	w := newWorld(t, open, []string{fmt.Sprint("allowed.test:", o.port)})
	dns.set("rebind.test", "93.184.216.34", "127.0.0.1")
	if _, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip4", "rebind.test"); err != nil {
		t.Fatal(err)
	}
	dns.set("mixed.test", "127.0.0.1 ::1")
	dns.set("mapped.test", "::ffff:127.0.0.1")
	dns.set("metadata.test", "169.254.169.254")
	dns.set("allowed.test", "169.254.169.254") // an exception is not for those
	for _, name := range []string{"rebind.test", "mixed.test", "mapped.test", "metadata.test", "allowed.test", "localhost"} {
		addr := fmt.Sprintf("%s:%d", name, o.port)
		status, body := w.get("http://" + addr)
		if status != 403 || !strings.Contains(body, "deckhand: "+addr+" has a ") || strings.Contains(body, "127.0.0.1") || strings.Contains(body, "169.254") {
			t.Errorf("GET %s: %d, %q", addr, status, body)
		}
		w.recorded(w.newest("GET", name), "GET", name, egress.Refused, "refused to connect to "+name+": ")
		if reason := w.newest("GET", name).Reason; strings.Contains(reason, "127.0.0.1") || strings.Contains(reason, "169.254") {
			t.Errorf("the ledger names the address: %s", reason)
		}
		if resp, body := w.dial().send("CONNECT " + addr + " HTTP/1.1\r\nHost: x\r\n\r\n").answer("CONNECT"); resp.StatusCode != 403 {
			t.Errorf("CONNECT %s: %s, %q", addr, resp.Status, body)
		}
	}
	if n := o.conns.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// Each hop of a redirect is a new request to the proxy.
func TestRedirect(t *testing.T) {
	inner := newOrigin(t, hello)
	outer := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprintf("http://127.0.0.1:%d/", inner.port), http.StatusFound)
	})
	url := outer.at("outer.test")
	w := newWorld(t, open, near(url))
	if status, body := w.get(url); status != 403 || !strings.Contains(body, "loopback") {
		t.Errorf("got %d, %q", status, body)
	}
	if inner.conns.Load() != 0 {
		t.Error("the inner server was reached")
	}
}

const inNamespace = "EGRESS_TEST_NAMESPACE"

// ownAddresses are what the test's network namespace has on its loopback, so
// that whatever is sent to them is seen here.
var ownAddresses = []string{
	"169.254.169.254", "169.254.0.1", "100.100.100.200", "168.63.129.16", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.0.1",
	"192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "240.0.0.1", "93.184.216.34",
	"fd00:ec2::254", "fd20:ce::254", "fe80::1", "fc00::1", "fec0::1", "2001:db8::1", "64:ff9b::a9fe:a9fe", "64:ff9b::5db8:d822", "64:ff9b:1::a00:1",
	"2002:a00:1::1", "2001::1", "::a00:1", "3fff::1", "5f00::1", "2606:2800:220::1",
}

// Nothing is sent to an address that is not public: every one of them is a
// server here, which would see the connection.
func TestNothingLeaves(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		nothingLeaves(t)
		return
	}
	if _, err := exec.LookPath("ip"); err != nil {
		skip(t, "there is no ip program to give a network namespace addresses with")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestNothingLeaves$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		skip(t, "a network namespace cannot be made here: "+err.Error())
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestNothingLeaves") {
		t.Errorf("%v\n%s", err, out)
	}
}

func nothingLeaves(t *testing.T) {
	setUp := [][]string{{"link", "set", "lo", "up"}, {"route", "add", "local", "default", "dev", "lo"}, {"-6", "route", "add", "local", "default", "dev", "lo"}}
	for _, a := range ownAddresses {
		setUp = append(setUp, []string{"addr", "add", a, "dev", "lo"})
	}
	for _, args := range setUp {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Logf("ip %v: %v: %s", args, err, out) // whether it matters is seen below
		}
	}
	var reached sync.Map
	var count atomic.Int64
	for _, port := range []string{"80", "443"} {
		ln, err := net.Listen("tcp", net.JoinHostPort("::", port))
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(hello), ConnState: func(c net.Conn, s http.ConnState) {
			if s == http.StateNew {
				host, _, _ := net.SplitHostPort(c.LocalAddr().String())
				reached.Store(host, true)
				count.Add(1)
			}
		}}
		ended := make(chan struct{})
		go func() { server.Serve(ln); close(ended) }()
		defer func() { server.Close(); <-ended }()
	}
	forms := append([]string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::1", "::", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe",
		"::ffff:93.184.216.34", "224.0.0.1", "255.255.255.255", "ff02::1", "0:0:0:0:0:ffff:7f00:1", "::127.0.0.1", "fd00::1", "2001:2::1",
	}, ownAddresses...)
	public := map[string]bool{"93.184.216.34": true, "2606:2800:220::1": true}
	w := newWorld(t, open, nil)
	expected := int64(0)
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for _, a := range forms {
		h := a
		if strings.Contains(a, ":") {
			h = "[" + a + "]"
		}
		// Each would be reached if it were dialled, but for broadcast and the like.
		if resp, err := direct.Get("http://" + h + "/"); err == nil {
			resp.Body.Close()
			expected++
		} else {
			t.Logf("%s cannot be reached here in any case: %v", a, err)
		}
		before := count.Load()
		status, body := w.get("http://" + h + "/")
		tunnel := w.dial().send("CONNECT " + h + ":443 HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, _ := tunnel.answer("CONNECT")
		if public[a] {
			tunnel.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").answer("GET")
			expected += 2
			if status != 200 || resp.StatusCode != 200 || count.Load() != before+2 {
				t.Errorf("%s: got %d and %d with %d connections", a, status, resp.StatusCode, count.Load()-before)
			}
			continue
		}
		if status != 403 || resp.StatusCode != 403 || !strings.Contains(body, "address") {
			t.Errorf("%s: got %d and %d, %q", a, status, resp.StatusCode, body)
		}
		if n := count.Load(); n != before {
			t.Errorf("%s: %d connections were made", a, n-before)
		}
		if a == "::ffff:93.184.216.34" {
			continue // by name, this is the public address itself
		}
		dns.set("name.test", a)
		if status, _ := w.get("http://name.test/"); status != 403 || count.Load() != before {
			t.Errorf("%s by name: got %d with %d connections", a, status, count.Load()-before)
		}
	}
	// Connections are taken in their order, so after these none is on its way.
	for _, url := range []string{"http://127.0.0.1:80", "http://127.0.0.1:443"} {
		resp, err := direct.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		expected++
	}
	if n := count.Load(); n != expected {
		t.Errorf("%d connections were made, want %d", n, expected)
	}
	for _, a := range []string{"169.254.169.254", "10.0.0.1", "127.0.0.1", "93.184.216.34"} {
		if _, ok := reached.Load(a); !ok {
			if _, ok := reached.Load("::ffff:" + a); !ok {
				t.Errorf("%s was not reached by dialling it, so this test shows nothing", a)
			}
		}
	}
}
