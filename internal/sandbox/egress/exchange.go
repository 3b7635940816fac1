package egress

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/clip"
)

// exchange is one request or tunnel while it lasts.
type exchange struct {
	proxy  *Proxy
	line   *line
	method string
	host   host
	port   uint16

	ctx    context.Context
	cancel context.CancelCauseFunc
	rules  *rules // that permitted it

	sent, received atomic.Int64
	uploaded       atomic.Bool // the request's body was read to its end
	answering      atomic.Bool // the client has been sent the beginning of an answer

	mu       sync.Mutex
	over     bool
	verdict  Verdict
	reason   string
	what     string    // it is about, if that is known
	from     time.Time // where the part that is not recorded yet begins
	told     [2]int64  // what of sent and received is recorded
	interval time.Duration
	part     *time.Timer
	moved    int64 // what was sent and received when idleness was last looked for
	idle     *time.Timer
}

// firstPart and lastPart are the shortest and longest time between two entries
// for something that goes on.
const (
	firstPart = time.Minute
	lastPart  = time.Hour
)

// maxMethod and maxCall bound what a sandbox can have written down.
const (
	maxMethod = 32
	maxCall   = 200
)

// begin makes the exchange known before its policy is asked: a change of the
// policy from then on finds it.
func (p *Proxy) begin(l *line, r *http.Request, h host, port uint16) *exchange {
	e := &exchange{
		proxy: p, line: l, method: storable(r.Method, maxMethod), host: h, port: port,
		from: time.Now(), interval: p.firstPart, verdict: Allowed,
	}
	e.ctx, e.cancel = context.WithCancelCause(r.Context())
	e.uploaded.Store(r.ContentLength == 0)
	p.mu.Lock()
	l.box.exchanges[e] = true
	p.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.part = time.AfterFunc(e.interval, e.tell)
	e.idle = time.AfterFunc(p.idleTimeout, e.look)
	return e
}

// permitted asks the policy.
func (e *exchange) permitted() error {
	r, err := e.proxy.rules(e.ctx, e.line.box)
	if err != nil {
		if cause := context.Cause(e.ctx); cause != nil {
			return cause
		}
		return &refusal{http.StatusServiceUnavailable, Failed, "the egress policy cannot be read right now; try again later", "the policy cannot be read: " + err.Error()}
	}
	if why := r.refuses(e.host, e.port); why != "" {
		return refuse(why)
	}
	e.rules = r
	return nil
}

// note sets how the exchange ends. The first to say so is right: what follows
// is a consequence.
func (e *exchange) note(v Verdict, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.verdict == Allowed && e.reason == "" {
		e.verdict, e.reason = v, reason
	}
}

// cut ends the exchange from outside.
func (e *exchange) cut(why *refusal) {
	e.cancel(why)
	switch {
	case e.answering.Load(): // it may be waiting for a client that does not read
		e.line.Close()
	case !e.uploaded.Load(): // or for one that does not send
		_ = e.line.SetReadDeadline(past)
	}
}

// tell records a part of something that goes on.
func (e *exchange) tell() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	if e.told != e.traffic() { // nothing is said about silence
		e.record(StillOpen)
	}
	e.interval = min(2*e.interval, lastPart)
	e.part.Reset(e.interval)
}

func (e *exchange) traffic() [2]int64 { return [2]int64{e.sent.Load(), e.received.Load()} }

// look ends the exchange if nothing has moved since it last looked.
func (e *exchange) look() {
	e.mu.Lock()
	now := e.sent.Load() + e.received.Load()
	still := !e.over && now == e.moved
	if e.moved = now; !e.over && !still {
		e.idle.Reset(e.proxy.idleTimeout)
	}
	e.mu.Unlock()
	if still {
		e.cut(&refusal{http.StatusGatewayTimeout, Failed, "nothing came from " + e.host.with(e.port) + " for " + e.proxy.idleTimeout.String(), "idle"})
	}
}

// end records the exchange and forgets it. Only the first call counts.
func (e *exchange) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	e.over = true
	e.part.Stop()
	e.idle.Stop()
	e.proxy.mu.Lock()
	delete(e.line.box.exchanges, e)
	e.proxy.mu.Unlock()
	var why *refusal
	if errors.As(context.Cause(e.ctx), &why) { // it was cut
		e.verdict, e.reason = why.verdict, why.reason
	}
	e.record(e.tale())
}

// record writes an entry for what has not been recorded. It needs the lock.
func (e *exchange) record(reason string) {
	if e.proxy.recorder == nil {
		return
	}
	now, at := time.Now(), e.traffic()
	entry := Entry{
		At: e.from, Took: now.Sub(e.from), Call: e.line.call, Method: e.method, Host: e.host.String(), Port: e.port,
		Sent: at[0] - e.told[0], Received: at[1] - e.told[1], Verdict: e.verdict, Reason: reason,
	}
	e.from, e.told = now, at
	e.proxy.recorder.add(e.line.box.id, entry)
}

// storable makes a text from a sandbox fit to be kept: short, and valid UTF-8.
func storable(s string, n int) string { return strings.ToValidUTF8(clip.Start(s, n), "") }
