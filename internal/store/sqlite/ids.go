package sqlite

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"sync/atomic"

	"deckhand/internal/session"
)

// An index over random IDs is the most expensive part of a create: every new entry dirties a
// page of its own, and all those pages must be written and synced. So generated IDs encode where
// their session is: an ID is its number n and 64 random bits, encrypted with a key of this file.
// From outside it is 32 random hex digits; here it needs no index. IDs chosen by a client have
// an index.
type ids struct {
	block cipher.Block
	last  atomic.Int64 // the highest n in use or given away
}

const idKey = "id_key"

// openIDs reads the key and the highest n. A new file gets a key.
func openIDs(c *conn, writable bool) (*ids, error) {
	var key []byte
	found, err := c.one(selectMeta, func(row []driver.Value) { key = bytesOf(row[0]) }, idKey)
	if err != nil {
		return nil, err
	}
	if !found {
		key = make([]byte, 16)
		_, _ = rand.Read(key)
		if writable {
			// Of two processes that open a new file together, the first one's key counts.
			if _, err := c.exec("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", idKey, key); err != nil {
				return nil, err
			}
			if _, err := c.one(selectMeta, func(row []driver.Value) { key = bytesOf(row[0]) }, idKey); err != nil {
				return nil, err
			}
		}
	}
	out := &ids{}
	if out.block, err = aes.NewCipher(key); err != nil {
		return nil, err
	}
	return out, out.refresh(c)
}

// refresh learns which numbers are in use, in case another process used some.
func (i *ids) refresh(c *conn) error {
	_, err := c.one("SELECT max(n) FROM sessions", func(row []driver.Value) {
		for {
			last := i.last.Load()
			if n := number(row[0]); n <= last || i.last.CompareAndSwap(last, n) {
				return
			}
		}
	})
	return err
}

// NewID makes an unguessable id under which a session is stored most cheaply.
func (db *DB) NewID() session.ID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(db.ids.last.Add(1)))
	_, _ = rand.Read(b[8:])
	db.ids.block.Encrypt(b[:], b[:])
	return session.ID(hex.EncodeToString(b[:]))
}

// maxN is the end of the numbers: a key of events has no room for more.
const maxN = 1<<31 - 1

// place returns where the session is if the ID was generated here. Another ID may look like one
// once in billions; the row then shows it.
func (i *ids) place(id session.ID) (n int64, ours bool) {
	var b [16]byte
	if len(id) != 32 {
		return 0, false
	}
	if _, err := hex.Decode(b[:], []byte(id)); err != nil {
		return 0, false
	}
	i.block.Decrypt(b[:], b[:])
	n = int64(binary.BigEndian.Uint64(b[:]))
	return n, n > 0 && n <= maxN
}

// find runs a query for the row of an id: sql ends with WHERE.
func (db *DB) find(c *conn, sql string, id session.ID, get func(row []driver.Value)) (found bool, err error) {
	if n, ours := db.ids.place(id); ours {
		if found, err = c.one(sql+" n = ? AND id = ?", get, n, string(id)); err != nil || found {
			return found, err
		}
	}
	var n int64
	if named, err := c.one("SELECT n FROM names WHERE id = ?", func(row []driver.Value) { n = number(row[0]) }, string(id)); err != nil || !named {
		return false, err
	}
	return c.one(sql+" n = ? AND id = ?", get, n, string(id))
}

// findSession looks up a session's number and its last event's.
func (db *DB) findSession(c *conn, id session.ID) (n, last int64, found bool, err error) {
	found, err = db.find(c, "SELECT n, last FROM sessions WHERE", id, func(row []driver.Value) { n, last = number(row[0]), number(row[1]) })
	return n, last, found, err
}

// insert stores the row of a new session, or refuses because the id is taken.
func (a *appending) insert(c *conn) (int64, error) {
	id := a.batch.ID
	if n, ours := a.db.ids.place(id); ours && n <= a.db.ids.last.Load() {
		if changed, err := a.insertAt(c, n); err != nil || changed == 1 {
			return n, err
		}
	}
	if _, _, found, err := a.db.findSession(c, id); err != nil || found {
		return 0, orRefuse(err)
	}
	for {
		n := a.db.ids.last.Add(1)
		changed, err := a.insertAt(c, n)
		if err == nil && changed == 1 {
			_, err = c.exec("INSERT INTO names (id, n) VALUES (?, ?)", string(id), n)
		}
		if err != nil || changed == 1 {
			return n, err
		}
		if err := a.db.ids.refresh(c); err != nil { // another process took the number
			return 0, err
		}
	}
}

// insertAt stores the row under a number that may be taken. Upkeep files it later, unless it is
// too late for that.
func (a *appending) insertAt(c *conn, n int64) (changed int64, err error) {
	f, err := c.facts()
	if err != nil {
		return 0, err
	}
	late := n <= f.filed
	at := append(append([]driver.Value{n, string(a.batch.ID)}, a.columns()...), truth(late || !a.db.defers))
	if changed, err = c.exec(insertRow, at...); err == nil && changed == 1 && !late && !a.db.defers {
		_, err = c.exec(moveFiled, n+filedAhead) // else lists would read it as one that may not be filed
		c.forgetFacts()
	}
	return changed, err
}

func orRefuse(err error) error {
	if err == nil {
		err = refuse(session.ErrConflict)
	}
	return err
}

// learnIDs opens a connection's worth of ids; for reading only, a key is never made.
func (db *DB) learnIDs(ctx context.Context) error {
	return db.readers.read(ctx, func(c *conn) (err error) {
		db.ids, err = openIDs(c, false)
		return err
	})
}
