// Package open opens the database of the configuration. Only this package imports all kinds of databases.
package open

import (
	"context"

	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/store"
	"deckhand/internal/store/postgres"
	"deckhand/internal/store/sqlite"
)

// Database opens a database and brings its schema up to date. A SQLite file is created if it is missing.
func Database(ctx context.Context, d config.Database, o store.Options) (store.Backend, error) {
	server := o.Reserve > 0
	if d.Address != "" {
		p := postgres.Options{Upkeep: server}
		if server { // the caller has locked the data directory
			var err error
			if p.Server, err = datadir.Name(d.Dir); err != nil {
				return nil, err
			}
		}
		db, err := postgres.Open(ctx, d.Address, p)
		if err != nil {
			return nil, err
		}
		return db, nil
	}
	db, err := sqlite.Open(ctx, d.Path, sqlite.Options{Reserve: o.Reserve, Upkeep: server})
	if err != nil {
		return nil, err
	}
	return db, nil
}
