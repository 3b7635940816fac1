package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"deckhand/internal/gitgate"
	"deckhand/internal/outbound"
)

// Config is how a Proxy is made. Only Policy is needed.
type Config struct {
	// Policy is the one in force for a sandbox. It is asked at every request and
	// must be quick. While it fails, nothing is allowed.
	Policy func(ctx context.Context, id string) (Policy, error)
	// AllowPrivate names hosts that may be connected to though their addresses are
	// not public, such as a registry in the operator's own network. The policy
	// must allow them as well.
	AllowPrivate []outbound.HostPort
	// Git says what git in a sandbox may do at a site whose token the sandbox does
	// not have; gitgate.ErrNoToken if nothing. It is asked at every request. With
	// nil there is no gate.
	Git func(ctx context.Context, id string, site gitgate.Site) (gitgate.Grant, error)
	// Ledger is where requests are written down; nil is nowhere.
	Ledger Ledger
	// Log is the logger for problems; nil for none.
	Log *slog.Logger

	// MaxConns is how many connections a sandbox may have at once (default 256).
	MaxConns int
	// HeaderTimeout is how long the head of a request may take (default 10 s).
	HeaderTimeout time.Duration
	// KeepAlive is how long a connection may wait for its next request (default 2 min).
	KeepAlive time.Duration
	// IdleTimeout ends a request or tunnel on which nothing moves (default 15 min).
	// It is noticed within twice the time.
	IdleTimeout time.Duration
}

// maxHead is how large the head of a request may be.
const maxHead = 64 << 10

// Proxy is the way out of all sandboxes of a server.
type Proxy struct {
	policy      func(context.Context, string) (Policy, error)
	git         func(context.Context, string, gitgate.Site) (gitgate.Grant, error)
	roots       *x509.CertPool // nil: the system's
	outbound    outbound.Policy
	recorder    *recorder // nil without a ledger
	maxConns    int
	idleTimeout time.Duration
	firstPart   time.Duration

	server  *http.Server
	forward *httputil.ReverseProxy
	gateway *httputil.ReverseProxy
	log     *slog.Logger
	quiet   *log.Logger
	next    chan *line

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	once   sync.Once
	err    error
	busy   sync.WaitGroup // Serve calls, and the server

	mu     sync.Mutex
	closed bool
	boxes  map[string]*box
}

// box is a sandbox that has connections.
type box struct {
	id        string
	lines     map[*line]bool
	exchanges map[*exchange]bool

	// The policy of the last request, in the form that can be asked.
	mu     sync.Mutex
	policy Policy
	rules  *rules
}

// New makes a proxy. Close it.
func New(c Config) *Proxy {
	p := &Proxy{
		policy: c.Policy, git: c.Git, outbound: outbound.Policy{Allow: c.AllowPrivate}, boxes: map[string]*box{}, next: make(chan *line),
		maxConns: or(c.MaxConns, 256), idleTimeout: or(c.IdleTimeout, 15*time.Minute), firstPart: firstPart,
	}
	logger := c.Log
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	// What net/http has to say is about single requests, and the ledger says it too.
	p.log, p.quiet = logger, slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.forward = p.forwarder()
	p.gateway = p.gatekeeper()
	one := new(http.Protocols)
	one.SetHTTP1(true)
	p.server = &http.Server{
		Handler:                      p,
		Protocols:                    one,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            or(c.HeaderTimeout, 10*time.Second),
		IdleTimeout:                  or(c.KeepAlive, 2*time.Minute),
		MaxHeaderBytes:               maxHead,
		ErrorLog:                     p.quiet,
		BaseContext:                  func(net.Listener) context.Context { return p.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, lineKey{}, c)
		},
		ConnState: func(c net.Conn, s http.ConnState) {
			switch l := c.(*line); s {
			case http.StateHijacked:
				l.hijacked = true
			case http.StateClosed:
				close(l.ended)
			}
		},
	}
	if c.Ledger != nil {
		p.recorder = newRecorder(c.Ledger, logger)
	}
	p.busy.Go(func() { _ = p.server.Serve(lines{p.next, p.ctx}) })
	return p
}

func or[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// Serve answers a connection that something in the sandbox id made to its proxy
// while call ran. It returns when the connection is closed, and what it carried
// is on its way to the ledger. It is a sandbox.Outward.
func (p *Proxy) Serve(ctx context.Context, id, call string, conn net.Conn) {
	l := &line{Conn: conn, call: storable(call, maxCall), ended: make(chan struct{})}
	if !p.join(id, l) {
		l.Close()
		return
	}
	defer p.leave(l)
	defer context.AfterFunc(ctx, func() { l.Close() })()
	select {
	case p.next <- l:
		<-l.ended
	case <-p.ctx.Done():
	}
	l.Close()
	for _, t := range []*http.Transport{l.upstream, l.gate} {
		if t != nil {
			t.CloseIdleConnections()
		}
	}
}

// join counts a connection in. Those above the limit are told so, unless they
// are as many again.
func (p *Proxy) join(id string, l *line) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	b := p.boxes[id]
	if b == nil {
		b = &box{id: id, lines: map[*line]bool{}, exchanges: map[*exchange]bool{}}
		p.boxes[id] = b
	}
	if len(b.lines) >= 2*p.maxConns {
		return false
	}
	l.box, l.over = b, len(b.lines) >= p.maxConns
	b.lines[l] = true
	p.busy.Add(1)
	return true
}

func (p *Proxy) leave(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(l.box.lines, l); len(l.box.lines) == 0 {
		delete(p.boxes, l.box.id)
	}
	p.busy.Done()
}

// ServeHTTP answers one request of a connection that Serve was given.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := lineOf(r.Context())
	defer func() {
		if l.hijacked {
			close(l.ended)
		}
	}()
	defer p.calm()
	find := target
	switch {
	case l.inside != nil:
		find = l.inside.request
	case r.Method == http.MethodConnect:
		find = authority
	}
	h, port, err := find(r)
	var pass *passage
	if err == nil && h.name == gitgate.Name {
		pass, h, port, err = p.admit(r, l.box.id, port)
	}
	e := p.begin(l, r, h, port)
	defer e.cancel(nil)
	defer e.end()
	if l.over {
		why := fmt.Sprintf("this sandbox has reached its limit of %d open connections; close some and try again", p.maxConns)
		err = &refusal{http.StatusServiceUnavailable, Refused, why, why}
	}
	if err == nil {
		err = e.permitted()
	}
	// Answers may begin before the request has ended; net/http would read the rest first.
	_ = http.NewResponseController(w).EnableFullDuplex()
	switch {
	case err != nil:
		why := explain(err, h, port)
		e.note(why.verdict, why.reason)
		if r.Method == http.MethodConnect {
			p.refuseTunnel(w, why)
			return
		}
		why.answer(w, r)
	case r.Method == http.MethodConnect:
		p.connect(w, e)
	case pass != nil:
		p.gated(w, r, e, pass)
	default:
		p.plain(w, r, e)
	}
}

// calm keeps a panic in the proxy from looking like an aborted response.
func (p *Proxy) calm() {
	if v := recover(); v != nil {
		if v != http.ErrAbortHandler {
			p.log.Error("the egress proxy panicked", "panic", v, "stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler)
	}
}

// dial connects to a host, if its address may be connected to.
func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.outbound.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &counted{Conn: conn}, nil
}

// rules asks for the policy in force.
func (p *Proxy) rules(ctx context.Context, b *box) (*rules, error) {
	policy, err := p.policy(ctx, b.id)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rules != nil && b.policy.Mode == policy.Mode && slices.Equal(b.policy.Allow, policy.Allow) {
		return b.rules, nil
	}
	r, err := policy.compile()
	if err != nil {
		return nil, err
	}
	b.rules, b.policy = r, Policy{policy.Mode, slices.Clone(policy.Allow)}
	return r, nil
}

// Changed says that the policy of a sandbox is another. Requests and tunnels
// that it does not allow are cut off; if it cannot be read, all are.
func (p *Proxy) Changed(id string) {
	p.mu.Lock()
	b := p.boxes[id]
	var open []*exchange
	if b != nil {
		for e := range b.exchanges {
			open = append(open, e)
		}
	}
	p.mu.Unlock()
	if len(open) == 0 {
		return
	}
	r, err := p.rules(p.ctx, b)
	for _, e := range open {
		why := "the policy cannot be read"
		if err == nil {
			why = r.refuses(e.host, e.port)
		}
		if why != "" {
			e.cut(refuse("the egress policy has changed: " + why))
		}
	}
}

// Entries reads the ledger, with everything that has ended by now; see Ledger.
func (p *Proxy) Entries(ctx context.Context, id string, before int64, limit int) ([]Entry, error) {
	if p.recorder == nil {
		return nil, nil
	}
	if err := p.recorder.flush(ctx, id); err != nil {
		return nil, err
	}
	return p.recorder.ledger.Entries(ctx, id, before, limit)
}

// Forget removes what the ledger has about a sandbox that is gone.
func (p *Proxy) Forget(ctx context.Context, id string) error {
	if p.recorder == nil {
		return nil
	}
	return p.recorder.forget(ctx, id)
}

// errClosing is why everything ends.
var errClosing = &refusal{http.StatusServiceUnavailable, Failed, "the server is shutting down", "the server was shut down"}

// Close cuts all connections, writes the ledger and waits for both. It may be
// called twice.
func (p *Proxy) Close() error {
	p.once.Do(func() {
		p.mu.Lock()
		p.closed = true
		var all []*line
		for _, b := range p.boxes {
			for l := range b.lines {
				all = append(all, l)
			}
		}
		p.mu.Unlock()
		p.cancel(errClosing)
		for _, l := range all {
			l.Close()
		}
		p.err = p.server.Close()
		p.busy.Wait()
		if p.recorder != nil {
			p.err = errors.Join(p.err, p.recorder.close())
		}
	})
	return p.err
}
