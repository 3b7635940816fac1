package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/outbound"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/egress/ledgertest"
)

var _ sandbox.Outward = (*egress.Proxy)(nil).Serve

// No name in these tests is looked up anywhere but here.
var dns = &nameServer{answers: map[string][][]netip.Addr{}, asked: map[string]int{}}

func TestMain(m *testing.M) {
	stop := dns.start()
	code := m.Run()
	stop()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// nameServer answers questions for addresses from a list per name: each answer
// once, the last one repeatedly.
type nameServer struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	asked   map[string]int
}

func (d *nameServer) start() (stop func()) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var nd net.Dialer
		return nd.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
	var serving sync.WaitGroup
	serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := d.reply(buf[:n]); reply != nil {
				conn.WriteTo(reply, from)
			}
		}
	})
	return func() { conn.Close(); serving.Wait() }
}

// set makes a name have these addresses, one set after the other.
func (d *nameServer) set(name string, answers ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[name], d.asked[name] = nil, 0
	for _, one := range answers {
		var list []netip.Addr
		for text := range strings.FieldsSeq(one) {
			list = append(list, netip.MustParseAddr(text))
		}
		d.answers[name] = append(d.answers[name], list)
	}
}

func (d *nameServer) times(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[name]
}

func (d *nameServer) reply(query []byte) []byte {
	const header = 12
	var labels []string
	i := header
	for i < len(query) && query[i] != 0 {
		end := i + 1 + int(query[i])
		labels, i = append(labels, string(query[i+1:end])), end
	}
	end := i + 5 // the final zero, type and class
	kind := binary.BigEndian.Uint16(query[i+1:])
	name := strings.ToLower(strings.Join(labels, "."))
	d.mu.Lock()
	defer d.mu.Unlock()
	sets, known := d.answers[name]
	var found []netip.Addr
	if len(sets) > 0 {
		found = sets[min(d.asked[name], len(sets)-1)]
	}
	if kind == 1 {
		d.asked[name]++
	}
	reply := append([]byte(nil), query[:end]...)
	binary.BigEndian.PutUint16(reply[2:], 0x8180) // an answer, recursion available
	if !known {
		reply[3] = 0x83 // no such name
	}
	copy(reply[4:], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	for _, addr := range found {
		if addr.Is4() == (kind == 1) && addr.Is6() == (kind == 28) {
			reply[7]++
			b := addr.AsSlice()
			reply = append(reply, 0xc0, header, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(b))) // that name, IN, TTL 0
			reply = append(reply, b...)
		}
	}
	return reply
}

// origin is a server on loopback that counts its connections.
type origin struct {
	*httptest.Server
	conns atomic.Int64
	port  uint16
}

func newOrigin(t testing.TB, h http.HandlerFunc) *origin { return start(t, h, false) }

func newTLSOrigin(t testing.TB, h http.HandlerFunc) *origin { return start(t, h, true) }

func start(t testing.TB, h http.HandlerFunc, secure bool) *origin {
	t.Helper()
	o := &origin{Server: httptest.NewUnstartedServer(h)}
	o.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			o.conns.Add(1)
		}
	}
	if secure {
		o.StartTLS()
	} else {
		o.Start()
	}
	t.Cleanup(o.Close)
	o.port = uint16(o.Listener.Addr().(*net.TCPAddr).Port)
	return o
}

// at is the origin under a name, which then leads to it.
func (o *origin) at(name string) string {
	if net.ParseIP(name) == nil {
		dns.set(name, "127.0.0.1")
	}
	scheme, _, _ := strings.Cut(o.URL, "://")
	return fmt.Sprintf("%s://%s:%d", scheme, name, o.port)
}

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Write(body)
}

// world is a sandbox whose connections are handed to a proxy.
type world struct {
	testing.TB
	*egress.Proxy
	ledger *ledgertest.Memory
	policy atomic.Pointer[egress.Policy]
	addr   string
	ended  chan struct{} // one for each connection that the proxy served

	mu     sync.Mutex
	change *sync.Cond
	served int // how many connections it serves now
}

var open = egress.Policy{Mode: egress.Open}

func list(allow ...string) egress.Policy {
	return egress.Policy{Mode: egress.Allowlist, Allow: allow}
}

// private lists what may be reached on loopback, as HOST:PORT.
func newWorld(t testing.TB, policy egress.Policy, private []string, more ...func(*egress.Config)) *world {
	t.Helper()
	w := &world{TB: t, ledger: &ledgertest.Memory{}, ended: make(chan struct{}, 10_000)}
	w.change = sync.NewCond(&w.mu)
	w.policy.Store(&policy)
	allow, err := outbound.ParseAllow(strings.Join(private, ","))
	if err != nil {
		t.Fatal(err)
	}
	c := egress.Config{
		Policy:       func(context.Context, string) (egress.Policy, error) { return *w.policy.Load(), nil },
		AllowPrivate: allow, Ledger: w.ledger,
	}
	for _, m := range more {
		m(&c)
	}
	w.Proxy = egress.New(c)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	var accepting sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	accepting.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			w.count(1)
			go func() {
				w.Serve(ctx, "box", "call_1", conn)
				w.ended <- struct{}{}
				w.count(-1)
			}()
		}
	})
	t.Cleanup(func() {
		ln.Close()
		accepting.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		w.settle()
	})
	return w
}

func (w *world) count(n int) {
	w.mu.Lock()
	w.served += n
	w.mu.Unlock()
	w.change.Broadcast()
}

// settle waits until all connections that were made have ended.
func (w *world) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.served > 0 {
		w.change.Wait()
	}
}

// near is the AllowPrivate of origins under names.
func near(names ...string) []string {
	var list []string
	for _, n := range names {
		u, err := url.Parse(n)
		if err != nil {
			panic(err)
		}
		list = append(list, u.Host)
	}
	return list
}

func (w *world) transport() *http.Transport {
	return &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr}),
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		DisableCompression: true,
	}
}

func (w *world) client() *http.Client {
	tr := w.transport()
	w.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// get is one request on a connection of its own.
func (w *world) get(url string) (int, string) {
	w.Helper()
	tr := w.transport()
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get(url)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// dial is a connection to the proxy.
func (w *world) dial() *wire {
	w.Helper()
	conn, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	return &wire{w, conn.(*net.TCPConn), bufio.NewReader(conn)}
}

// wire speaks by hand.
type wire struct {
	w *world
	*net.TCPConn
	in *bufio.Reader
}

func (c *wire) Read(b []byte) (int, error) { return c.in.Read(b) }

func (c *wire) send(text string) *wire {
	c.w.Helper()
	if _, err := io.WriteString(c.TCPConn, text); err != nil {
		c.w.Fatal(err)
	}
	return c
}

// answer reads an answer with its body.
func (c *wire) answer(method string) (*http.Response, string) {
	c.w.Helper()
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		c.w.Fatal(err)
	}
	if method == "CONNECT" && resp.StatusCode == 200 {
		return resp, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.w.Fatal(err)
	}
	return resp, string(body)
}

// connect opens a tunnel.
func (w *world) connect(to string) *wire {
	w.Helper()
	c := w.dial().send("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n")
	if resp, body := c.answer("CONNECT"); resp.StatusCode != 200 {
		w.Fatalf("CONNECT %s: %s: %s", to, resp.Status, body)
	}
	return c
}

// entries is the ledger, the oldest first.
func (w *world) entries() []egress.Entry {
	w.Helper()
	got, err := w.Entries(context.Background(), "box", 0, 10_000)
	if err != nil {
		w.Fatal(err)
	}
	for i, j := 0, len(got)-1; i < j; i, j = i+1, j-1 {
		got[i], got[j] = got[j], got[i]
	}
	return got
}

// last is the newest entry.
func (w *world) last() egress.Entry {
	w.Helper()
	got := w.entries()
	if len(got) == 0 {
		w.Fatal("nothing is recorded")
	}
	return got[len(got)-1]
}

// newest is the newest entry of a kind: what other lines did is recorded in its
// own time.
func (w *world) newest(method, host string) egress.Entry {
	w.Helper()
	for _, e := range slices.Backward(w.entries()) {
		if e.Method == method && e.Host == host {
			return e
		}
	}
	w.Fatalf("no %s of %s is recorded", method, host)
	return egress.Entry{}
}

func (w *world) recorded(e egress.Entry, method, host string, v egress.Verdict, reason string) {
	w.Helper()
	if e.Method != method || e.Host != host || e.Verdict != v || !strings.Contains(e.Reason, reason) || (reason == "") != (e.Reason == "") || e.Call != "call_1" || e.At.IsZero() {
		w.Errorf("got %+v, want %s %s %s %q", e, method, host, v, reason)
	}
}

func has(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("got %q, want something with %q", text, part)
	}
}
