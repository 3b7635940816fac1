package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/doctor"
	"deckhand/internal/llm/scripted"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/session"
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
	where, err := c.Database()
	r.Check("database", where.String(), err)
	r.Check("clock", time.Now().Format(time.RFC3339), doctor.Clock(time.Now(), where.Path))
	if err == nil {
		r.Stored(ctx, c.DataDir, where.Path, func(ctx context.Context) (doctor.Database, error) {
			d, err := openData(ctx, c.DataFlags, access.Options{})
			if err != nil {
				return nil, err
			}
			return d.db, nil
		})
	}
	r.Check("address", c.Addr, doctor.Address(c.Addr, c.DataDir))
	r.Git()
	r.Sandbox(ctx, func(dir string) drivers.Config { return c.Driver(dir, "doctor", nil, slog.New(slog.DiscardHandler)) })
	r.Check("built-in model", scripted.Demo+" needs no key and no network", nil)
	if c.Model {
		if err := c.model(ctx, all, r); err != nil {
			r.Check("model", "", err)
		}
	}
	return r.Result()
}

// model tests the stored model of the user.
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
	return r.StoredModel(ctx, d.db, doctor.ModelOf{User: c.User, DataDir: c.DataDir, Models: file.Models, Reach: reach})
}
