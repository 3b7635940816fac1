package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

// How many attempts are made at once. Each is for another webhook: what goes to
// one receiver goes one after the other, in order. A user may occupy a part
// only, so that receivers who never answer hold up their own user.
const (
	atOnce        = 32
	atOncePerUser = 4
	// manyDue is enough to fill all places, whoever must be passed over.
	manyDue = 512
)

const (
	trimEvery = time.Hour
	// storeAgain is how long to wait when the store fails.
	storeAgain = 5 * time.Second
)

// Dispatcher sends what is in the outbox.
type Dispatcher struct {
	outbox Outbox
	seal   Sealer
	client *http.Client
	logger *slog.Logger

	busy  map[string]string // users by webhook, for those that an attempt is made for
	users map[string]int    // how many of these each user has
	ended chan string

	delivered, failed, givenUp, disabled atomic.Int64
}

// NewDispatcher makes one. The client decides which addresses may be dialled;
// its timeout and its way with redirects are replaced.
func NewDispatcher(outbox Outbox, seal Sealer, client *http.Client, logger *slog.Logger) *Dispatcher {
	own := *client
	own.Timeout = attemptTime
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Dispatcher{outbox: outbox, seal: seal, client: &own, logger: logger,
		busy: map[string]string{}, users: map[string]int{}, ended: make(chan string, atOnce)}
}

// Stats are counts since the start.
type Stats struct {
	Delivered int64 // attempts that succeeded
	Failed    int64 // attempts that did not
	GivenUp   int64 // deliveries that are not tried again
	Disabled  int64 // webhooks that were disabled because of their failures
}

// Stats says what was done.
func (d *Dispatcher) Stats() Stats {
	return Stats{Delivered: d.delivered.Load(), Failed: d.failed.Load(), GivenUp: d.givenUp.Load(), Disabled: d.disabled.Load()}
}

// Run sends until ctx ends. Attempts that are under way then are broken off and
// made again by the next Run.
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.client.CloseIdleConnections()
	trim := time.NewTicker(trimEvery)
	defer trim.Stop()
	d.trim(ctx)
	for {
		wake := d.fill(ctx)
		select {
		case <-ctx.Done():
			for len(d.busy) > 0 {
				d.release(<-d.ended)
			}
			return nil
		case id := <-d.ended:
			d.release(id)
		case <-d.outbox.Added():
		case <-wake:
		case <-trim.C:
			d.trim(ctx)
		}
	}
}

// fill begins all attempts that may be made now. The channel says when to look
// again, if nothing happens before.
func (d *Dispatcher) fill(ctx context.Context) <-chan time.Time {
	if ctx.Err() != nil || len(d.busy) >= atOnce {
		return nil
	}
	now := time.Now()
	due, next, err := d.outbox.Due(ctx, now, manyDue)
	if err != nil {
		d.complain(ctx, "cannot read the webhook outbox", err)
		return time.After(storeAgain)
	}
	for _, r := range due {
		if _, at := d.busy[r.Webhook]; at || d.users[r.User] >= atOncePerUser {
			continue // its end makes us look again
		}
		if len(d.busy) >= atOnce {
			break
		}
		d.busy[r.Webhook] = r.User
		d.users[r.User]++
		go func() {
			d.attempt(ctx, r.Webhook)
			d.ended <- r.Webhook
		}()
	}
	if next.IsZero() {
		return nil
	}
	return time.After(next.Sub(now))
}

func (d *Dispatcher) release(webhook string) {
	user := d.busy[webhook]
	delete(d.busy, webhook)
	if d.users[user]--; d.users[user] == 0 {
		delete(d.users, user)
	}
}

// attempt sends what is due first for a webhook, and settles it.
func (d *Dispatcher) attempt(ctx context.Context, webhook string) {
	w, del, found, err := d.outbox.Next(ctx, webhook, time.Now())
	if err != nil {
		d.complain(ctx, "cannot read a webhook delivery", err)
		pause(ctx)
		return
	}
	if !found { // it was changed this moment; whatever is wrong, do not look without end
		pause(ctx)
		return
	}
	var a answer
	if t, err := openTarget(ctx, d.seal, w); err != nil {
		a = answer{problem: "cannot decrypt the webhook secret"}
	} else {
		a = d.send(ctx, t, del)
	}
	if ctx.Err() != nil && a.status == 0 {
		return // it is we who broke it off
	}
	was := w
	w, del = judge(w, del, a, time.Now(), 0.8+0.4*rand.Float64())
	d.count(was, w, del)
	// A server that stops shall not forget what was delivered.
	d.settle(context.WithoutCancel(ctx), ctx, w, del)
}

// settle records an attempt. As long as that fails nothing else is sent to the
// webhook: it would be sent again and again.
func (d *Dispatcher) settle(store, ctx context.Context, w Webhook, del Delivery) {
	for {
		err := d.outbox.Settle(store, w, del)
		if err == nil || ctx.Err() != nil {
			return
		}
		d.complain(ctx, "cannot record a delivery", err)
		pause(ctx)
	}
}

func (d *Dispatcher) count(was, is Webhook, del Delivery) {
	log := d.logger.With("webhook", is.ID, "user", is.User, "delivery", del.ID, "attempt", del.Attempts)
	if del.State == Delivered {
		d.delivered.Add(1)
		log.Debug("webhook delivered", "status", del.Status)
		return
	}
	d.failed.Add(1)
	log.Debug("webhook delivery failed", "problem", del.Error)
	if del.State == GivenUp {
		d.givenUp.Add(1)
	}
	if was.Enabled && !is.Enabled {
		d.disabled.Add(1)
		log.Warn("webhook disabled", "reason", is.Health.Disabled)
	}
}

func (d *Dispatcher) trim(ctx context.Context) {
	if err := d.outbox.Trim(ctx, time.Now().Add(-KeptFor)); err != nil {
		d.complain(ctx, "cannot delete old deliveries", err)
	}
}

func (d *Dispatcher) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		d.logger.Error(what, "error", err)
	}
}

// pause waits a little after a failure of the store.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(storeAgain):
	}
}
