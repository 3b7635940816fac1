package notify

import (
	"context"
	"time"
)

// Announcer tells people. Announce makes one attempt to deliver d to w, which is not a webhook,
// and may be called again with the same delivery if the process dies before the result is stored.
type Announcer interface {
	Announce(ctx context.Context, w Webhook, d Delivery) Result
}

// Result is how an attempt to tell a person went. The zero Result is a success.
type Result struct {
	// Status is the number that the receiver responded with; 0 for none.
	Status int
	// Problem is why it failed; "" if it did not. A Final problem is not tried again.
	Problem string
	Final   bool
	// Later is how long the receiver asked to be left alone.
	Later time.Duration
	// Skipped is why nothing is sent.
	Skipped string
	// NotBefore is when to ask again, because the person wants to be left alone until then.
	NotBefore time.Time
	// Gone says that the receiver does not exist any more.
	Gone bool
}

// announce sends a delivery to a person and settles it.
func (d *Dispatcher) announce(ctx context.Context, w Webhook, del Delivery) (released bool) {
	r := Result{Skipped: "this server does not send it"}
	begin := time.Now()
	if d.People != nil {
		r = d.People.Announce(ctx, w, del)
	}
	if ctx.Err() != nil && r.Status == 0 && r.Problem != "" {
		return false // it is we who broke it off
	}
	store := context.WithoutCancel(ctx)
	switch {
	case r.Gone:
		if err := d.outbox.RemoveWebhook(store, w.User, w.ID); err != nil {
			d.complain(ctx, "cannot remove a device that does not exist any more", err)
			return false
		}
		d.logger.Info("push subscription removed: it expired", "device", w.ID, "user", w.User)
		return true
	case r.Skipped != "":
		del.State, del.NextAt, del.Error = Skipped, time.Time{}, r.Skipped
		return d.settle(store, ctx, w, del)
	case !r.NotBefore.IsZero():
		del.NextAt = r.NotBefore
		return d.settle(store, ctx, w, del)
	}
	return d.judge(ctx, w, del, answer{status: r.Status, problem: r.Problem, final: r.Final, later: r.Later, took: time.Since(begin)})
}
