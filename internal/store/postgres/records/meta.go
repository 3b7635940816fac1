package records

import (
	"context"

	"deckhand/internal/store/postgres/pg"
)

// SelectMeta reads a value of the installation by its name.
const SelectMeta = "SELECT value FROM deckhand.meta WHERE name = $1"

// Meta returns a value of the installation, nil when it was never set.
func (s *Store) Meta(ctx context.Context, name string) (value []byte, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		_, err := c.One(SelectMeta, func(row []any) { value = pg.Bytes(row[0]) }, name)
		return err
	})
	return value, err
}

// SetMetaOnce stores a value if there is none under this name, and returns the
// one in force: of several processes that start together, all use the first one's.
func (s *Store) SetMetaOnce(ctx context.Context, name string, value []byte) (inForce []byte, err error) {
	err = s.DB.Update(ctx, func(c *pg.Conn) error {
		if _, err := c.Exec("INSERT INTO deckhand.meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", name, value); err != nil {
			return err
		}
		_, err := c.One(SelectMeta, func(row []any) { inForce = pg.Bytes(row[0]) }, name)
		return err
	})
	return inForce, err
}
