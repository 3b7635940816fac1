package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/backup"
	"deckhand/internal/cli"
	"deckhand/internal/cli/admin"
	"deckhand/internal/cli/backups"
	"deckhand/internal/cli/doctor"
	"deckhand/internal/cli/folder"
	"deckhand/internal/cli/importer"
	"deckhand/internal/config"
	"deckhand/internal/conversation"
	"deckhand/internal/conversation/query"
	checks "deckhand/internal/doctor"
	"deckhand/internal/live"
	"deckhand/internal/store"
	"deckhand/internal/store/open"
)

// data is the open data directory.
type data struct {
	db    store.Backend
	gate  *access.Gate
	where config.Database
}

// openData opens the database, and creates the data directory if it is missing.
func openData(ctx context.Context, c config.DataFlags, o access.Options) (*data, error) {
	return openDataWith(ctx, c, o, store.Options{})
}

// openExisting is openData for commands that need the data of a server. They create neither the
// data directory nor the database: a misspelled --data-dir must not look like an empty server.
func openExisting(ctx context.Context, c config.DataFlags, o access.Options) (*data, error) {
	return openExistingWith(ctx, c, o, store.Options{})
}

func openExistingWith(ctx context.Context, c config.DataFlags, o access.Options, s store.Options) (*data, error) {
	where, err := c.Database()
	if err != nil {
		return nil, err
	}
	const advice = "start a server with deckhand serve, or use another --data-dir"
	hint := config.Packaged.Hint(c.DataDir)
	if _, err := os.Stat(c.DataDir); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no data directory at %s: %s%s", c.DataDir, advice, hint)
	}
	if where.Missing() {
		return nil, fmt.Errorf("no database at %s: %s%s", where, advice, hint)
	}
	return openDataWith(ctx, c, o, s)
}

// reserveSize is the space that a server keeps for when the disk is full.
const reserveSize = 8 << 20

func openDataWith(ctx context.Context, c config.DataFlags, o access.Options, s store.Options) (*data, error) {
	if !s.Existing {
		if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
			return nil, fmt.Errorf("cannot create the data directory: %w", err)
		}
	}
	where, err := c.Database()
	if err != nil {
		return nil, err
	}
	db, err := open.Database(ctx, where, s)
	if err != nil {
		return nil, err
	}
	return &data{db: db, gate: access.NewGate(db, o), where: where}, nil
}

// opener opens the data for the commands that manage users and keys.
var opener = &admin.Opener{Create: adminData(openData), Existing: adminData(openExisting)}

func adminData(open func(context.Context, config.DataFlags, access.Options) (*data, error)) func(context.Context, config.DataFlags) (*admin.Data, error) {
	return func(ctx context.Context, c config.DataFlags) (*admin.Data, error) {
		if _, err := c.Served(); err != nil {
			return nil, err
		}
		d, err := open(ctx, c, access.Options{})
		if err != nil {
			return nil, err
		}
		return &admin.Data{Store: d.db, Gate: d.gate}, nil
	}
}

// importTo opens the data for an import.
var importTo = &importer.Opener{Open: func(ctx context.Context, c config.DataFlags) (*importer.Data, error) {
	d, err := openData(ctx, c, access.Options{})
	if err != nil {
		return nil, err
	}
	return &importer.Data{Store: d.db, Gate: d.gate}, nil
}}

// copies opens databases for backups, and examined for the doctor.
var (
	copies   = &backups.Deps{Version: version, Database: func(d config.Database) backup.Database { return open.Copied{Database: d} }, Verify: examined.VerifyAll}
	examined = &doctor.Opener{
		Open: func(ctx context.Context, c config.DataFlags, o checks.Opening) (checks.Everything, error) {
			return everything(openDataWith(ctx, c, access.Options{}, store.Options{Existing: o.Existing, Exclusive: o.Exclusive}))
		},
		Existing: func(ctx context.Context, c config.DataFlags, exclusive bool) (checks.Everything, error) {
			return everything(openExistingWith(ctx, c, access.Options{}, store.Options{Exclusive: exclusive}))
		},
	}
)

func everything(d *data, err error) (checks.Everything, error) {
	if err != nil {
		return nil, err
	}
	return open.Audited{Backend: d.db, Audit: open.Audit(d.db)}, nil
}

// doctorCmd is deckhand doctor. It has the flags of the server whose settings it checks.
type doctorCmd struct {
	serveCmd
	doctor.Command
}

// Run runs the checks.
func (c *doctorCmd) Run(ctx context.Context, file *config.Resolver, o *cli.Output) error {
	return c.Command.Run(ctx, file, o, examined, doctor.Server{DataFlags: c.DataFlags, Flags: c.sandboxFlags, ListenFlags: c.ListenFlags, Check: c.check})
}

// folders reads the sessions of folders.
var folders = &folder.Reader{Stored: func(ctx context.Context, dir string) ([]api.Conversation, error) {
	d, err := openExisting(ctx, config.DataFlags{DataDir: dir}, access.Options{})
	if err != nil {
		return nil, err
	}
	defer d.db.Close()
	r := query.Reader{Conversations: conversation.New(conversation.Config{Index: d.db}), Hub: live.New(d.db, nil, nil)}
	page, err := r.List(ctx, folder.Owner, query.List{Limit: 100})
	return page.Results, err
}}
