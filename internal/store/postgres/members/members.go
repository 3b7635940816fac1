// Package members keeps the leases of servers that use a database together, and what they must know of each other at
// once. All times are those of the database's clock, and nothing is kept in a connection, so that it works through a
// pooler in transaction mode.
package members

import (
	"context"
	"strings"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/store/postgres/pg"
)

const (
	// lease is how long a lease lasts without being renewed.
	lease = 10 * time.Second
	// remembered is how long members are listed that have ended.
	remembered = 30 * 24 * time.Hour
)

// Leases implements cluster.Leases and cluster.Directory.
type Leases struct {
	DB *pg.DB
	// Self describes the members whose leases are held here: all but their names.
	Self cluster.Info

	now      func() int64 // microseconds since 1970; nil is the database's clock
	releases releases
}

var (
	_ cluster.Leases    = (*Leases)(nil)
	_ cluster.Directory = (*Leases)(nil)
)

// clock is the time in statements whose first parameter is that of at.
const clock = "(CASE WHEN $1::bigint = 0 THEN clock_timestamp() ELSE timestamptz 'epoch' + $1 * interval '1 microsecond' END)"

const (
	hold = `INSERT INTO deckhand.members AS m (member, machine, host, address, worker, dir, expires) VALUES ($2, $3, $4, $5, $6, $7, ` + clock + ` + $8::bigint * interval '1 microsecond')
		ON CONFLICT (member) DO UPDATE SET machine = excluded.machine, host = excluded.host, address = excluded.address, worker = excluded.worker, dir = excluded.dir, expires = excluded.expires`
	renew   = `UPDATE deckhand.members SET expires = ` + clock + ` + $3::bigint * interval '1 microsecond' WHERE member = $2 AND expires > ` + clock + ` RETURNING true`
	release = `UPDATE deckhand.members SET expires = ` + clock + ` WHERE member = $2 AND expires > ` + clock
	list    = `SELECT m.member, m.machine, m.host, m.address, m.worker, m.dir, m.expires > ` + clock + `, coalesce(s.value, '') FROM deckhand.members m
		LEFT JOIN deckhand.shared s ON s.name = 'engines ' || m.member AND s.expires > ` + clock + ` ORDER BY m.member`
	// What members reach is in the other table, so that older versions, which do not know of it, can be members too.
	reach = `INSERT INTO deckhand.shared (name, value, holder, expires) VALUES ('engines ' || $2::text, $3, $2, ` + clock + ` + $4::bigint * interval '1 microsecond')
		ON CONFLICT (name) DO UPDATE SET value = excluded.value, expires = excluded.expires`
	forget = `DELETE FROM deckhand.members WHERE expires < ` + clock + ` - $2::bigint * interval '1 microsecond'`
)

func (l *Leases) at() int64 {
	if l.now == nil {
		return 0
	}
	return l.now()
}

// Hold implements cluster.Leases.
func (l *Leases) Hold(ctx context.Context, member string) error {
	machine := l.Self.Machine
	if machine == "" {
		machine = cluster.MachineOf(member)
	}
	return l.DB.Reserved(ctx, func(c *pg.Conn) error {
		if _, err := c.Exec(forget, l.at(), remembered.Microseconds()); err != nil {
			return err
		}
		_, err := c.Exec(hold, l.at(), member, machine, l.Self.Host, l.Self.Address, l.Self.Worker, l.Self.Dir, lease.Microseconds())
		return err
	})
}

// Renew implements cluster.Leases.
func (l *Leases) Renew(ctx context.Context, member string) error {
	held := false
	err := l.DB.Reserved(ctx, func(c *pg.Conn) (err error) {
		held, err = c.One(renew, func([]any) {}, l.at(), member, lease.Microseconds())
		return err
	})
	if err == nil && !held {
		err = cluster.ErrExpired
	}
	return err
}

// Release implements cluster.Leases.
func (l *Leases) Release(ctx context.Context, member string) error {
	return l.DB.Reserved(ctx, func(c *pg.Conn) error {
		_, err := c.Exec(release, l.at(), member)
		return err
	})
}

// Members implements cluster.Directory.
func (l *Leases) Members(ctx context.Context) (all []cluster.Info, err error) {
	err = l.DB.View(ctx, func(c *pg.Conn) error {
		all = nil
		return c.Query(list, func(v []any) error {
			all = append(all, cluster.Info{Name: pg.Text(v[0]), Machine: pg.Text(v[1]), Host: pg.Text(v[2]), Address: pg.Text(v[3]), Worker: pg.Truth(v[4]), Dir: pg.Text(v[5]), Live: pg.Truth(v[6]), Engines: lines(pg.Text(v[7]))})
			return nil
		}, l.at())
	})
	return all, err
}

// lines splits a text into lines; none for "".
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Reach implements cluster.Roster.
func (l *Leases) Reach(ctx context.Context, member string, engines []string, life time.Duration) error {
	return l.DB.View(ctx, func(c *pg.Conn) error {
		if _, err := c.Exec(drop, l.at()); err != nil {
			return err
		}
		_, err := c.Exec(reach, l.at(), member, strings.Join(engines, "\n"), life.Microseconds())
		return err
	})
}

// Live implements cluster.Leases.
func (l *Leases) Live(ctx context.Context) ([]string, error) {
	all, err := l.Members(ctx)
	var live []string
	for _, m := range all {
		if m.Live {
			live = append(live, m.Name)
		}
	}
	return live, err
}

// Duration implements cluster.Leases.
func (l *Leases) Duration() time.Duration { return lease }

// WithClock returns leases with another clock, in microseconds since 1970, for tests.
func WithClock(l *Leases, now func() int64) *Leases {
	l.now = now
	return l
}
