package members

import (
	"context"
	"crypto/rand"
	"time"

	"deckhand/internal/store/postgres/pg"
)

const (
	// held is how long a lock lasts at most, if its holder is alive and cannot release it.
	held = 10 * time.Minute
	// A lock that another member has is asked for again after a pause.
	shortPause, longPause = 10 * time.Millisecond, 250 * time.Millisecond
)

const (
	put   = `INSERT INTO deckhand.shared (name, value, holder, expires) VALUES ($2, $3, '', ` + clock + ` + $4::bigint * interval '1 microsecond') ON CONFLICT (name) DO NOTHING`
	take  = `DELETE FROM deckhand.shared WHERE name = $2 RETURNING value, expires > ` + clock
	drop  = `DELETE FROM deckhand.shared WHERE expires <= ` + clock
	newer = `SELECT made, name, (extract(epoch FROM expires) * 1000000)::bigint FROM deckhand.shared WHERE made > $2 AND starts_with(name, $3) AND expires > ` + clock + ` ORDER BY made`
	lock  = `INSERT INTO deckhand.shared AS s (name, value, holder, expires) VALUES ($2, $5, $3, ` + clock + ` + $4::bigint * interval '1 microsecond')
		ON CONFLICT (name) DO UPDATE SET value = excluded.value, holder = excluded.holder, expires = excluded.expires
		WHERE s.expires <= ` + clock + ` OR NOT EXISTS (SELECT FROM deckhand.members m WHERE m.member = s.holder AND m.expires > ` + clock + `) RETURNING true`
)

// Put keeps a value under a name that is used once, for a while.
func (l *Leases) Put(ctx context.Context, name, value string, life time.Duration) error {
	return l.DB.View(ctx, func(c *pg.Conn) error {
		if _, err := c.Exec(drop, l.at()); err != nil {
			return err
		}
		_, err := c.Exec(put, l.at(), name, value, life.Microseconds())
		return err
	})
}

// Take removes a value and returns it. Only one of several callers gets it.
func (l *Leases) Take(ctx context.Context, name string) (value string, found bool, err error) {
	err = l.DB.View(ctx, func(c *pg.Conn) error {
		_, err := c.One(take, func(v []any) { value, found = pg.Text(v[0]), pg.Truth(v[1]) }, l.at(), name)
		return err
	})
	return value, found, err
}

// Newer lists the names with a prefix that were put after a number, and when they end. It returns the last number.
func (l *Leases) Newer(ctx context.Context, prefix string, after int64) (names map[string]time.Time, last int64, err error) {
	err = l.DB.View(ctx, func(c *pg.Conn) error {
		names, last = map[string]time.Time{}, after
		return c.Query(newer, func(v []any) error {
			last = max(last, pg.Number(v[0]))
			names[pg.Text(v[1])] = time.UnixMicro(pg.Number(v[2]))
			return nil
		}, l.at(), after, prefix)
	})
	return names, last, err
}

// Lock waits until no live member has the lock with this name, and takes it for a member.
func (l *Leases) Lock(ctx context.Context, name, member string) (release func(), err error) {
	g := grip{name, member, rand.Text()}
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		mine := false
		err := l.DB.View(ctx, func(c *pg.Conn) (err error) {
			mine, err = c.One(lock, func([]any) {}, l.at(), name, member, held.Microseconds(), g.token)
			return err
		})
		if err != nil {
			if !pg.Unconnected(err) { // it may have been taken
				l.unlock(g)
			}
			return nil, err
		}
		if mine {
			return func() { l.unlock(g) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}
