package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema is the version that this program writes: the number of its last migration.
const schema = 13

// Schema is schema, for package transfer.
const Schema = schema

// version is the schema of the file, 0 for an empty one. It looks at goose's
// table itself, because building goose's provider is most of the time that
// opening an up-to-date file would take.
func version(c *conn) (int64, error) {
	tables, err := c.one("SELECT 1 FROM sqlite_master WHERE name = 'goose_db_version'", func([]driver.Value) {})
	if err != nil || !tables {
		return 0, err
	}
	var v int64
	_, err = c.one("SELECT max(version_id) FROM goose_db_version WHERE is_applied", func(row []driver.Value) { v = number(row[0]) })
	return v, err
}

// migrate brings the file to schema. Several processes may do so at once: each
// migration is one transaction, so the loser's attempt fails without effect and
// it finds the work done when it looks again.
func migrate(ctx context.Context, path string, c *conn, pragmas ...string) error {
	before, err := version(c)
	if err != nil {
		return err
	}
	for {
		switch {
		case before == schema:
			return nil
		case before > schema:
			return fmt.Errorf("%w (its version is %d, this program knows up to %d)", ErrNewer, before, schema)
		}
		failure := climb(ctx, path, pragmas)
		after, err := version(c)
		if err != nil {
			return err
		}
		if failure != nil && after == before {
			return fmt.Errorf("migrate the database from version %d to %d: %w", before, schema, failure)
		}
		before = after
	}
}

// climb runs goose, which needs database/sql.
func climb(ctx context.Context, path string, pragmas []string) error {
	query := url.Values{"_txlock": {"immediate"}}
	for _, p := range pragmas {
		query.Add("_pragma", strings.Replace(p, " = ", "=", 1))
	}
	connector, err := sqlite.NewConnector(dsn(path, query))
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	all, err := steps()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, nil, goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(all...))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// steps are the migrations, each of them run as one script. SQLite reads scripts
// itself: goose's own parser takes 4 MB for each of their lines.
func steps() ([]*goose.Migration, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var steps []*goose.Migration
	for _, name := range files {
		script, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		number, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		run := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, string(script))
			return err
		}
		steps = append(steps, goose.NewGoMigration(number, &goose.GoFunc{RunTx: run}, nil))
	}
	return steps, nil
}
