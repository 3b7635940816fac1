package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"deckhand/internal/queue"
)

// How many attempts are made at once. Each is for another webhook: what goes to
// one receiver goes one after the other, in order. A user may occupy a part
// only, so that receivers who never answer hold up their own user.
const (
	atOnce        = 32
	atOncePerUser = 4
)

// Dispatcher sends what is in the outbox.
type Dispatcher struct {
	outbox Outbox
	seal   Sealer
	client *http.Client
	logger *slog.Logger
	// People sends what is for browsers and e-mail; nil to skip it.
	People Announcer
	// Member is the process that sends.
	Member queue.Member

	delivered, failed, givenUp, disabled atomic.Int64
}

// NewDispatcher makes one. The client decides which addresses may be dialled;
// its timeout and its way with redirects are replaced.
func NewDispatcher(outbox Outbox, seal Sealer, client *http.Client, logger *slog.Logger) *Dispatcher {
	own := *client
	own.Timeout = attemptTime
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Dispatcher{outbox: outbox, seal: seal, client: &own, logger: logger}
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

// Measure registers the counts as metrics.
func (d *Dispatcher) Measure(counter func(name, help string, value func() float64)) {
	counter("deckhand_webhook_delivered_total", "Successful webhook attempts.", func() float64 { return float64(d.delivered.Load()) })
	counter("deckhand_webhook_failed_total", "Failed webhook attempts.", func() float64 { return float64(d.failed.Load()) })
	counter("deckhand_webhook_given_up_total", "Webhook deliveries that were given up.", func() float64 { return float64(d.givenUp.Load()) })
	counter("deckhand_webhook_disabled_total", "Webhooks disabled after repeated failures.", func() float64 { return float64(d.disabled.Load()) })
}

// Run sends until ctx ends. Attempts that are under way then are broken off and
// made again by the next Run.
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.client.CloseIdleConnections()
	r := queue.Runner{Member: d.Member, Store: d.outbox, Logger: d.logger, AtOnce: atOnce, PerUser: atOncePerUser, Work: d.attempt, Added: d.outbox.Added(), Sweep: d.trim}
	return r.Run(ctx)
}

// attempt sends what is due first for a webhook, and settles it.
func (d *Dispatcher) attempt(ctx context.Context, lane queue.Lane) (released bool) {
	w, del, found, err := d.outbox.Next(ctx, lane.Name, time.Now())
	if err != nil {
		d.complain(ctx, "cannot read a webhook delivery", err)
		queue.Pause(ctx)
		return false
	}
	if !found { // it was changed this moment; whatever is wrong, do not look without end
		queue.Pause(ctx)
		return false
	}
	del.Claim = lane.Claimed()
	if KindOf(w.ID) != KindWebhook {
		return d.announce(ctx, w, del)
	}
	var a answer
	if t, err := openTarget(ctx, d.seal, w); err != nil {
		a = answer{problem: "cannot decrypt the webhook secret"}
	} else {
		a = d.send(ctx, t, del)
	}
	if ctx.Err() != nil && a.status == 0 {
		return false // it is we who broke it off
	}
	return d.judge(ctx, w, del, a)
}

// judge records what becomes of a delivery after an attempt.
func (d *Dispatcher) judge(ctx context.Context, w Webhook, del Delivery, a answer) bool {
	was := w
	w, del = judge(w, del, a, time.Now(), 0.8+0.4*rand.Float64())
	d.count(was, w, del)
	// A server that stops must still record what was delivered.
	return d.settle(context.WithoutCancel(ctx), ctx, w, del)
}

// settle records an attempt. As long as that fails nothing else is sent to the
// webhook: it would be sent again and again.
func (d *Dispatcher) settle(store, ctx context.Context, w Webhook, del Delivery) bool {
	for {
		err := d.outbox.Settle(store, w, del)
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		d.complain(ctx, "cannot record a delivery", err)
		queue.Pause(ctx)
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
