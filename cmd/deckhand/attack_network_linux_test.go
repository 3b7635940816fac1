package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"deckhand/internal/soak"
)

// ownNetwork says that the test runs in a network namespace of its own.
const ownNetwork = "DECKHAND_TEST_OWN_NETWORK"

// liar is a name server that says what suits an attacker.
type liar struct{ asked atomic.Int64 }

// lies are the addresses of names; of several, each question gets the next.
var lies = map[string][]string{
	"rebind": {"93.184.216.34", "127.0.0.1"}, "private": {"127.0.0.1"}, "mapped": {"::ffff:127.0.0.1"}, "zero": {"0.0.0.0"}, "six": {"::1"}, "nat64": {"64:ff9b::7f00:1"}, "metadata": {"169.254.169.254"}, "shared": {"100.64.0.1"},
}

// answer is what the liar says to a question.
func (l *liar) answer(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil, fmt.Errorf("%d questions: %w", len(m.Questions), err)
	}
	q := m.Questions[0]
	label, _, _ := strings.Cut(q.Name.String(), ".")
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	said := lies[label]
	if n := l.asked.Add(1); len(said) > 1 && q.Type == dnsmessage.TypeA {
		said = said[n%2:][:1]
	}
	for _, text := range said {
		head, ip := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET}, net.ParseIP(text)
		four := strings.Contains(text, ".") && !strings.Contains(text, ":")
		switch {
		case four && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: [4]byte(ip.To4())}})
		case !four && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip.To16())}})
		}
	}
	return m.Pack()
}

// serve answers until the connection is closed.
func (l *liar) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if text, err := l.answer(buf[:n]); err == nil {
			_, _ = conn.WriteTo(text, from)
		}
	}
}

// A name server that answers now with a public address and now with a private one, redirects,
// and addresses in odd spellings: none leads a public server to a service in its own network.
func TestAttackRebinding(t *testing.T) {
	if os.Getenv(ownNetwork) != "" {
		attackRebinding(t)
		return
	}
	soak.NotShort(t, "makes a network namespace")
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestAttackRebinding$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), ownNetwork+"=1", "GODEBUG=netdns=go")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED: a network namespace cannot be made here: " + err.Error())
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestAttackRebinding") {
		t.Errorf("%v\n%s", err, out)
	}
}

// becomeNetwork brings loopback up and has names asked for at a name server of the test.
func becomeNetwork(t *testing.T) *liar {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	l, done := &liar{}, make(chan struct{})
	go func() { defer close(done); l.serve(conn) }()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return l
}

// askFor makes the server ask an address as a model, as a tool server and as a webhook.
func (b *box) askFor(at string) {
	b.t.Helper()
	b.raw("POST", "/api/settings/test-model", fmt.Sprintf(`{"llm_model":"openai/x","llm_api_key":"sk-123456789","llm_base_url":%q}`, at))
	b.raw("POST", "/api/settings/test-mcp", fmt.Sprintf(`{"shttp_servers":[{"url":%q}]}`, at))
	if code, text, _ := b.raw("POST", "/api/webhooks", fmt.Sprintf(`{"url":%q}`, at)); code == http.StatusCreated {
		id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(text)[1]
		if _, err := b.client.TestWebhook(b.t.Context(), id); err != nil {
			b.t.Fatal(err)
		}
		b.until("the webhook was tried", func() bool {
			page, err := b.client.WebhookDeliveries(b.t.Context(), id, 0, 1)
			return err == nil && len(page.Results) == 1 && page.Results[0].Attempts > 0
		})
	}
}

func attackRebinding(t *testing.T) {
	l := becomeNetwork(t)
	var reached atomic.Int64
	inner, err := net.Listen("tcp", ":0") // on all addresses there are, IPv6 as well
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	_ = service.Listener.Close()
	service.Listener = inner
	service.Start()
	t.Cleanup(service.Close)
	port := inner.Addr().(*net.TCPAddr).Port
	redirect := website(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprintf("http://127.0.0.1:%d%s", port, r.URL.Path), http.StatusTemporaryRedirect)
	})
	hosts := []string{"127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "0.0.0.0", "127.0.0.1.", "user@127.0.0.1", "127.0.0.1%2f"}
	for label := range lies {
		hosts = append(hosts, label+".attack.test")
	}
	b := serve(t, "", "--behind-proxy", "--allow-private", strings.TrimPrefix(redirect, "http://"))
	b.demo("scripted/demo")
	for _, host := range hosts {
		b.askFor(fmt.Sprintf("http://%s:%d/x", host, port))
		if host == "rebind.attack.test" { // both answers in either order
			b.askFor(fmt.Sprintf("http://%s:%d/y", host, port))
		}
	}
	b.askFor(redirect + "/x")
	if n := reached.Load(); n != 0 || l.asked.Load() < int64(len(lies)) {
		t.Errorf("the service was reached %d times, the name server %d times", n, l.asked.Load())
	}
	b.stop()

	b = serve(t, "") // only its own machine reaches this one, so it may reach what it likes
	b.demo("scripted/demo")
	b.askFor(fmt.Sprintf("http://private.attack.test:%d/x", port))
	if reached.Load() == 0 {
		t.Error("the service cannot be reached at all, so this proves nothing")
	}
}

// highest is the most memory that a process ever had, in bytes.
func highest(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s", text)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// Readers that do not read and bodies that do not end, 1.4 GB of them, cost the server a bounded
// part of that, and others are answered meanwhile.
func TestAttackMemory(t *testing.T) {
	const readers, events, event, bodies, body, most = 150, 30, 100 << 10, 100, 10 << 20, 600 << 20
	t.Parallel()
	b, cmd := spawn(t, t.TempDir(), "--body-memory", "64M")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	addr := strings.TrimPrefix(b.base, "http://")
	before := highest(t, cmd.Process.Pid)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // only so that a server that wedges fails the test
		return conn
	}
	for range readers {
		conn := dial()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "GET /api/conversations/%s/events/stream HTTP/1.1\r\nHost: localhost\r\nX-Session-API-Key: %s\r\n\r\n", id, b.key)
		if _, err := io.ReadFull(conn, make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.Repeat("0123456789", event/10)
	for range events {
		if err := b.client.Say(t.Context(), id, text, ""); err != nil {
			t.Fatal(err)
		}
	}
	var sent sync.WaitGroup
	for range bodies {
		conn := dial()
		sent.Go(func() {
			fmt.Fprintf(conn, "POST /api/settings HTTP/1.1\r\nHost: localhost\r\nX-Session-API-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", b.key, body+1)
			_, _ = io.Copy(conn, bytes.NewReader(make([]byte, body))) // refused sooner or later
		})
	}
	sent.Wait()
	other := b.userOf("other", "own")
	if code, text, _ := other.raw("GET", "/api/me", ""); code != http.StatusOK {
		t.Errorf("another user: %d %s", code, text)
	}
	grown := highest(t, cmd.Process.Pid) - before
	t.Logf("%d MB at the beginning, %d MB more at most", before>>20, grown>>20)
	if grown > most {
		t.Errorf("the server grew by %d MB, more than %d MB", grown>>20, most>>20)
	}
}

// cpuTime is how long a process has computed.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may hold anything
	fields := strings.Fields(rest)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / 100
}

// Bodies that decode to many times their size, eight at a time with one key, cost little memory and little work.
func TestAttackAmplification(t *testing.T) {
	const at, body, mostMemory, mostWork = 8, 14 << 20, 800 << 20, time.Minute
	t.Parallel()
	b, cmd := spawn(t, t.TempDir(), "--body-memory", "128M")
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	list := func(before, item, after string) []byte {
		return []byte(before + strings.Repeat(item+",", body/(len(item)+1)) + item + after)
	}
	names := func(before, value, after string, n int) []byte {
		text := []byte(before)
		for i := range n {
			text = fmt.Appendf(text, `"A%06x":%s,`, i, value)
		}
		return append(text[:len(text)-1], after...)
	}
	attacks := []struct {
		path string
		body []byte
	}{
		{"/api/settings", list(`{"mcp_config":{"sse_servers":[`, `{}`, `]}}`)},
		{"/api/settings", names(`{"secrets_store":{"custom_secrets":{`, `""`, `}}}`, body/13)},
		{"/api/settings", names(`{"secrets_store":{"custom_secrets":{`, `"x"`, `}}}`, 20_000)}, // few enough to be decoded
		{"/api/settings", names(`{`, `{"a":{}}`, `}`, 12_000)},
		{"/api/conversations", list(`{"replay_json":"[`, `{}`, `]"}`)},
		{"/api/conversations/" + id + "/events", list(`{"action":"message","args":{"content":"x","a":[`, `{}`, `]}}`)},
		{"/mcp", list(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[`, `{}`, `]}}}`)},
	}
	before, worked := highest(t, cmd.Process.Pid), cpuTime(t, cmd.Process.Pid)
	for _, a := range attacks {
		var sent sync.WaitGroup
		for range at {
			conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // only so that a server that wedges fails the test
			sent.Go(func() {                                      // refused sooner or later
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Session-API-Key: %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", a.path, b.key, len(a.body))
				_, _ = conn.Write(a.body)
				answer, _ := io.ReadAll(conn)
				if bytes.HasPrefix(answer, []byte("HTTP/1.1 5")) {
					t.Errorf("%s with %.60s…: %.200s", a.path, a.body, answer)
				}
			})
		}
		sent.Wait()
		t.Logf("%s with %.60s…: %d MB", a.path, a.body, (highest(t, cmd.Process.Pid)-before)>>20)
	}
	other := b.userOf("other", "own")
	if code, text, _ := other.raw("GET", "/api/me", ""); code != http.StatusOK {
		t.Errorf("another user: %d %s", code, text)
	}
	grown, work := highest(t, cmd.Process.Pid)-before, cpuTime(t, cmd.Process.Pid)-worked
	t.Logf("%d MB at the beginning, %d MB more at most, %v of work", before>>20, grown>>20, work)
	if grown > mostMemory || work > mostWork {
		t.Errorf("the server grew by %d MB and worked for %v", grown>>20, work)
	}
}
