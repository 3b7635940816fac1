package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	lib "modernc.org/sqlite/lib"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/sqlite/reserve"
)

const (
	// readerConns is enough to keep two cores busy; more would only hold caches.
	readerConns = 4
	// Page caches, in KiB. The operating system caches the file as well, so these
	// need to hold little more than the upper levels of the trees.
	writerCache = 2048
	readerCache = 512
)

// Options may be left at their zero value.
type Options struct {
	// Reserve is how much space to keep for when the disk is full, so that stops,
	// deletions and failures can still be recorded; 0 for none. Only one process
	// at a time may have one.
	Reserve int64
	// Upkeep files new sessions for searches and compresses old logs, beside other work.
	Upkeep bool
	// BusyTimeout is how long to wait for another process that writes (default 5 s).
	BusyTimeout time.Duration
}

// DB is an open file.
type DB struct {
	path       string
	readonly   bool
	readers    *readers
	writer     *writer       // nil when read-only
	checkpoint *checkpointer // nil when read-only
	upkeep     *upkeep       // nil unless it was asked for

	ids     *ids
	known   known // only the writer's goroutine may touch it
	unfiled bool  // so here: upkeep has sessions to file, or space to free
	defers  bool  // new sessions are left to fileOwners
	news    queueNews

	recent *packed.Recent
	chain  packed.Chain

	reserve *reserve.Reserve

	once  sync.Once
	ended error
}

// Open opens the file, makes it if there is none, and brings its schema up to
// date. A file that can be read but not written is opened all the same: see
// ReadOnly. ErrNewer when a newer version of the program has used the file.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	db := &DB{path: path, known: known{}, news: newQueueNews(), recent: packed.NewRecent(), reserve: &reserve.Reserve{}}
	err = db.open(ctx, o)
	for o.Reserve > 0 && errors.Is(explain(err), ErrFull) && reserve.Halve(reserve.Path(path)) {
		err = db.open(ctx, o)
	}
	if err == nil {
		db.reserve = reserve.Open(path, o.Reserve)
		if o.Upkeep {
			db.defers, db.upkeep = true, newUpkeep(db)
		}
		return db, nil
	} else if !unwritable(err) {
		return nil, fmt.Errorf("open the database %s: %w", path, explain(err))
	} else if roErr := db.openReadOnly(ctx); roErr != nil {
		return nil, fmt.Errorf("open the database %s: %w; and it cannot be opened for reading only: %w", path, explain(err), roErr)
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, o Options) error {
	if err := create(db.path); err != nil {
		return err
	}
	timeout := fmt.Sprintf("busy_timeout = %d", o.BusyTimeout.Milliseconds())
	pragmas := []string{timeout, "synchronous = full", "foreign_keys = on"}
	c, err := connect(ctx, dsn(db.path, nil), append(pragmas,
		fmt.Sprintf("cache_size = -%d", writerCache), fmt.Sprintf("wal_autocheckpoint = %d", checkpointPages))...)
	if err != nil {
		return err
	}
	if err := prepare(ctx, db.path, c, pragmas); err != nil {
		_ = c.close()
		return err
	}
	if db.ids, err = openIDs(c, true); err != nil {
		_ = c.close()
		return err
	}
	db.checkpoint = newCheckpointer(func(ctx context.Context) (*conn, error) {
		return connect(ctx, dsn(db.path, nil), append(pragmas, fmt.Sprintf("cache_size = -%d", readerCache))...)
	})
	db.writer = newWriter(c, db.committed, db.diagnose, db.undone)
	db.readers = newReaders(readerConns, func(ctx context.Context) (*conn, error) {
		return connect(ctx, dsn(db.path, nil), timeout, "query_only = on", fmt.Sprintf("cache_size = -%d", readerCache))
	})
	return nil
}

// committed and undone are called in the writer's goroutine, at the end of a transaction.

func (db *DB) committed(writes, bytes int) {
	db.checkpoint.wrote(writes, bytes)
	db.reserve.Wrote(writes, bytes)
	if db.upkeep != nil && db.unfiled {
		db.upkeep.changed()
		db.unfiled = false
	}
	db.news.committed()
}

func (db *DB) undone() {
	clear(db.known)
	db.news.undone()
}

// create makes an empty file if there is none, so that only its owner can read it; SQLite gives
// the files beside it the same mode. An existing file must not be opened here: closing it again
// would drop the locks that SQLite may hold on it in this process.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// prepare makes the file one that can be used.
func prepare(ctx context.Context, path string, c *conn, pragmas []string) error {
	// This is for a new file, so that shrink can make it smaller later.
	if _, err := c.exec("PRAGMA auto_vacuum = incremental"); err != nil {
		return err
	}
	if err := useWAL(ctx, c); err != nil {
		return err
	}
	if err := migrate(ctx, path, c, pragmas...); err != nil {
		return err
	}
	// Find out now whether we may write. SQLite opens a file that it may only
	// read without a word, and begins a transaction on it as well.
	_, err := c.exec("DELETE FROM meta WHERE name = ''")
	return err
}

// useWAL is tried again while another process opens the same new file: for this
// one change SQLite does not wait by itself.
func useWAL(ctx context.Context, c *conn) error {
	for tries := 0; ; tries++ {
		var mode string
		_, err := c.one("PRAGMA journal_mode = wal", func(row []driver.Value) { mode = text(row[0]) })
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("the file cannot have a write-ahead log (its journal mode stays %q)", mode)
		case !busy(err) || tries == 100:
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openReadOnly opens a file whose disk or folder cannot be written.
func (db *DB) openReadOnly(ctx context.Context) error {
	query := url.Values{"mode": {"ro"}}
	wal, err := os.Stat(db.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && wal.Size() == 0:
		// The last owner closed it properly, so the file alone is everything. SQLite
		// must be told, for it cannot make the files it would use beside it.
		query.Set("immutable", "1")
	case err != nil:
		return err
	}
	open := func(ctx context.Context) (*conn, error) {
		return connect(ctx, dsn(db.path, query), fmt.Sprintf("cache_size = -%d", readerCache))
	}
	c, err := open(ctx)
	if err != nil {
		return err
	}
	v, err := version(c)
	switch {
	case err != nil:
	case v > schema:
		err = ErrNewer
	case v < schema:
		err = fmt.Errorf("its schema has version %d, this program needs %d, and bringing it up to date would mean writing", v, schema)
	}
	if closeErr := c.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	db.readonly = true
	db.readers = newReaders(readerConns, open)
	return db.learnIDs(ctx)
}

// diagnose says why a write failed. What SQLite reports for a disk that has
// become read-only is just a failed write, so the folder is tried.
func (db *DB) diagnose(err error) error {
	if failedIO(err) {
		probe, probeErr := os.CreateTemp(filepath.Dir(db.path), "probe-*")
		switch {
		case probeErr == nil:
			_ = probe.Close()
			_ = os.Remove(probe.Name())
		case unwritable(probeErr):
			return fmt.Errorf("%w (%w)", ErrReadOnly, err)
		}
	}
	return explain(err)
}

// Close finishes what is queued and closes the file. It may be called twice.
func (db *DB) Close() error {
	db.once.Do(func() {
		if db.upkeep != nil {
			db.upkeep.close()
		}
		if db.writer != nil {
			db.writer.close()
			db.checkpoint.close()
		}
		db.ended = db.readers.close()
		if db.writer != nil { // last, so that it empties the write-ahead log into the file
			if err := db.writer.conn.close(); err != nil {
				db.ended = err
			}
		}
	})
	return db.ended
}

// ReadOnly says that the file could not be written when it was opened. Writes give ErrReadOnly; reading works.
func (db *DB) ReadOnly() bool { return db.readonly }

// Ping reads something.
func (db *DB) Ping(ctx context.Context) error {
	return db.readers.read(ctx, func(c *conn) error {
		_, err := c.one("SELECT n FROM sessions LIMIT 1", func([]driver.Value) {})
		return err
	})
}

// Version implements store.Backend.
func (db *DB) Version(context.Context) (string, error) { return "SQLite " + lib.SQLITE_VERSION, nil }

// Healthy is nil, or why the database did not store the last write, or may not store the
// next one. Asked while there is trouble, it has a small write tried, so that the end of
// it is noticed.
func (db *DB) Healthy() error {
	if db.readonly {
		return ErrReadOnly
	}
	if !db.reserve.Ready() {
		return ErrFull
	}
	if err := db.writer.healthy(); err != nil || !db.reserve.Low() {
		return err
	}
	return errLow
}

// Stats are counts since the file was opened.
type Stats struct {
	Commits  int64 // transactions made durable
	Writes   int64 // changes answered, however they ended
	Refusals int64 // of these, refused by their own check: conflicts above all
	Failures int64 // of these, not stored because of the database
	Splits   int64 // groups that failed and were tried again one by one
	Queued   int   // waiting now
	// Checkpoints counts how often the write-ahead log was copied into the file.
	Checkpoints int64
}

// Written implements store.Backend.
func (db *DB) Written() (changes, transactions int64) {
	s := db.Stats()
	return s.Writes, s.Commits
}

// Stats says what the writer has done.
func (db *DB) Stats() Stats {
	w := db.writer
	if w == nil {
		return Stats{}
	}
	return Stats{
		Commits: w.commits.Load(), Writes: w.writes.Load(), Refusals: w.refusals.Load(),
		Failures: w.failures.Load(), Splits: w.splits.Load(), Queued: len(w.queue),
		Checkpoints: db.checkpoint.done.Load(),
	}
}

// write makes a change durable; see writer.write.
func (db *DB) write(ctx context.Context, size int, do func(*conn) error) error {
	if db.readonly {
		return ErrReadOnly
	}
	if !db.reserve.Ready() {
		return ErrFull
	}
	return db.writer.write(ctx, size, do)
}

// Select runs a query for package audit, and Execute runs a statement.
func (db *DB) Select(ctx context.Context, sql string, each func(row []driver.Value) error, args ...driver.Value) error {
	return db.readers.read(ctx, func(c *conn) error { return c.query(sql, each, args...) })
}

func (db *DB) Execute(ctx context.Context, sql string, args ...driver.Value) error {
	return db.write(ctx, 0, func(c *conn) error { _, err := c.exec(sql, args...); return err })
}

// writeAtLast is write for what must be stored also when the disk is full: it uses the
// reserve, and the last part of it if final.
func (db *DB) writeAtLast(ctx context.Context, size int, final bool, do func(*conn) error) error {
	if db.readonly {
		return ErrReadOnly
	}
	err := db.writer.write(ctx, size, do)
	for errors.Is(err, ErrFull) && db.reserve.Release(final) {
		err = db.writer.write(ctx, size, do)
	}
	return err
}

var (
	_ session.Log   = (*DB)(nil)
	_ session.Index = (*DB)(nil)
)
