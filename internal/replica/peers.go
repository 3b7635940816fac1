package replica

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// Peers forwards requests to the server with the workspace or the connection. Servers authenticate each other with
// certificates of an authority whose key is stored encrypted in the database.
type Peers struct {
	replica *Replica
	config  *tls.Config
	proxy   *httputil.ReverseProxy
	client  *http.Client
	// Sessions loads conversations, and Ports reports whether a port of a local sandbox has this label. Both are set
	// before the first request.
	Sessions *session.Sessions
	Ports    func(ctx context.Context, label string, port int) bool

	mu     sync.Mutex
	labels map[string]string // machines by labels of ports
}

// Router forwards requests to other servers. Each method reports whether it did.
type Router interface {
	Conversation(w http.ResponseWriter, r *http.Request, id string) (bool, error)
	Worker(w http.ResponseWriter, r *http.Request, user string) (bool, error)
	Socket(w http.ResponseWriter, r *http.Request, sid string) bool
	Port(w http.ResponseWriter, r *http.Request, label string, port int, allow func() bool) bool
}

// Router returns the Router of this server, nil for a single server.
func (r *Replica) Router() Router {
	if r.peers == nil {
		return nil
	}
	return r.peers
}

const (
	// The headers that a server adds to forwarded requests. They are read only from requests of other servers.
	clientHeader, secureHeader, routedHeader = "Deckhand-Client", "Deckhand-Secure", "Deckhand-Routed"
	// dialTime is the timeout for connecting to another server.
	dialTime = 5 * time.Second
	// portPath is the route that tells whether a port has a label.
	portPath = "/replica/port"
	// maxLabels is how many labels of ports are cached.
	maxLabels = 10_000
)

// serverName returns the name in the certificate of a machine.
func serverName(machine string) string { return strings.ToLower(machine) + ".deckhand.internal" }

// newPeers creates the certificate of this server and its Peers.
func newPeers(r *Replica, key [32]byte, machine string) (*Peers, error) {
	seed, err := hkdf.Key(sha256.New, key[:], nil, "certificates of servers", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	authority := ed25519.NewKeyFromSeed(seed)
	now := time.Now()
	above := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Deckhand servers"}, NotBefore: time.Unix(0, 0), NotAfter: now.AddDate(20, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, above, above, authority.Public(), authority)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	_, own, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	// Clocks differ between machines, and a server may run for years.
	leaf := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: machine}, DNSNames: []string{serverName(machine)}, NotBefore: now.AddDate(0, 0, -7), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if der, err = x509.CreateCertificate(rand.Reader, leaf, root, own.Public(), authority); err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(root)
	p := &Peers{replica: r, labels: map[string]string{}}
	p.config = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: own}},
		RootCAs: trusted, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"http/1.1"}}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute,
		DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address) }}
	p.client = &http.Client{Transport: transport}
	p.proxy = &httputil.ReverseProxy{Rewrite: p.outgoing, Transport: transport, FlushInterval: -1, ErrorHandler: p.unreached,
		ErrorLog: slog.NewLogLogger(r.Logger.Handler(), slog.LevelDebug)}
	r.closers = append(r.closers, transport.CloseIdleConnections)
	return p, nil
}

// dial connects to the server of a machine. The host of the address is the machine.
func (p *Peers) dial(ctx context.Context, address string) (net.Conn, error) {
	machine, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	all, err := p.replica.members(ctx)
	if err != nil {
		return nil, err
	}
	m, live := cluster.On(all, strings.ToUpper(machine))
	if !live || m.Address == "" {
		return nil, fmt.Errorf("the server with its data %s is not running", m.Place())
	}
	config := p.config.Clone()
	config.ServerName = serverName(machine)
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", m.Address)
}

// outgoing rewrites a request for another server, and adds headers with the client's address and connection.
func (p *Peers) outgoing(out *httputil.ProxyRequest) {
	machine, _ := out.In.Context().Value(toMachine{}).(string)
	out.Out.URL.Scheme, out.Out.URL.Host = "https", machine
	out.Out.URL.RawQuery = out.In.URL.RawQuery
	out.Out.Host = out.In.Host
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"} {
		if v := out.In.Header[name]; v != nil {
			out.Out.Header[name] = v
		}
	}
	out.Out.Header.Set(clientHeader, out.In.RemoteAddr)
	out.Out.Header.Set(secureHeader, strconv.FormatBool(out.In.TLS != nil))
	out.Out.Header.Set(routedHeader, p.replica.Member)
}

// toMachine is the context key for the machine to which a request is forwarded.
type toMachine struct{}

// unreached answers a request whose server cannot be reached. Clients may retry it.
func (p *Peers) unreached(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	p.replica.Logger.Warn("cannot reach another server", "error", err)
	w.Header().Set("Retry-After", "5")
	rest.Fail(http.StatusServiceUnavailable, "unavailable", "The server with the workspace of this conversation cannot be reached. Try again in a few seconds.").Write(w, rest.Plain)
}

// pass forwards a request to the server of a machine.
func (p *Peers) pass(w http.ResponseWriter, r *http.Request, machine string) {
	for name := range w.Header() { // the other server sets its own, but does not count the request
		if !strings.HasPrefix(name, "Ratelimit-") {
			delete(w.Header(), name)
		}
	}
	p.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), toMachine{}, machine)))
}

// live reports whether a server runs on another machine.
func (p *Peers) live(ctx context.Context, machine string) (bool, error) {
	if machine == "" || machine == p.replica.homes.machine {
		return false, nil
	}
	all, err := p.replica.members(ctx)
	_, live := cluster.On(all, machine)
	return live, err
}

// Conversation forwards a request that needs the workspace of a conversation if the workspace is on another machine where
// a server runs. Otherwise it returns false, and this server answers.
func (p *Peers) Conversation(w http.ResponseWriter, r *http.Request, id string) (passed bool, err error) {
	if rest.IsRouted(r) {
		return false, nil
	}
	st, err := p.Sessions.Load(r.Context(), session.ID(id))
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrCorrupt) || errors.Is(err, session.ErrNewer) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if st, err = p.replica.root(r.Context(), st); err != nil {
		return false, err
	}
	at := p.replica.home(r.Context(), st)
	if at == (home{}) { // the one that works on it has it attached
		at.machine = cluster.MachineOf(st.ClaimedBy)
	}
	all, err := p.replica.members(r.Context())
	if err != nil {
		return false, err
	}
	m, live := at.server(all, st)
	if !live || m.Machine == p.replica.homes.machine {
		return false, nil
	}
	p.pass(w, r, m.Machine)
	return true, nil
}

// Worker forwards a request of a user that creates a workspace, if this server does not run agents. All such requests of a user go to the
// same server.
func (p *Peers) Worker(w http.ResponseWriter, r *http.Request, user string) (passed bool, err error) {
	if p.replica.Works() {
		return false, nil
	}
	all, err := p.replica.members(r.Context())
	if err != nil {
		return false, err
	}
	workers := cluster.Workers(all)
	if rest.IsRouted(r) || len(workers) == 0 {
		return false, &sandbox.Unavailable{Reason: "No server that runs agents is available. Start a server with --roles api,worker, then try again."}
	}
	p.pass(w, r, cluster.Pick(workers, session.ID(user)).Machine)
	return true, nil
}

// Socket forwards a request of a Socket.IO session of another server.
func (p *Peers) Socket(w http.ResponseWriter, r *http.Request, sid string) bool {
	if rest.IsRouted(r) {
		return false
	}
	_, machine, _ := strings.Cut(sid, ".")
	if live, err := p.live(r.Context(), machine); err != nil || !live {
		return false
	}
	p.pass(w, r, machine)
	return true
}

// Port forwards a request to a port of a sandbox on another machine. It calls allow before it asks the other servers.
func (p *Peers) Port(w http.ResponseWriter, r *http.Request, label string, port int, allow func() bool) bool {
	if rest.IsRouted(r) {
		return false
	}
	p.mu.Lock()
	machine := p.labels[label]
	p.mu.Unlock()
	if live, _ := p.live(r.Context(), machine); !live {
		if p.Ports(r.Context(), label, port) || !allow() {
			return false
		}
		if machine = p.findPort(r.Context(), label, port); machine == "" {
			return false
		}
		p.mu.Lock()
		if len(p.labels) >= maxLabels {
			clear(p.labels)
		}
		p.labels[label] = machine
		p.mu.Unlock()
	}
	p.pass(w, r, machine)
	return true
}

// findPort asks the other servers for a port and returns the machine that has it, "" for none.
func (p *Peers) findPort(ctx context.Context, label string, port int) string {
	all, err := p.replica.members(ctx)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	for _, m := range cluster.Workers(all) {
		if m.Name == p.replica.Member {
			continue
		}
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.Machine+portPath+"?"+url.Values{"label": {label}, "port": {strconv.Itoa(port)}}.Encode(), nil)
		if err != nil {
			return ""
		}
		res, err := p.client.Do(ask)
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusNoContent {
			return m.Machine
		}
	}
	return ""
}

// Serve answers requests of other servers with a handler, until ctx ends.
func (p *Peers) Serve(ctx context.Context, handler http.Handler) error {
	if p == nil {
		return nil
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(p.replica.Logger.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.incoming(w, r, handler) })}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(tls.NewListener(p.replica.listener, p.config)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTime)
	defer cancel()
	if server.Shutdown(grace) != nil {
		_ = server.Close()
	}
	<-ended
	return nil
}

// incoming handles a request of another server, with the client's address and connection restored from its headers.
func (p *Peers) incoming(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	if r.URL.Path == portPath && r.Header.Get(routedHeader) == "" {
		port, _ := strconv.Atoi(r.URL.Query().Get("port"))
		if p.Ports(r.Context(), r.URL.Query().Get("label"), port) {
			w.WriteHeader(http.StatusNoContent)
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
		return
	}
	r.RemoteAddr = r.Header.Get(clientHeader)
	if r.Header.Get(secureHeader) != "true" {
		r.TLS = nil
	}
	for _, name := range []string{clientHeader, secureHeader, routedHeader} {
		r.Header.Del(name)
	}
	handler.ServeHTTP(w, rest.Routed(r))
}
