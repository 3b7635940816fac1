package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// Check reads the whole file and says what is wrong with it. It takes as long
// as reading it does.
func (db *DB) Check(ctx context.Context) error {
	return db.readers.read(ctx, func(c *conn) error {
		var found string
		err := c.query("PRAGMA quick_check(1)", func(row []driver.Value) error {
			found = text(row[0])
			return enough
		})
		if err == nil && found != "ok" {
			err = fmt.Errorf("the database is damaged: %s; restore a backup", found)
		}
		return err
	})
}
