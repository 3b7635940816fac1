package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
)

const (
	selectMeta = "SELECT value FROM meta WHERE name = ?"
	insertMeta = "INSERT INTO meta (name, value) VALUES (?, ?)"
)

// Meta returns a value of the installation, nil when it was never set.
func (db *DB) Meta(ctx context.Context, name string) (value []byte, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		_, err := c.one(selectMeta, func(row []driver.Value) { value = bytesOf(row[0]) }, name)
		return err
	})
	return value, err
}

// SetMetaOnce stores a value if there is none under this name, and returns the
// one in force: of several processes that start together, all use the first one's.
func (db *DB) SetMetaOnce(ctx context.Context, name string, value []byte) ([]byte, error) {
	var inForce []byte
	err := db.write(ctx, len(value), func(c *conn) error {
		inForce = bytes.Clone(value)
		found, err := c.one(selectMeta, func(row []driver.Value) { inForce = bytesOf(row[0]) }, name)
		if err != nil || found {
			return err
		}
		_, err = c.exec(insertMeta, name, value)
		return err
	})
	if err != nil {
		return nil, err // inForce belongs to the writer still, if ctx ended
	}
	return inForce, nil
}
