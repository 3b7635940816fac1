// Package doctor is the command that checks the machine, the data of a server and its conversations.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"time"

	"deckhand/internal/advice"
	"deckhand/internal/cli"
	"deckhand/internal/cli/backups"
	"deckhand/internal/config"
	checks "deckhand/internal/doctor"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/scripted"
	"deckhand/internal/sandbox/boxflags"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/session"
)

// Opener opens the database of a server. Existing does not create one; exclusive is for repairs: it fails while a server uses the database.
type Opener struct {
	Open     func(context.Context, config.DataFlags, checks.Opening) (checks.Everything, error)
	Existing func(ctx context.Context, c config.DataFlags, exclusive bool) (checks.Everything, error)
}

// Command is deckhand doctor.
type Command struct {
	Model        bool   `name:"model" help:"Also test a user's stored model. Makes a few short model calls, which are billed."`
	User         string `name:"user" default:"admin" placeholder:"NAME" help:"User whose model to test (default: ${default})."`
	Backups      string `name:"backups" placeholder:"DIR" help:"Also read all backups in this folder and check their hashes."`
	Repair       bool   `name:"repair" help:"Repair damaged conversations: truncate them after the last valid event and save the removed events to a file, or accept events that do not match their hash chain. Move workspaces without a conversation to boxes/.set-aside. Correct reserved amounts in the ledger. Stop all servers that use the database first."`
	Conversation string `arg:"" optional:"" help:"Verify the log of the conversation with this ID instead."`
}

// checkup is a run of the command.
type checkup struct {
	*Command
	Server
}

// Server is the server that is checked, by its flags. Check returns the error with which it would refuse all of its flags.
type Server struct {
	config.DataFlags
	boxflags.Flags
	config.ListenFlags
	Check func() error `kong:"-"`
}

// Run runs the checks and says how to fix each problem.
func (cmd *Command) Run(ctx context.Context, file *config.Resolver, o *cli.Output, open *Opener, server Server) error {
	c := &checkup{Command: cmd, Server: server}
	if c.Conversation != "" {
		return c.verify(ctx, o.Stdout, open)
	}
	r := &checks.Report{Out: o.Stdout, MasterKey: config.MasterKey(), Flags: c.DataFlags.Flags()}
	r.Check("data dir", c.DataDir, checks.DataDir(c.DataDir))
	settings := c.Check()
	if settings != nil {
		settings = advice.With(file.Located(settings), "correct the setting; deckhand config show lists all settings and where they are set")
	}
	r.Check("settings", "a server starts with them", settings)
	where, err := c.Served()
	if c.CheckDatabase() == nil { // otherwise it is one of the settings
		r.Check("database", where.String(), err)
	}
	r.Check("clock", time.Now().Format(time.RFC3339), checks.Clock(time.Now(), where.Path))
	if err == nil {
		r.Stored(ctx, c.DataDir, where.Path, c.Repair, func(ctx context.Context, o checks.Opening) (checks.Everything, error) {
			return open.Open(ctx, c.DataFlags, o)
		})
	}
	if c.Backups != "" {
		n, err := backups.All(ctx, c.Backups, o.Stderr)
		if err != nil && !errors.Is(err, fs.ErrPermission) { // that error says what to do
			err = advice.With(err, "make a new backup: deckhand backup %s", c.Backups)
		}
		r.Check("backups", fmt.Sprintf("%d, all valid", n), err)
	}
	if _, _, err := net.SplitHostPort(c.Addr); err == nil {
		r.Check("address", c.Addr, checks.Address(c.Addr, c.DataDir))
	}
	r.Git(r.Sandbox(ctx, func(dir string) drivers.Config { return c.Driver(dir, "doctor", nil, slog.New(slog.DiscardHandler)) }))
	r.Check("built-in model", scripted.Demo+" needs no key and no network", nil)
	if c.Model {
		if err := c.model(ctx, file, r, open); err != nil {
			r.Check("model", "", err)
		}
	}
	return r.Result()
}

// verify verifies one conversation.
func (c *checkup) verify(ctx context.Context, out io.Writer, open *Opener) error {
	db, err := open.Existing(ctx, c.DataFlags, c.Repair)
	if err != nil {
		return err
	}
	defer db.Close()
	flags := c.DataFlags.Flags()
	unchecked, err := checks.UseChain(ctx, db, c.DataDir, config.MasterKey(), "deckhand doctor "+c.Conversation+" "+flags)
	if err != nil {
		return err
	}
	return checks.Verification{Store: db, ID: session.ID(c.Conversation), DataDir: c.DataDir, Repair: c.Repair, Out: out, Flags: flags, Unchecked: unchecked}.Run(ctx)
}

// VerifyAll verifies all conversations of a restored data directory. flags are those with which other commands use it.
func (o *Opener) VerifyAll(ctx context.Context, c config.DataFlags, flags string, out io.Writer) error {
	where, err := c.Database()
	if err != nil {
		return err
	}
	db, err := o.Existing(ctx, c, false)
	if err != nil {
		return err
	}
	defer db.Close()
	return (&checks.Report{Out: out, MasterKey: config.MasterKey(), Flags: flags}).Restored(ctx, db, c.DataDir, where.Path)
}

// model tests the stored model of the user.
func (c *checkup) model(ctx context.Context, file *config.Resolver, r *checks.Report, open *Opener) error {
	reach, err := c.Reach()
	if err != nil {
		return err
	}
	db, err := open.Existing(ctx, c.DataFlags, false)
	if err != nil {
		return err
	}
	defer db.Close()
	return r.StoredModel(ctx, db, checks.ModelOf{User: c.User, DataDir: c.DataDir, Models: connect.Connector{Catalogue: catalogue.New(file.Models())}, Reach: reach})
}
