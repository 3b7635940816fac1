package members

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"deckhand/internal/store/postgres/pg"
)

// grip is one taking of a lock. Its token tells it from a later one by the same member.
type grip struct{ name, member, token string }

// releases are locks that could not be released because the database was away. Their holder is alive, so they would last
// until they expire, and requests that are repeated would wait for that long. One goroutine releases all of them.
type releases struct {
	mu      sync.Mutex
	left    map[grip]time.Time // when they expire
	running bool
}

const unlock = `DELETE FROM deckhand.shared WHERE name = $1 AND holder = $2 AND value = $3`

// unlock releases a lock. If the database does not answer, that is done as soon as it does.
func (l *Leases) unlock(g grip) {
	if l.tryUnlock(g) == nil {
		return
	}
	r := &l.releases
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = map[grip]time.Time{}
	}
	r.left[g] = time.Now().Add(held)
	if !r.running {
		r.running = true
		go l.unlockLater()
	}
}

func (l *Leases) tryUnlock(g grip) error {
	ctx, cancel := context.WithTimeout(context.Background(), pg.CloseTimeout)
	defer cancel()
	return l.DB.View(ctx, func(c *pg.Conn) error {
		_, err := c.Exec(unlock, g.name, g.member, g.token)
		return err
	})
}

// unlockLater releases what is left until nothing is, or the database is closed.
func (l *Leases) unlockLater() {
	for {
		time.Sleep(longPause)
		for {
			g, ok := l.releases.next()
			if !ok {
				return
			}
			err := l.tryUnlock(g)
			if errors.Is(err, pg.ErrClosed) {
				return
			}
			if err != nil {
				break // all others would wait for the database as well
			}
			l.releases.done(g)
		}
	}
}

// next returns a lock that is left and has not expired. If there is none, the goroutine has ended.
func (r *releases) next() (g grip, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.left, func(_ grip, expires time.Time) bool { return time.Now().After(expires) })
	for g = range r.left {
		return g, true
	}
	r.running = false
	return g, false
}

func (r *releases) done(g grip) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.left, g)
}
