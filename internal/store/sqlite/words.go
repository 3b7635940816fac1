package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
)

// The index of words lags behind the sessions: upkeep files them later. A search
// therefore also looks at what is not filed yet, and compares every row it finds: the
// index only says where to look.
const (
	// A word that more sessions have than this is found sooner in the list itself.
	fewMatches = 256
	// fileBatch sessions are filed in one transaction. Others wait for it.
	fileBatch = 64
	// mergePages of the index are merged in one transaction.
	mergePages = 256
)

const (
	selectNew     = "SELECT n, owner, deleted, row FROM sessions WHERE n > (SELECT value FROM counters WHERE name = 'words') ORDER BY n LIMIT 257"
	selectUnfiled = "SELECT s.n, s.owner, s.deleted, s.row FROM unfiled u JOIN sessions s ON s.n = u.n LIMIT 257"
	selectFiled   = `SELECT s.n, s.owner, s.deleted, s.row FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT 257) w
		JOIN sessions s ON s.n = w.rowid`
)

// matches is Rows by the index of words. It is not ok if the index cannot help: then the
// list has to be searched.
func (db *DB) matches(ctx context.Context, q session.Query, search packed.Search) (rows []session.Row, ok bool, err error) {
	phrase := search.Phrase()
	if phrase == "" {
		return nil, false, nil
	}
	seen := map[int64]bool{}
	err = db.readers.read(ctx, func(c *conn) error {
		// What is filed while this reads is then found twice, not missed.
		for _, part := range []struct {
			sql  string
			args []driver.Value
		}{{selectNew, nil}, {selectUnfiled, nil}, {selectFiled, []driver.Value{phrase}}} {
			count := 0
			err := c.query(part.sql, func(v []driver.Value) error {
				if count++; count > fewMatches {
					return enough
				}
				n := number(v[0])
				if seen[n] || text(v[1]) != q.Owner || number(v[2]) != 0 || !search.Wants(bytesOf(v[3])) {
					return nil
				}
				seen[n] = true
				r, err := packed.ReadRow(bytesOf(v[3]))
				if err == nil && (q.Before == nil || packed.InOrder(*q.Before, packed.CursorOf(r)) < 0) {
					rows = append(rows, r)
				}
				return err
			}, part.args...)
			if err != nil || count > fewMatches {
				return err
			}
		}
		ok = true
		return nil
	})
	if err != nil || !ok {
		return nil, false, err
	}
	return packed.FirstOf(rows, q.Limit), true, nil
}

// fileAll files sessions until all are.
func (db *DB) fileAll(ctx context.Context, factor int) error {
	for {
		begin := time.Now()
		if n, err := db.file(ctx); err != nil || n == 0 {
			return err
		}
		packed.Throttle(ctx, begin, factor)
	}
}

// file puts the next sessions into the index of words, and says how many.
func (db *DB) file(ctx context.Context) (filed int, err error) {
	err = db.write(ctx, 0, func(c *conn) error {
		defer c.forgetFacts()
		type entry struct {
			n    int64
			text string
		}
		var entries []entry
		last := int64(0)
		take := func(v []driver.Value) error {
			words, err := packed.Words(bytesOf(v[3]))
			if number(v[2]) != 0 || err != nil { // what is damaged is reported by who reads it
				words = ""
			}
			if entries = append(entries, entry{number(v[0]), words}); len(entries) >= fileBatch {
				return enough
			}
			return nil
		}
		if err := c.query(selectUnfiled, take); err != nil {
			return err
		}
		changed := len(entries)
		if changed < fileBatch {
			if err := c.query(selectNew, take); err != nil {
				return err
			}
		}
		if filed = len(entries); filed == 0 {
			return refuse(errNothing)
		}
		for i, e := range entries {
			sql, args := "INSERT OR REPLACE INTO words (rowid, text) VALUES (?, ?)", []driver.Value{e.n, e.text}
			if e.text == "" {
				sql, args = "DELETE FROM words WHERE rowid = ?", args[:1]
			}
			if _, err := c.exec(sql, args...); err != nil {
				return err
			}
			if i >= changed {
				last = e.n
			} else if _, err := c.exec("DELETE FROM unfiled WHERE n = ?", e.n); err != nil {
				return err
			}
		}
		if last > 0 {
			_, err := c.exec("UPDATE counters SET value = ? WHERE name = 'words'", last)
			return err
		}
		return nil
	})
	return filed, orNothing(err)
}

// mergeWords makes one tree of the many small ones that filing leaves, a piece at a time: a
// search looks into each of them.
func (db *DB) mergeWords(ctx context.Context, factor int) error {
	for first := true; ; first = false {
		begin := time.Now()
		more := false
		err := db.write(ctx, 0, func(c *conn) error {
			var before, after int64
			count := "SELECT total_changes()"
			if _, err := c.one(count, func(v []driver.Value) { before = number(v[0]) }); err != nil {
				return err
			}
			// A negative number begins a merge of all trees, a positive one continues it.
			pages := int64(mergePages)
			if first {
				pages = -pages
			}
			if _, err := c.exec("INSERT INTO words (words, rank) VALUES ('merge', ?)", pages); err != nil {
				return err
			}
			_, err := c.one(count, func(v []driver.Value) { after = number(v[0]) })
			more = after-before >= 2 // SQLite's own sign that there was something to merge
			return err
		})
		if err != nil || !more {
			return err
		}
		packed.Throttle(ctx, begin, factor)
	}
}
