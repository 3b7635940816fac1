package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

var (
	errTwoPolls  = ended("the client polled twice at a time")
	errTwoPosts  = ended("the client posted twice at a time")
	errPollGone  = ended("the client gave up a poll")
	errPostGone  = ended("the client gave up a post")
	errTooLarge  = ended("the client sent more than it may")
	errPollWrite = ended("the client did not read the answer to its poll")
)

// servePoll answers a GET when there is something for the client.
func (c *Conn) servePoll(w http.ResponseWriter, r *http.Request) {
	wake, wait, err := c.sitDown()
	if err != nil {
		c.end(err, 0)
	}
	if wake == nil {
		badRequest.answer(w)
		return
	}
	var idle <-chan time.Time
	if wait > 0 {
		idle = time.After(wait)
	}
	timedOut := false
	for {
		batch, final, refused := c.collect(timedOut)
		switch {
		case refused:
			badRequest.answer(w)
			return
		case batch != nil:
			c.finishPoll(w, batch, final)
			return
		}
		select {
		case <-wake:
		case <-idle:
			timedOut = true
		case <-r.Context().Done():
			c.end(errPollGone, 0)
			return
		}
	}
}

// sitDown makes the caller the one that waits for packets, for a while or, if that is
// 0, without end. It returns no channel if there is nothing to wait for here, and an
// error if that ends the connection.
func (c *Conn) sitDown() (wake <-chan struct{}, wait time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed {
		c.owed = false
		c.server.forget(c)
		c.timer.Stop()
	} else if c.ws != nil || c.state == isOver {
		return nil, 0, nil
	}
	switch {
	case c.poll != nil:
		return nil, 0, errTwoPolls
	case c.missedPing():
		return nil, 0, errSilent
	}
	c.poll, c.late = make(chan struct{}, 1), c.trial.probed
	return c.poll, c.trial.patience(), nil
}

// collect returns the response to the pending poll: nil if there is nothing to send and
// timedOut is false. The poll counts as answered after that, because the client may poll
// again as soon as it has read the last byte, which the server cannot observe. A poll that
// the client sent after it announced the upgrade is refused.
func (c *Conn) collect(timedOut bool) (batch []packet, final, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state == isOver:
		batch = []packet{{kind: c.last}}
	case c.ws != nil && c.late:
		refused = true
	case c.ws != nil:
		batch = []packet{{kind: kindNoop}}
	default:
		if c.takePing() {
			batch = append(batch, packet{kind: kindPing})
		}
		batch = append(batch, c.out.popUpTo(c.server.o.MaxPayload-2*int64(len(batch)))...)
		final = c.state == isDraining && len(c.out.packets) == 0
		if final {
			batch = append(batch, packet{kind: kindClose})
		}
		if batch == nil && (timedOut || c.nudge) {
			batch = []packet{{kind: kindNoop}}
		}
	}
	if batch != nil || refused {
		c.poll, c.nudge = nil, false
	}
	return batch, final, refused
}

// finishPoll writes the answer and makes room for more.
func (c *Conn) finishPoll(w http.ResponseWriter, batch []packet, final bool) {
	err := c.answer(w, batch)
	n := 0
	for _, p := range batch {
		if p.kind == kindMessage {
			n += cost(p)
		}
	}
	c.mu.Lock()
	c.out.written(n)
	c.mu.Unlock()
	switch {
	case err != nil:
		c.end(errPollWrite, 0)
	case final:
		c.end(ErrClosed, 0) // the reason has been given
	}
}

// servePost takes packets from the client.
func (c *Conn) servePost(w http.ResponseWriter, r *http.Request) {
	open, err := c.beginPost()
	if err != nil {
		c.end(err, 0)
	}
	if !open {
		badRequest.answer(w)
		return
	}
	o := c.server.o
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(o.patience(o.MaxPayload))) // where it can be set
	body, err := io.ReadAll(hearing{http.MaxBytesReader(w, r.Body, c.most.Load()), c})
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			c.end(errTooLarge, 0)
			tooLarge.answer(w)
			return
		}
		c.end(errPostGone, 0)
		badRequest.answer(w)
		return
	}
	if err := c.takeBody(r.Context(), body); err != nil {
		badRequest.answer(w)
		return
	}
	c.endPost()
	head(w, "text/plain; charset=UTF-8")
	_, _ = io.WriteString(w, "ok")
}

// takeBody does what a polling body asks for. An error ended the connection and
// is the client's fault.
func (c *Conn) takeBody(ctx context.Context, body []byte) error {
	for p, err := range parsePayload(body) {
		if err == nil {
			err = c.handle(ctx, p)
		}
		switch {
		case err == nil:
			continue
		case err == errClientClosed:
			c.end(err, 0)
			return nil
		case errors.Is(err, ErrClosed): // by us; its poll tells it
			return nil
		case ctx.Err() != nil:
			c.end(errPostGone, 0)
		default:
			c.end(ended(err.Error()), 0)
		}
		return err
	}
	return nil
}

// beginPost makes the caller the only receiver of packets. It returns false if none are received
// here, and an error if there is another receiver.
func (c *Conn) beginPost() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ws != nil || c.state == isOver {
		return false, nil
	}
	if c.posting {
		return false, errTwoPosts
	}
	c.posting = true
	return true, nil
}

func (c *Conn) endPost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posting = false
}
