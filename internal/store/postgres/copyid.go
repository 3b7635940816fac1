package postgres

import (
	"context"
	"crypto/rand"

	"deckhand/internal/store/postgres/pg"
)

// MarkCopy gives a database that was filled with the data of another one an ID of its own. It is in a table that neither
// backups nor moves carry, so a copy of the copy gets another ID.
func MarkCopy(c *pg.Conn) error {
	if err := c.Script("ALTER TABLE deckhand.schema_version ADD COLUMN IF NOT EXISTS copy text"); err != nil {
		return err
	}
	_, err := c.Exec("UPDATE deckhand.schema_version SET copy = $1 WHERE version = 1", rand.Text()[:16])
	return err
}

// CopyID returns the ID of MarkCopy, "" if the database was not filled from another one.
func (db *DB) CopyID(ctx context.Context) (id string, err error) {
	err = db.base.View(ctx, func(c *pg.Conn) error {
		// Databases that were never marked lack the column.
		_, err := c.One("SELECT coalesce(max(to_jsonb(s)->>'copy'), '') FROM deckhand.schema_version s", func(v []any) { id = pg.Text(v[0]) })
		return err
	})
	return id, err
}
