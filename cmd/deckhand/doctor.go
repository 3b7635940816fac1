package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/doctor"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/scripted"
	"deckhand/internal/outbound"
	"deckhand/internal/provider"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

type doctorCmd struct {
	config.DataFlags
	sandboxFlags
	config.ListenFlags
	Model        bool   `name:"model" help:"Also test a user's stored model. Makes a few short model calls, which are billed."`
	User         string `name:"user" default:"admin" placeholder:"NAME" help:"User whose model to test (default: ${default})."`
	Repair       bool   `name:"repair" help:"Truncate a damaged conversation after its last valid event, and save the removed events to a file. Stop the server first."`
	Conversation string `arg:"" optional:"" help:"Verify the log of the conversation with this ID instead."`
}

// Run runs the checks and says how to fix each problem.
func (c *doctorCmd) Run(ctx context.Context, all *commands, o *cli.Output) error {
	if c.Conversation != "" {
		d, err := openExisting(ctx, c.DataFlags, access.Options{})
		if err != nil {
			return err
		}
		defer d.db.Close()
		return doctor.Verification{Store: d.db, ID: session.ID(c.Conversation), DataDir: c.DataDir, Repair: c.Repair, Out: o.Stdout}.Run(ctx)
	}
	if c.Repair {
		return errors.New("--repair needs a conversation ID")
	}
	r := &doctor.Report{Out: o.Stdout}
	r.Check("data dir", c.DataDir, doctor.DataDir(c.DataDir))
	path, err := c.DatabasePath()
	r.Check("database", path, err)
	if err == nil {
		r.Check("database opens", "", c.database(ctx, r))
	}
	r.Check("address", c.Addr, doctor.Address(c.Addr, c.DataDir))
	r.Sandbox(ctx, func(dir string) drivers.Config { return c.Driver(dir, "doctor", nil, slog.New(slog.DiscardHandler)) })
	r.Check("built-in model", scripted.Demo+" needs no key and no network", nil)
	if c.Model {
		if err := c.model(ctx, all, r); err != nil {
			r.Check("model", "", err)
		}
	}
	return r.Result()
}

// database opens the existing database. It creates nothing.
func (c *doctorCmd) database(ctx context.Context, r *doctor.Report) error {
	path, _ := c.DatabasePath()
	for _, needed := range []string{c.DataDir, path} {
		if _, err := os.Stat(needed); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	d, err := openData(ctx, c.DataFlags, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	if err := d.db.Check(ctx); err != nil {
		return err
	}
	_, err = secret.OpenKeyring(ctx, c.DataDir, os.Getenv("DECKHAND_MASTER_KEY"), d.db)
	r.Check("master key", "can decrypt the stored secrets", err)
	return nil
}

// model tests the stored model of the user in the same way as the server.
func (c *doctorCmd) model(ctx context.Context, all *commands, r *doctor.Report) error {
	file, err := config.Read(all.Config)
	if err != nil {
		return err
	}
	reach, err := c.Reach()
	if err != nil {
		return err
	}
	d, err := openExisting(ctx, c.DataFlags, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	keyring, err := secret.OpenKeyring(ctx, c.DataDir, os.Getenv("DECKHAND_MASTER_KEY"), d.db)
	if err != nil {
		return err
	}
	client := outbound.NewClient(reach, 0)
	defer client.CloseIdleConnections()
	known := &provider.Models{Settings: settings.New(d.db, keyring, secret.NewRedactor()), Client: client, Connector: connect.Connector{Catalogue: catalogue.New(file.Models)}}
	found, err := known.Test(ctx, c.User, api.TestModel{})
	if errors.Is(err, settings.ErrNotFound) {
		return fmt.Errorf("user %s has no stored settings; choose another with --user", c.User)
	}
	if err != nil {
		return err
	}
	r.Model(found)
	return nil
}
