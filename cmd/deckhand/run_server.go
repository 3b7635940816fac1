package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/cli/folder"
	"deckhand/internal/cli/setup"
	"deckhand/internal/config"
	"deckhand/internal/conversation"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/machine"
	"deckhand/internal/provider"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/sandbox/runner/embedded"
	"deckhand/internal/sandbox/tree"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/telemetry"
)

// home is where a local server keeps its data, and the conversation that it is for.
type home struct {
	dir   string
	owner string
	id    session.ID
	keep  bool
	// last says that the conversation is the one that was used last.
	last bool
}

// temporary is a home for one conversation.
func temporary(dataDir string) home {
	var random [16]byte
	_, _ = rand.Read(random[:])
	id := hex.EncodeToString(random[:])
	return home{dir: filepath.Join(dataDir, "run", id), id: session.ID(id)}
}

// kept is the home of the folder, so that the conversation can be continued there. Without a folder, the
// conversation has a home of its own.
func (f *localFlags) kept(h home) home {
	if h.keep = true; f.Folder != "" {
		h.dir, h.owner = folder.Of(f.DataDir, f.Folder).Dir, folder.Owner
	}
	return h
}

// runServer is a server for the conversations of one terminal.
type runServer struct {
	*server
	home
	c *serveCmd

	unlock     func()
	stop       context.CancelCauseFunc
	background tasks
}

// start creates the server without starting work. It logs to w.
func (f *localFlags) start(ctx context.Context, all *commands, w io.Writer, at home) (a *runServer, err error) {
	debug.SetGCPercent(800) // a short life needs few collections
	file, err := config.Read(all.Config)
	if err != nil {
		return nil, err
	}
	if f.DataDir, err = filepath.Abs(f.DataDir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.DataDir, 0o700); err != nil { // before the runner, whose folder is for all users
		return nil, fmt.Errorf("cannot create the data directory: %w", err)
	}
	redactor := secret.NewRedactor()
	cat := catalogue.New(file.Models)
	chosen, err := f.settings(ctx, cat, redactor)
	if err != nil {
		return nil, err
	}
	a = &runServer{home: at}
	a.owner = cmp.Or(a.owner, f.User)
	if f.RunnerPath == "" {
		if f.RunnerPath, err = embedded.Install(filepath.Join(f.DataDir, "runner")); err != nil {
			return nil, err
		}
	}
	level := telemetry.Level(f.LogLevel)
	logger := telemetry.NewLogger(w, level, "text", redactor.Handler)
	f.sweep(ctx, logger)
	if f.Microagents == "" {
		f.Microagents = filepath.Join(f.DataDir, "microagents")
	}
	f.Shared = filepath.Join(f.DataDir, "base")
	// Loopback, because the user of this command may reach everything that this machine
	// can reach.
	c := &serveCmd{DataFlags: config.DataFlags{DataDir: a.dir}, sandboxFlags: f.sandboxFlags, profileFlags: f.profileFlags, ListenFlags: config.ListenFlags{Addr: "127.0.0.1:0"}, level: level, temporary: !a.keep, seldom: true}
	a.c = c
	if f.Folder != "" && a.keep {
		if err := folder.Of(f.DataDir, f.Folder).Create(); err != nil {
			return nil, err
		}
	}
	d, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	made := a
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, d.db.Close())
		if !made.keep {
			err = errors.Join(err, os.RemoveAll(made.dir))
		}
		if made.unlock != nil {
			made.unlock()
		}
	}()
	if a.unlock, err = folder.Lock(a.dir, f.Folder); err != nil {
		return nil, err
	}
	keyring, err := secret.OpenKeyring(ctx, a.dir, config.MasterKey(), d.db)
	if err != nil {
		return nil, err
	}
	if err := a.store(ctx, d, keyring, chosen); err != nil {
		return nil, err
	}
	if a.server, err = wire(ctx, c, cat, d, keyring, redactor, logger); err != nil {
		if other := drivers.Unconfined(f.Sandbox); other != "" {
			err = fmt.Errorf("%w; use --sandbox %s to run without a sandbox", err, other)
		}
		return nil, err
	}
	if !a.keep {
		err = a.mark(ctx)
	}
	return a, err
}

// store replaces the stored settings, and finds the conversation that was used last.
func (a *runServer) store(ctx context.Context, d *data, keyring *secret.Keyring, chosen settings.Settings) error {
	body, err := settings.Encode(ctx, keyring, a.owner, chosen)
	if err != nil {
		return err
	}
	before, err := d.db.LoadSettings(ctx, a.owner)
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return err
	}
	if err := d.db.SaveSettings(ctx, settings.Record{User: a.owner, Version: before.Version + 1, Body: body, UpdatedAt: time.Now().UTC()}); err != nil {
		return err
	}
	if !a.last {
		return nil
	}
	if a.id, err = folder.Last(ctx, d.db); err == nil && a.id == "" {
		err = cli.Usagef("there is no session in this folder yet; start one with deckhand, or with deckhand run --keep")
	}
	return err
}

// settings returns the stored settings of the user, changed by the flags.
func (f *localFlags) settings(ctx context.Context, cat *catalogue.Catalogue, redactor *secret.Redactor) (settings.Settings, error) {
	stored, err := f.stored(ctx, redactor)
	if err != nil {
		return stored, err
	}
	model, baseURL := stored.Endpoint()
	if err := f.UseEnvironment(config.Stored{Model: model, BaseURL: baseURL, HasKey: !stored.LLMAPIKey.IsZero()}); err != nil {
		return stored, cli.Usagef("%w", err)
	}
	chosen, did, err := settings.Merge(&stored, f.Changes())
	if err != nil {
		return chosen, setup.Invalid(err)
	}
	redactor.Add(chosen.SecretValues()...)
	if f.askRisky {
		chosen.AskWhenRisky()
	}
	if d, _ := drivers.Find(f.Sandbox); f.Folder != "" && !d.Images {
		chosen.ClearImage()
	}
	known := provider.Models{Connector: connect.Connector{Catalogue: cat}, Silent: f.Silent}
	before, now := known.Config(stored, ""), known.Config(chosen, "")
	if f.ModelKey() == "" && (len(did.Notes) > 0 || connect.Address(before, cat) != connect.Address(now, cat)) {
		chosen.LLMAPIKey, now.APIKey = secret.Secret{}, "" // a key is only sent to the host that it was entered for
	}
	if f.Silent {
		return chosen, nil
	}
	if r := known.Rules().Check(&chosen, conversation.Use{Key: true, Price: true}); r != nil {
		if model == nil && f.Model == "" {
			now.Model = "" // a default that the user has not chosen
		}
		return chosen, setup.RefusedModel(r, now.Model, f.User, config.KeyVariable(now.Model))
	}
	f.origin = f.Origin(now.Model)
	return chosen, nil
}

// stored reads the user's settings, also while a server is running. It creates none.
func (f *localFlags) stored(ctx context.Context, redactor *secret.Redactor) (settings.Settings, error) {
	where, err := f.Database()
	if err != nil {
		return settings.Settings{}, err
	}
	if where.Missing() {
		return settings.Defaults(), nil
	}
	d, err := openData(ctx, f.DataFlags, access.Options{})
	if err != nil {
		return settings.Settings{}, err
	}
	defer d.db.Close()
	keyring, err := secret.OpenKeyring(ctx, f.DataDir, config.MasterKey(), d.db)
	if err != nil {
		return settings.Settings{}, err
	}
	found, err := settings.New(d.db, keyring, redactor).Get(ctx, f.User)
	if errors.Is(err, settings.ErrNotFound) {
		return settings.Defaults(), nil
	}
	return found, err
}

// forTerminal returns the server as the terminal uses it.
func (a *runServer) forTerminal() cli.LocalServer {
	s := cli.LocalServer{ID: a.id, Owner: a.owner, Sessions: a.sessions, Conversations: a.conversations, Log: a.data.db, Hub: a.hub, Frame: a.masks.Native, Work: a.work, Unconfined: !a.driver.Confined}
	if a.keep {
		s.Kept, s.Reopen = a.dir, "open it with: deckhand serve --data-dir "+a.dir
		if a.c.Folder != "" {
			s.Reopen = "continue it with deckhand -c, or " + s.Reopen
		}
	}
	return s
}

// work starts all parts. The channel is closed when one of them fails.
func (a *runServer) work(ctx context.Context) <-chan struct{} {
	ctx, a.stop = context.WithCancelCause(ctx)
	a.background.start(func() error { return a.loop.Run(ctx) }, a.stop)
	a.background.start(func() error { return a.keeper.Run(ctx) }, a.stop)
	return ctx.Done()
}

// end stops everything and removes the data unless it is to be kept.
func (a *runServer) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	defer machine.EndWithin(ctx, stopTime-shutdownTime)()
	if a.stop != nil {
		a.stop(nil)
	}
	a.background.wait()
	a.rater.Close()
	a.profiles.Close()
	a.keeper.Close() // or it would restart the sandbox
	h := sandbox.Handle{Driver: a.driver.Name, ID: string(a.id)}
	remove := a.driver.Destroy
	if a.keep {
		remove = a.driver.Stop
	}
	err := errors.Join(remove(ctx, h), a.driver.Close(), a.egress.Close(), a.data.db.Close())
	a.unlock()
	if !a.keep && err == nil {
		err = tree.Remove(a.dir)
	}
	return err
}
