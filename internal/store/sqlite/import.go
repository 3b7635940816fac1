package sqlite

import (
	"context"
	"fmt"

	"deckhand/internal/session"
)

// AppendAll stores the batches of a new session in one transaction: after a crash
// all of them are there or none. ErrConflict if the session exists.
func (db *DB) AppendAll(ctx context.Context, batches []session.Batch) error {
	var all []*appending
	size, last := 0, int64(0)
	mark := db.chain.Start(batches[0].ID, 0)
	for _, b := range batches {
		// A write that is refused must not have written, and only the first may be refused.
		if b.ID != batches[0].ID || b.After != last {
			return fmt.Errorf("session %s: the batch after event %d does not follow event %d", b.ID, b.After, last)
		}
		last += int64(len(b.Events))
		a, err := db.encode(b, mark)
		if err != nil {
			return err
		}
		mark = a.mark
		all, size = append(all, a), size+len(a.body)
	}
	return db.write(ctx, size, func(c *conn) error {
		for _, a := range all {
			if err := a.store(c); err != nil {
				return err
			}
		}
		return nil
	})
}
