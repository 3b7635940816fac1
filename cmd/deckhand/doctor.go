package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/control"
	"deckhand/internal/datadir"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/scripted"
	"deckhand/internal/outbound"
	"deckhand/internal/profile"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

type doctorCmd struct {
	common
	sandboxFlags
	listenFlags
	Model        bool   `name:"model" help:"Also test a user's stored model. Makes a few short model calls, which are billed."`
	User         string `name:"user" default:"admin" placeholder:"NAME" help:"User whose model to test (default: ${default})."`
	Repair       bool   `name:"repair" help:"Truncate a damaged conversation after its last valid event, and save the removed events to a file. Stop the server first."`
	Conversation string `arg:"" optional:"" help:"ID of a conversation whose log to verify instead."`
}

// Run checks one thing after the other and says what to do about what is wrong.
func (c *doctorCmd) Run(ctx context.Context, all *commands, o *cli.Output) error {
	if c.Conversation != "" {
		return c.verify(ctx, o)
	}
	if c.Repair {
		return errors.New("--repair needs a conversation ID")
	}
	r := &report{o: o}
	r.check("data dir", c.DataDir, c.dataDir())
	path, err := c.databasePath()
	r.check("database", path, err)
	if err == nil {
		r.check("database opens", "", c.database(ctx, r))
	}
	r.check("address", c.Addr, c.address())
	c.sandbox(ctx, r)
	r.check("built-in model", scripted.Demo+" needs no key and no network", nil)
	if c.Model {
		if err := c.model(ctx, all, r); err != nil {
			r.check("model", "", err)
		}
	}
	if r.failed > 0 {
		return fmt.Errorf("%d of the checks failed", r.failed)
	}
	fmt.Fprintln(o.Stdout, "All checks passed.")
	return nil
}

type report struct {
	o      *cli.Output
	failed int
}

func (r *report) check(what, detail string, err error) {
	mark := "ok  "
	if err != nil {
		mark, detail = "FAIL", err.Error()
		r.failed++
	}
	fmt.Fprintf(r.o.Stdout, "%s  %-16s %s\n", mark, what, detail)
}

// warn tells of something that works less well than it could.
func (r *report) warn(what, detail string) {
	fmt.Fprintf(r.o.Stdout, "warn  %-16s %s\n", what, detail)
}

func (c *doctorCmd) dataDir() error {
	info, err := os.Stat(c.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the server makes it
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("not a folder; choose another --data-dir")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users can read it; run: chmod 700 %s", c.DataDir)
	}
	probe := filepath.Join(c.DataDir, ".doctor")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	var fs syscall.Statfs_t
	if syscall.Statfs(c.DataDir, &fs) == nil && int64(fs.Bavail)*fs.Bsize < 100<<20 {
		err = errors.New("less than 100 MiB of disk space left")
	}
	return errors.Join(err, os.Remove(probe))
}

// database opens what is there; it makes nothing where nothing is.
func (c *doctorCmd) database(ctx context.Context, r *report) error {
	path, _ := c.databasePath()
	for _, needed := range []string{c.DataDir, path} {
		if _, err := os.Stat(needed); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	d, err := openData(ctx, c.common, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	if err := d.db.Check(ctx); err != nil {
		return err
	}
	_, err = secret.OpenKeyring(ctx, c.DataDir, os.Getenv("DECKHAND_MASTER_KEY"), d.db)
	r.check("master key", "can decrypt the stored secrets", err)
	return nil
}

// model tries the model that the user has stored, as the server would reach it.
func (c *doctorCmd) model(ctx context.Context, all *commands, r *report) error {
	file, err := config.Read(all.Config)
	if err != nil {
		return err
	}
	reach, err := c.reach()
	if err != nil {
		return err
	}
	d, err := openExisting(ctx, c.common, access.Options{})
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
	models := &profile.Models{Settings: settings.New(d.db, keyring, secret.NewRedactor()), Client: client, Connector: connect.Connector{Catalogue: catalogue.New(file.Models)}}
	found, err := models.Test(ctx, c.User, api.TestModel{})
	if errors.Is(err, settings.ErrNotFound) {
		return fmt.Errorf("user %s has no stored settings; choose another with --user", c.User)
	}
	if err != nil {
		return err
	}
	r.model(found)
	return nil
}

// model writes what came out of trying a model. What nobody can tell is a warning,
// and so is what agents can do without.
func (r *report) model(found api.ModelReport) {
	var err error
	if !found.OK {
		err = fmt.Errorf("agents cannot use %s", found.Model)
	}
	r.check("model", found.Model, err)
	for _, k := range found.Checks {
		switch {
		case k.OK != nil && *k.OK:
			r.check("  "+k.Name, k.Message, nil)
		default:
			r.warn("  "+k.Name, k.Message)
		}
	}
	for _, n := range found.Notes {
		r.warn("  key", n)
	}
}

// sandbox asks the sandbox driver what it thinks of this machine.
func (c *doctorCmd) sandbox(ctx context.Context, r *report) {
	dir, err := os.MkdirTemp("", "deckhand-doctor-")
	if err != nil {
		r.check("sandbox", "", err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // a sandbox's own user must get through
		r.check("sandbox", "", err)
		return
	}
	d, err := drivers.Open(ctx, c.driver(dir, "doctor", nil, slog.New(slog.DiscardHandler)))
	if err != nil {
		r.check("sandbox", "", err)
		return
	}
	defer d.Close()
	r.check("sandbox", d.Name, nil)
	for _, f := range drivers.Findings(ctx, d.Driver) {
		switch {
		case f.Fatal:
			r.check("  "+d.Name, "", fmt.Errorf("%s: %s. %s", f.What, strings.TrimRight(f.Found, "."), f.Fix))
		case !f.OK:
			r.warn("  "+d.Name, fmt.Sprintf("%s: %s. %s", f.What, strings.TrimRight(f.Found, "."), f.Fix))
		default:
			r.check("  "+d.Name, f.What+": "+f.Found, nil)
		}
	}
}

func (c *doctorCmd) address() error {
	l, err := net.Listen("tcp", c.Addr)
	if errors.Is(err, syscall.EADDRINUSE) && control.Running(c.DataDir) {
		return nil // it is ours
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return errors.New("in use: a server may be running already; otherwise choose another --addr")
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// verify folds a log and holds it against every rule.
func (c *doctorCmd) verify(ctx context.Context, o *cli.Output) error {
	d, err := openExisting(ctx, c.common, access.Options{})
	if err != nil {
		return err
	}
	defer d.db.Close()
	id := session.ID(c.Conversation)
	st, damage := session.Fold(ctx, d.db, session.State{ID: id})
	if damage != nil && !errors.Is(damage, session.ErrCorrupt) {
		return damage
	}
	if !st.Exists() && damage == nil {
		return fmt.Errorf("there is no conversation %s", id)
	}
	row, err := d.db.Row(ctx, id)
	if err != nil {
		return err
	}
	if damage == nil && (row.Last != st.Last || row.Status != st.Status() || row.Wants != st.Wants()) && !st.Deleted {
		damage = fmt.Errorf("the index has event %d and %s, the log has event %d and %s", row.Last, row.Status, st.Last, st.Status())
	}
	if damage == nil {
		fmt.Fprintf(o.Stdout, "conversation %s: %d events, all valid; %s, agent %s\n", id, st.Last, st.Status(), st.Agent)
		return nil
	}
	if !st.Exists() {
		return fmt.Errorf("conversation %s is damaged from its first event (%w) and cannot be repaired; delete it", id, damage)
	}
	if !c.Repair {
		return fmt.Errorf("conversation %s is valid up to event %d: %w; truncate it there with: deckhand doctor --repair %s", id, st.Last, damage, id)
	}
	return c.repair(ctx, o, d, st)
}

// repair ends a damaged log where it is still good. What is cut off is kept in a file first.
func (c *doctorCmd) repair(ctx context.Context, o *cli.Output, d *data, st session.State) error {
	unlock, err := datadir.Lock(c.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(c.DataDir, "cut-off-"+string(st.ID)+".jsonl")
	cut, err := d.db.Dump(ctx, st.ID, st.Last)
	if err != nil {
		return err
	}
	if len(cut) > 0 {
		if err := os.WriteFile(path, cut, 0o600); err != nil {
			return err
		}
		fmt.Fprintf(o.Stdout, "saved the removed events to %s\n", path)
	}
	if err := d.db.Repair(ctx, st.ID, st.Last, st.Row()); err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout, "conversation %s now ends after event %d; %s, agent %s\n", st.ID, st.Last, st.Status(), st.Agent)
	return nil
}
