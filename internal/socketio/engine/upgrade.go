package engine

import (
	"context"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// probe is what both sides say on a WebSocket on trial.
const probe = "probe"

const (
	// probePoll is how long a poll waits while a WebSocket is on trial. The client
	// has to stop polling before it can change over, and does not know yet that it
	// should: with no wait at all it would poll as fast as it can.
	probePoll = 100 * time.Millisecond
	// changeOverWait is how long the first poll after the probe waits. The client may
	// have sent its word that it changes over before the poll, and we read it later.
	// It is short because good clients wait too: they change over when the poll that
	// crossed the pong has been answered.
	changeOverWait = 5 * time.Millisecond
)

// trial is a WebSocket that may become the transport.
type trial struct {
	running bool
	ws      *wire
	probed  bool // the client may have changed over
	first   bool // the next poll is the first after the probe
}

// patience is how long a poll that comes now waits; 0 is without end.
func (t *trial) patience() time.Duration {
	switch {
	case t.first:
		t.first = false
		return changeOverWait
	case t.running:
		return probePoll
	}
	return 0
}

// serveUpgrade takes the connection from polling to a WebSocket.
//
// The client opens it, sends a ping and gets a pong. Then it lets its poll and
// its post come to their end and says that it changes over. Packets go out by
// polls until then and by the WebSocket afterwards, and are taken from one
// outbox, so that none is lost and none overtakes another.
func (c *Conn) serveUpgrade(w http.ResponseWriter, r *http.Request) {
	if !asksForWebSocket(r) {
		badRequest.answer(w)
		return
	}
	if !c.beginProbe() {
		c.turnAway(w, r)
		return
	}
	ws, err := accept(w, r)
	if err != nil {
		c.endProbe()
		return
	}
	c.mu.Lock()
	c.trial.ws = ws
	over := c.state == isOver
	c.mu.Unlock()
	if over || c.probe(ws) != nil {
		c.endProbe()
		_ = ws.CloseNow()
		return
	}
	c.read(ws)
}

// probe sees the trial through. A connection that only drains is let pass: clients do
// not poll any more once they have the pong, so that they would not hear of its end.
func (c *Conn) probe(ws *wire) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), c.server.o.UpgradeTimeout)
	defer cancel()
	p, err := c.readPacket(ctx, ws)
	if err != nil {
		return err
	}
	if p.kind != kindPing || string(p.data) != probe {
		return errUnexpected
	}
	c.mu.Lock()
	c.trial.probed, c.trial.first = true, true // before the client can have the pong
	c.mu.Unlock()
	if err := ws.Write(ctx, websocket.MessageText, append([]byte{kindPong}, probe...)); err != nil {
		return err
	}
	c.endPoll()
	if p, err = c.readPacket(ctx, ws); err != nil {
		return err
	}
	if p.kind != kindUpgrade {
		return errUnexpected
	}
	return c.changeOver(ws)
}

// turnAway answers a second WebSocket: the protocol has it opened and closed. One on
// trial counts as the first, for the client may have said that it changes over
// without our having read it.
func (c *Conn) turnAway(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	open := c.state == isOpen
	c.mu.Unlock()
	if !open {
		badRequest.answer(w)
		return
	}
	if ws, err := accept(w, r); err == nil {
		ws.goodbye(websocket.StatusNormalClosure)
	}
}

// beginProbe reports whether a WebSocket may be tried. There is one at a time.
func (c *Conn) beginProbe() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ws != nil || c.trial.running || c.state != isOpen {
		return false
	}
	c.trial.running = true
	return true
}

// endProbe goes on with polling.
func (c *Conn) endProbe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trial = trial{}
}

// endPoll answers the poll that has waited since before the probe, so that the client
// can stop polling.
func (c *Conn) endPoll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.poll != nil && !c.late {
		c.nudge, c.trial.first = true, false
		c.wake()
	}
}

// changeOver makes the WebSocket the transport.
func (c *Conn) changeOver(ws *wire) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == isOver {
		return context.Cause(c.ctx)
	}
	c.ws = ws
	c.trial = trial{}
	c.wake()
	return nil
}
