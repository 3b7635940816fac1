package postgres

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"

	"deckhand/internal/session"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/records"
)

// An ID that is made here says where its session is: it is the session's number and 64 random
// bits, encrypted with a key of this database. Numbers come in blocks, so that an ID is made
// without a query. IDs chosen by clients have an index.
type ids struct {
	db    *pg.DB
	block cipher.Block

	mu        sync.Mutex
	next, end int64 // the numbers that are left
	filling   bool
}

const (
	idKey = "id_key"
	// blockSize is the increment of the sequence. When few are left, the next block is fetched.
	blockSize = 1024
	few       = 256
	// maxN is the end of the numbers. One of sixteen million random IDs decrypts to such a number;
	// the row then shows that it has another ID.
	maxN = 1<<40 - 1
)

// openIDs reads the key. A new database gets one.
func openIDs(c *pg.Conn, db *pg.DB) (*ids, error) {
	key := make([]byte, 16)
	_, _ = rand.Read(key)
	get := func(row []any) { key = pg.Bytes(row[0]) }
	found, err := c.One(records.SelectMeta, get, idKey)
	if err != nil {
		return nil, err
	}
	if !found && !db.ReadOnly {
		// Of two processes that open a new database together, the first one's key counts.
		if _, err := c.Exec("INSERT INTO deckhand.meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", idKey, key); err != nil {
			return nil, err
		}
		if _, err := c.One(records.SelectMeta, get, idKey); err != nil {
			return nil, err
		}
	}
	out := &ids{db: db}
	out.block, err = aes.NewCipher(key)
	return out, err
}

// NewID implements store.Backend. If the database gives no numbers, the ID is random and found like an
// ID chosen by a client.
func (db *DB) NewID() session.ID {
	n := db.ids.take()
	if n == 0 {
		return session.NewID()
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	_, _ = rand.Read(b[8:])
	db.ids.block.Encrypt(b[:], b[:])
	return session.ID(hex.EncodeToString(b[:]))
}

// take returns a number that is used once; 0 if there is none.
func (i *ids) take() (n int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.end == 0 && !i.filling { // the first: wait for it
		i.filling = true
		i.mu.Unlock()
		i.fill()
		i.mu.Lock()
	}
	if i.next < i.end {
		n = i.next
		i.next++
	}
	if i.end-i.next < few && !i.filling {
		i.filling = true
		i.db.Background.Go(i.fill)
	}
	return n
}

// fill fetches a block.
func (i *ids) fill() {
	ctx, stop := context.WithTimeout(context.Background(), pg.CloseTimeout)
	defer stop()
	var first int64
	err := i.db.View(ctx, func(c *pg.Conn) error {
		_, err := c.One("SELECT nextval('deckhand.session_numbers')", func(v []any) { first = pg.Number(v[0]) })
		return err
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.filling = false
	if err == nil && first+blockSize <= maxN {
		i.next, i.end = first, first+blockSize
	}
}

// place returns where the session is if the ID was made here.
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

// whereID finds a session by its ID. The conditions take the number that the ID says, if it says one, and
// the ID, as $1 and $2.
const whereID = " FROM deckhand.sessions WHERE n IN ($1, (SELECT m.n FROM deckhand.names m WHERE m.id = $2)) AND id = $2"

// find runs a query for the row of an id.
func (db *DB) find(c *pg.Conn, columns string, id session.ID, get func(row []any)) (found bool, err error) {
	n, ours := db.ids.place(id)
	if !ours {
		n = 0
	}
	return c.One("SELECT "+columns+whereID, get, n, string(id))
}

// findSession looks up a session's number and its last event's.
func (db *DB) findSession(c *pg.Conn, id session.ID) (n, last int64, found bool, err error) {
	found, err = db.find(c, "n, last", id, func(row []any) { n, last = pg.Number(row[0]), pg.Number(row[1]) })
	return n, last, found, err
}
