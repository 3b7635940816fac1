// Package pages copies a SQLite file page by page while others use it.
package pages

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"
)

// Copy writes the pages of a file as they are at one moment, and returns the version of its schema. Others may write to it at the same
// time. It changes nothing: the file may be of an earlier version.
func Copy(ctx context.Context, path string, w io.Writer) (schema int64, err error) {
	// In a URL, the first part of a relative path would be a host name.
	if path, err = filepath.Abs(path); err != nil {
		return 0, err
	}
	query := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	connector, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String())
	if err != nil {
		return 0, err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil) // all that it reads is of one moment
	if err != nil {
		return 0, fmt.Errorf("open the database %s: %w", path, err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&schema); err != nil {
		return 0, fmt.Errorf("%s is not a database of deckhand: %w", path, err)
	}
	rows, err := tx.QueryContext(ctx, "SELECT data FROM sqlite_dbpage('main') ORDER BY pgno")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var page sql.RawBytes
		if err := rows.Scan(&page); err != nil {
			return 0, err
		}
		if _, err := w.Write(page); err != nil {
			return 0, err
		}
	}
	return schema, rows.Err()
}
