// Package importer holds the commands that export a conversation to a file, and import such a file or the data folder of a legacy server.
package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // the machine may have no time zone data

	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/control"
	"deckhand/internal/datadir"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
	"deckhand/internal/takeover"
)

// Store is the database to import into.
type Store interface {
	io.Closer
	secret.KeyStore
	settings.Store
	takeover.Store
	datadir.ChainStore
}

// Data is an open data directory. Close the store.
type Data struct {
	Store Store
	Gate  *access.Gate
}

// Opener opens a data directory, and creates it if it is missing.
type Opener struct {
	Open func(context.Context, config.DataFlags) (*Data, error)
}

// Command is deckhand import.
type Command struct {
	File string `arg:"" optional:"" help:"File that deckhand export has written; - is standard input. Needs a running server."`
	config.DataFlags
	cli.ServerFlags
	From       string `name:"from" placeholder:"DIR" help:"Data folder of the legacy server, such as ~/.openhands. It is not modified."`
	User       string `name:"user" default:"admin" placeholder:"NAME" help:"User who owns the imported data (default: ${default})."`
	LegacyUser string `name:"legacy-user" placeholder:"UID" help:"Import only users/UID, from a server with several users."`
	Timezone   string `name:"timezone" placeholder:"ZONE" help:"Time zone of the recorded timestamps, such as Europe/Berlin or UTC. Default: this machine's."`
	Overwrite  bool   `name:"overwrite" help:"Replace settings that the user has already stored. Default: import only settings that are not set."`
	DryRun     bool   `name:"dry-run" help:"Print what would be imported, without storing anything."`
	JSON       bool   `name:"json" help:"Print only the report, as JSON."`
}

// Help implements kong.HelpProvider.
func (Command) Help() string {
	return "With FILE, the conversation belongs to the user of the key and is continued with the next message. Approvals, trust, budgets and the repository of the original are not taken over.\n\nWith --from, the import can be repeated: data that was already imported is skipped. No secrets are printed, and secrets in events are masked.\n\nExit codes: 0 everything was imported, 1 some data was not imported (see the output), 2 usage error."
}

// Run imports.
func (c *Command) Run(ctx context.Context, o *cli.Output, opener *Opener) error {
	switch {
	case c.File != "" && c.From != "":
		return cli.Usagef("use either FILE or --from, not both")
	case c.File == "" && c.From == "":
		return cli.Usagef("name a FILE that deckhand export has written, or use --from for the data folder of a legacy server")
	case c.File != "":
		return c.importFile(ctx, o)
	}
	zone, err := zoneOf(c.Timezone)
	if err != nil {
		return err
	}
	if c.LegacyUser != "" && (strings.ContainsAny(c.LegacyUser, `/\`) || c.LegacyUser == "." || c.LegacyUser == "..") {
		return cli.Usagef("--legacy-user must be the name of a folder in users")
	}
	root, err := os.OpenRoot(c.From)
	if err != nil {
		return cli.Usagef("cannot open --from: %w", err)
	}
	defer root.Close()
	target, done, err := c.target()
	if err != nil {
		return err
	}
	defer done()
	d, err := opener.Open(ctx, target)
	if err != nil {
		return err
	}
	defer d.Store.Close()
	if err := c.user(ctx, d, target); err != nil {
		return err
	}
	redactor := secret.NewRedactor()
	keyring, err := secret.OpenKeyring(ctx, target.DataDir, config.MasterKey(), d.Store)
	if err != nil {
		return err
	}
	if err := datadir.UseChain(ctx, d.Store, keyring); err != nil {
		return err
	}
	run := takeover.Import{Root: root, User: c.User, Store: d.Store, Settings: settings.New(d.Store, keyring, redactor), Masker: secret.NewMasker(),
		LegacyUser: c.LegacyUser, Zone: zone, Overwrite: c.Overwrite, DryRun: c.DryRun}
	if !c.JSON {
		run.Told = func(v takeover.Conversation) { v.Write(o.Stdout) }
		run.Reading = func(id string, done, total int) {
			if done > 0 && done%10_000 == 0 {
				fmt.Fprintf(o.Stderr, "%s: %d of %d events\n", id, done, total)
			}
		}
	}
	report, err := run.Run(ctx)
	if !c.DryRun && len(report.Settings.Imported) > 0 {
		if told := control.Tell(c.DataDir, control.Settings+" "+c.User); told != nil {
			report.Settings.Notes = append(report.Settings.Notes, "The settings are stored, but the running server did not confirm that it reloaded them. Restart it")
		}
	}
	return c.print(o, report, err)
}

func zoneOf(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, cli.Usagef("--timezone must be a time zone such as Europe/Berlin or UTC")
	}
	return zone, nil
}

// target returns the destination. A dry run creates no data directory: if there is none,
// it uses a temporary one.
func (c *Command) target() (config.DataFlags, func(), error) {
	nothing := func() {}
	where, err := c.Served()
	if err != nil || !c.DryRun {
		return c.DataFlags, nothing, err
	}
	if !where.Missing() {
		return c.DataFlags, nothing, nil
	}
	dir, err := os.MkdirTemp("", "deckhand-dry-run-")
	return config.DataFlags{DataDir: dir}, func() { os.RemoveAll(dir) }, err
}

// user makes sure that the user exists. If no server has been started yet, it creates the
// first user as the server would.
func (c *Command) user(ctx context.Context, d *Data, target config.DataFlags) error {
	users, err := d.Gate.Users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.Name == c.User {
			return nil
		}
	}
	if len(users) == 0 && c.User == "admin" {
		_, _, err := d.Gate.Bootstrap(ctx, target.DataDir)
		return err
	}
	if c.DryRun && target.DataDir != c.DataDir {
		return nil
	}
	return fmt.Errorf("user %s not found; create it with: deckhand user create %s", c.User, c.User)
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// print prints the report and returns the error for the exit code.
func (c *Command) print(o *cli.Output, r takeover.Report, failure error) error {
	if c.JSON {
		if err := printJSON(o.Stdout, r); err != nil {
			return err
		}
	} else {
		r.Write(o.Stdout)
	}
	switch {
	case failure != nil:
		return failure
	case !r.Clean() && !c.JSON:
		return errors.New("some data was not imported; see above")
	case !r.Clean():
		return cli.Exit(cli.ExitError)
	}
	return nil
}
