package postgres

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"deckhand/internal/advice"
	"deckhand/internal/store"
	"deckhand/internal/store/postgres/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema is the version that this program writes: the number of its last migration.
const schema = 5

// oldest has, for each migration, the oldest schema whose programs can use the database after it. During a rolling restart,
// servers of the version before use the database together with the first one that migrated it, so a migration that keeps
// the number of the one before may only add what older programs can ignore.
var oldest = []int64{1, 2, 3, 3, 3}

// version returns the schema of the database, 0 for an empty one, and the oldest schema whose programs can use it.
func version(c *pg.Conn) (v, needs int64, err error) {
	made := false
	if _, err = c.One("SELECT to_regclass('deckhand.schema_version') IS NOT NULL", func(row []any) { made = pg.Truth(row[0]) }); err != nil || !made {
		return 0, 0, err
	}
	// Databases that no program with this rule has migrated lack the column.
	_, err = c.One("SELECT max(version), max(coalesce((to_jsonb(s)->>'needs')::bigint, version)) FROM deckhand.schema_version s",
		func(row []any) { v, needs = pg.Number(row[0]), pg.Number(row[1]) })
	return v, needs, err
}

// migrate brings the database to schema. Several processes may do so at once: the first takes a
// lock, and the others find the work done when they get it.
func migrate(c *pg.Conn, readonly, existing bool) error {
	v, needs, err := version(c)
	switch {
	case err != nil:
		return err
	case needs > schema:
		return fmt.Errorf("%w (its version is %d, this program knows up to %d)", pg.ErrNewer, v, schema)
	case v >= schema:
		return nil
	case readonly && v == 0:
		return advice.With(fmt.Errorf("the database is empty and cannot be used: %w", pg.ErrReadOnly), "use the primary server, or turn off default_transaction_read_only")
	case readonly:
		return errors.New("the database is read-only and its schema is out of date: make the database writable and start the server once")
	case existing && v > 0:
		return store.ErrOutdated
	}
	// Another process may take its time with large tables.
	err = c.Transaction("BEGIN; SET LOCAL lock_timeout = '5min'; SET LOCAL statement_timeout = 0", func() error {
		if err := runMissing(c, schema); err != nil || !existing {
			return err
		}
		return store.ErrNone // it would work, and is rolled back
	})
	if errors.Is(err, store.ErrNone) {
		return err
	}
	if err != nil {
		return fmt.Errorf("migrate the database to version %d: %w", schema, err)
	}
	return nil
}

// runMissing runs the migrations that are missing up to a version.
func runMissing(c *pg.Conn, to int64) error {
	if err := c.Lock(pg.LockSchema, ""); err != nil {
		return err
	}
	if err := c.Script("CREATE SCHEMA IF NOT EXISTS deckhand; CREATE TABLE IF NOT EXISTS deckhand.schema_version (version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now()); " +
		"ALTER TABLE deckhand.schema_version ADD COLUMN IF NOT EXISTS needs bigint"); err != nil {
		return err
	}
	before, _, err := version(c)
	if err != nil {
		return err
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	for i, name := range files {
		if int64(i) < before || int64(i) >= to {
			continue
		}
		script, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if err := c.Script(string(script)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := c.Exec("INSERT INTO deckhand.schema_version (version, needs) VALUES ($1, $2)", int64(i+1), oldest[i]); err != nil {
			return err
		}
	}
	return nil
}
