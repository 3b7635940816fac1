// Package admin holds the commands that manage users and keys on the data of a
// server, which may be running.
package admin

import (
	"context"
	"errors"
	"io"

	"deckhand/internal/access"
	"deckhand/internal/config"
	"deckhand/internal/control"
	"deckhand/internal/secret"
)

// Store is the database with users and keys.
type Store interface {
	io.Closer
	secret.KeyStore
}

// Data is what the commands work on. Close the store.
type Data struct {
	Store Store
	Gate  *access.Gate
}

// Opener opens the data.
type Opener struct {
	// Create makes the data directory and the database if there are none, Existing
	// refuses to.
	Create, Existing func(context.Context, config.DataFlags) (*Data, error)
}

// initFlag lets a command create the data.
type initFlag struct {
	Init bool `name:"init" help:"Create the data directory and the database if they do not exist. Default: an error, since another --data-dir is probably meant."`
}

// open returns how to open the data.
func (f initFlag) open(o *Opener) func(context.Context, config.DataFlags) (*Data, error) {
	if f.Init {
		return o.Create
	}
	return o.Existing
}

// change opens the data, applies a change of keys or users and tells a running server.
func change(ctx context.Context, c config.DataFlags, open func(context.Context, config.DataFlags) (*Data, error), do func(*access.Gate) error) error {
	d, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer d.Store.Close()
	if err := do(d.Gate); err != nil {
		return err
	}
	if control.Tell(c.DataDir, control.Keys) != nil {
		return errors.New("the change is stored; the running server did not confirm it, but will apply it within a second")
	}
	return nil
}
