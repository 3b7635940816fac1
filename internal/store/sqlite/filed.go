package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"deckhand/internal/store/packed"
)

// The index of an owner's sessions lags behind them, as that of words does: lists read what is
// not filed yet one by one.
const (
	// maxUnfiled is how many sessions lists may have to read: while more wait, filing does not rest.
	maxUnfiled = 4096
	// ownerBatch sessions are filed in one transaction. Others wait for it.
	ownerBatch = 256
	// filedAhead is how far the counter moves ahead of a session that was filed at once, so that
	// the next ones need not move it.
	filedAhead = 1023
)

const (
	notFiled = "n > (SELECT value FROM counters WHERE name = 'filed') AND filed = 0"

	selectNotFiled = "SELECT n, owner FROM sessions WHERE " + notFiled + " ORDER BY n LIMIT 4096"

	fileOwner = "UPDATE sessions SET filed = 1 WHERE n = ?"

	// moveFiled leaves out what was stored since: its n may be lower than others that are filed.
	moveFiled = `UPDATE counters SET value = coalesce((SELECT n - 1 FROM sessions WHERE n > value AND n <= ?1 AND filed = 0 ORDER BY n LIMIT 1), ?1)
		WHERE name = 'filed'`
)

// facts are what a transaction asks of many of its writes and needs to read once.
type facts struct {
	read         bool
	words, filed int64 // the counters
	webhooks     bool  // there are some
}

// facts reads them. Who changes one of them in a transaction forgets them.
func (c *conn) facts() (*facts, error) {
	if c.known.read {
		return &c.known, nil
	}
	_, err := c.one(`SELECT (SELECT value FROM counters WHERE name = 'words'), (SELECT value FROM counters WHERE name = 'filed'),
		EXISTS (SELECT 1 FROM webhooks)`, func(v []driver.Value) {
		c.known = facts{read: true, words: number(v[0]), filed: number(v[1]), webhooks: number(v[2]) != 0}
	})
	return &c.known, err
}

func (c *conn) forgetFacts() { c.known = facts{} }

// fileOwners puts sessions into the index of their owners until all are there, those of an
// owner together: they share pages, each of which is then written once.
func (db *DB) fileOwners(ctx context.Context, factor int) error {
	type entry struct {
		n     int64
		owner string
	}
	for {
		var waiting []entry
		err := db.readers.read(ctx, func(c *conn) error {
			return c.query(selectNotFiled, func(v []driver.Value) error {
				waiting = append(waiting, entry{number(v[0]), text(v[1])})
				return nil
			})
		})
		if err != nil || len(waiting) == 0 {
			return err
		}
		last, late := waiting[len(waiting)-1].n, len(waiting) == maxUnfiled
		slices.SortStableFunc(waiting, func(a, b entry) int { return cmp.Compare(a.owner, b.owner) })
		for some := range slices.Chunk(waiting, ownerBatch) {
			begin := time.Now()
			err := db.write(ctx, 0, func(c *conn) error {
				for _, e := range some {
					if _, err := c.exec(fileOwner, e.n); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			if !late {
				packed.Throttle(ctx, begin, factor)
			}
		}
		err = db.write(ctx, 0, func(c *conn) error {
			defer c.forgetFacts()
			_, err := c.exec(moveFiled, last)
			return err
		})
		if err != nil {
			return err
		}
	}
}
