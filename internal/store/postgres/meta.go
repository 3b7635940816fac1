package postgres

import (
	"context"
)

const selectMeta = "SELECT value FROM deckhand.meta WHERE name = $1"

// Meta returns a value of the installation, nil when it was never set.
func (db *DB) Meta(ctx context.Context, name string) (value []byte, err error) {
	err = db.read(ctx, func(c *conn) error {
		_, err := c.one(selectMeta, func(row []any) { value = bytesOf(row[0]) }, name)
		return err
	})
	return value, err
}

// SetMetaOnce stores a value if there is none under this name, and returns the
// one in force: of several processes that start together, all use the first one's.
func (db *DB) SetMetaOnce(ctx context.Context, name string, value []byte) (inForce []byte, err error) {
	err = db.write(ctx, func(c *conn) error {
		if _, err := c.exec("INSERT INTO deckhand.meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", name, value); err != nil {
			return err
		}
		_, err := c.one(selectMeta, func(row []any) { inForce = bytesOf(row[0]) }, name)
		return err
	})
	return inForce, err
}
