// Package open opens the database of the configuration. Only this package imports all kinds of databases.
package open

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/move"
	"deckhand/internal/store"
	"deckhand/internal/store/postgres"
	postgresaudit "deckhand/internal/store/postgres/audit"
	postgrestransfer "deckhand/internal/store/postgres/transfer"
	"deckhand/internal/store/sqlite"
	sqliteaudit "deckhand/internal/store/sqlite/audit"
	"deckhand/internal/store/sqlite/pages"
	sqlitetransfer "deckhand/internal/store/sqlite/transfer"
)

// Database opens a database and brings its schema up to date. A SQLite file is created if it is missing.
func Database(ctx context.Context, d config.Database, o store.Options) (store.Backend, error) {
	server := o.Reserve > 0
	if d.Address != "" {
		p := postgres.Options{Upkeep: server, Together: server && o.Together, Existing: o.Existing, Bulk: o.Exclusive, Flag: d.Flag}
		if o.Exclusive {
			p.Server = "doctor " + rand.Text()
		}
		if server && !o.Together { // the caller has locked the data directory
			var err error
			if p.Server, err = datadir.Name(d.Dir); err != nil {
				return nil, err
			}
		}
		db, err := postgres.Open(ctx, d.Address, p)
		if err != nil {
			return nil, err
		}
		return usable(ctx, d, db)
	}
	reserve := o.Reserve
	if o.Temporary {
		reserve = 0
	}
	if o.Temporary && o.Templates != "" {
		template := filepath.Join(o.Templates, fmt.Sprintf("empty-%d.db", sqlite.Schema))
		_ = begin(d.Path, template, func(path string) error { // without it, the migrations take a little longer
			db, err := sqlite.Open(ctx, path, sqlite.Options{})
			if err != nil {
				return err
			}
			return db.Close()
		})
	}
	db, err := sqlite.Open(ctx, d.Path, sqlite.Options{Reserve: reserve, Upkeep: server})
	if err != nil {
		return nil, err
	}
	return usable(ctx, d, db)
}

// Audit returns the audit of a database that Database has opened.
func Audit(db store.Backend) store.Audit {
	if p, ok := db.(*postgres.DB); ok {
		return postgresaudit.Audit{DB: p}
	}
	return sqliteaudit.Audit{DB: db.(*sqlite.DB)}
}

// Audited is a database with its audit, for the doctor.
type Audited struct {
	store.Backend
	store.Audit
}

// Owners returns the names of all users.
func (a Audited) Owners(ctx context.Context) (names []string, err error) {
	users, err := a.Users(ctx)
	for _, u := range users {
		names = append(names, u.Name)
	}
	return names, err
}

// usable closes a database into which an installation is still being moved.
func usable(ctx context.Context, d config.Database, db store.Backend) (store.Backend, error) {
	moving, err := db.Meta(ctx, store.MetaMove)
	if err == nil && moving != nil {
		err = fmt.Errorf("the database %s is the target of an unfinished migration; run the same deckhand migrate command again to finish it, or use another database", d)
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// Side opens a database for a migration: the source, which is not changed, or the target.
func Side(ctx context.Context, d config.Database, target bool) (store.Side, error) {
	if d.Address == "" {
		s, err := sqlitetransfer.Open(ctx, d.Path, target)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := postgrestransfer.Open(ctx, d.String(), d.Address, d.Flag, target)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Move opens both databases of a migration. The function closes them.
func Move(ctx context.Context, from, to config.Database) (*move.Move, func(), error) {
	source, err := Side(ctx, from, false)
	if err != nil {
		return nil, nil, err
	}
	target, err := Side(ctx, to, true)
	if err != nil {
		_ = source.Close()
		return nil, nil, err
	}
	return &move.Move{From: source, To: target}, func() { _, _ = target.Close(), source.Close() }, nil
}

// Copied is a database as a stream of bytes, for backups.
type Copied struct{ config.Database }

// Kind is the kind of database.
func (d Copied) Kind() string {
	if d.Address != "" {
		return "PostgreSQL"
	}
	return "SQLite"
}

// Dump writes the database as it is at one moment.
func (d Copied) Dump(ctx context.Context, w io.Writer) (schema int64, err error) {
	if d.Address != "" {
		return postgres.Copy(ctx, d.Address, w)
	}
	return pages.Copy(ctx, d.Path, w)
}

// Empty returns an error if the database has data.
func (d Copied) Empty(ctx context.Context) error {
	if d.Address != "" {
		return postgres.Empty(ctx, d.Address)
	}
	for _, name := range []string{d.Path, d.Path + "-wal"} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("there is a database at %s; use another --data-dir or --database-url", name), err)
		}
	}
	return nil
}

// Joins returns an error unless the database belongs to the installation and no server with this name uses it.
func (d Copied) Joins(ctx context.Context, installation, server string) error {
	if d.Address == "" {
		return errors.New("a SQLite database belongs to one server: restore the whole backup")
	}
	return postgres.Joins(ctx, d.Address, installation, server)
}

// Load makes an empty database one that dumps the same bytes.
func (d Copied) Load(ctx context.Context, schema int64, r io.Reader) error {
	if d.Address != "" {
		return postgres.Load(ctx, d.Address, schema, r)
	}
	temp := d.Path + ".restoring"
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	read, stored := sha256.New(), sha256.New()
	if _, err := io.Copy(f, io.TeeReader(r, read)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(stored, f); err != nil {
		return err
	}
	if !bytes.Equal(read.Sum(nil), stored.Sum(nil)) {
		return fmt.Errorf("the restored database %s differs from the backup; check the disk", temp)
	}
	if err := os.Rename(temp, d.Path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(d.Path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
