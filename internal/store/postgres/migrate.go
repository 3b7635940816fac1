package postgres

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"deckhand/internal/store/postgres/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema is the version that this program writes: the number of its last migration.
const schema = 3

// version is the schema of the database, 0 for an empty one.
func version(c *pg.Conn) (v int64, err error) {
	made := false
	if _, err = c.One("SELECT to_regclass('deckhand.schema_version') IS NOT NULL", func(row []any) { made = pg.Truth(row[0]) }); err != nil || !made {
		return 0, err
	}
	_, err = c.One("SELECT max(version) FROM deckhand.schema_version", func(row []any) { v = pg.Number(row[0]) })
	return v, err
}

// migrate brings the database to schema. Several processes may do so at once: the first takes a
// lock, and the others find the work done when they get it.
func migrate(c *pg.Conn, readonly, existing bool) error {
	v, err := version(c)
	switch {
	case err != nil:
		return err
	case v > schema:
		return fmt.Errorf("%w (its version is %d, this program knows up to %d)", pg.ErrNewer, v, schema)
	case v == schema:
		return nil
	case existing && v == 0:
		return errors.New("it has no data of Deckhand: check the name of the database")
	case existing:
		return errors.New("its schema is out of date: start this version of deckhand on it once, stop it, and try again")
	case readonly:
		return errors.New("the database is read-only and its schema is out of date: make the database writable and start the server once")
	}
	// Another process may take its time with large tables.
	err = c.Transaction("BEGIN; SET LOCAL lock_timeout = '5min'; SET LOCAL statement_timeout = 0", func() error { return runMissing(c, schema) })
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
	if err := c.Script("CREATE SCHEMA IF NOT EXISTS deckhand; CREATE TABLE IF NOT EXISTS deckhand.schema_version (version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"); err != nil {
		return err
	}
	before, err := version(c)
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
		if _, err := c.Exec("INSERT INTO deckhand.schema_version (version) VALUES ($1)", int64(i+1)); err != nil {
			return err
		}
	}
	return nil
}
