package sqlite

import (
	"database/sql/driver"
	"fmt"

	"deckhand/internal/notify"
)

// outbox is what the writer knows of webhooks. Only its goroutine may touch it,
// but for added.
type outbox struct {
	// users are those who have an enabled webhook; nil when that must be looked
	// up. Webhooks are made by the server alone, which is the one process that
	// appends to their users' sessions.
	users map[string]bool
	// fresh says that the transaction made something due.
	fresh bool
	added chan struct{}
}

func newOutbox() outbox { return outbox{added: make(chan struct{}, 1)} }

func (o *outbox) committed() {
	if !o.fresh {
		return
	}
	o.fresh = false
	select {
	case o.added <- struct{}{}:
	default: // it was not looked at since the last time
	}
}

func (o *outbox) undone() { o.users, o.fresh = nil, false }

// listens says whether a user is to be told of anything.
func (o *outbox) listens(c *conn, user string) (bool, error) {
	if o.users == nil {
		users := map[string]bool{}
		err := c.query("SELECT DISTINCT user FROM webhooks WHERE enabled = 1", func(v []driver.Value) error {
			users[text(v[0])] = true
			return nil
		})
		if err != nil {
			return false, err
		}
		o.users = users
	}
	return o.users[user], nil
}

const (
	insertDelivery = `INSERT INTO deliveries (webhook, seq, id, type, session, event, body, created_at, state, attempts, next_at, took, status, error)
		SELECT w.id, coalesce((SELECT max(seq) FROM deliveries WHERE webhook = w.id), 0) + 1, ?, ?, ?, ?, ?, ?, 'waiting', 0, ?, 0, 0, ''
		FROM webhooks w WHERE `

	ofListeners = "user = ? AND enabled = 1 AND events & ? <> 0"

	queueNews = insertDelivery + ofListeners

	// armListeners makes the webhooks due for which queueNews has queued, and
	// disables those that have too much waiting.
	armListeners = `UPDATE webhooks SET waiting = waiting + 1, due_at = max(quiet_until, min(coalesce(due_at, ?1), ?1)),
		enabled = waiting + 1 < ?2, disabled = CASE WHEN waiting + 1 < ?2 THEN '' ELSE ?3 END
		WHERE user = ?4 AND enabled = 1 AND events & ?5 <> 0`
)

var overflow = fmt.Sprintf("%d deliveries wait for it", notify.MaxWaiting)

// tell queues the batch's news for the webhooks of its owner, in the transaction
// that appends. Users without webhooks cost a look into a map.
func (a *appending) tell(c *conn) error {
	if len(a.batch.News) == 0 {
		return nil
	}
	user := a.batch.Row.Owner
	if yes, err := a.db.outbox.listens(c, user); err != nil || !yes {
		return err
	}
	for _, n := range a.batch.News {
		d, wants := notify.Compose(a.batch.ID, n), int64(notify.Of(n.Kind))
		at := micros(d.CreatedAt)
		queued, err := c.exec(queueNews, d.ID, d.Type, string(d.Session), d.Event, d.Body, at, at, user, wants)
		if err != nil {
			return err
		}
		if queued == 0 {
			continue
		}
		if _, err := c.exec(armListeners, at, int64(notify.MaxWaiting), overflow, user, wants); err != nil {
			return err
		}
		a.db.outbox.fresh = true
	}
	return nil
}
