package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/profile"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/tree"
	"deckhand/internal/sandbox/runner/embedded"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// alone is a server without a door, for one conversation. Its data lie in a
// folder of their own, so that it meets neither a running server nor another
// conversation of the kind.
type alone struct {
	*server
	id    session.ID
	owner string
	dir   string
	keep  bool

	unlock     func()
	stop       context.CancelCauseFunc
	background tasks
}

// start makes it. Nothing works yet.
func (f *talkFlags) start(ctx context.Context, all *commands, o *cli.Output) (a *alone, err error) {
	file, err := config.Read(all.Config)
	if err != nil {
		return nil, err
	}
	if f.DataDir, err = filepath.Abs(f.DataDir); err != nil {
		return nil, err
	}
	redactor := secret.NewRedactor()
	cat := catalogue.New(file.Models)
	chosen, err := f.settings(ctx, cat, redactor)
	if err != nil {
		return nil, err
	}
	var random [16]byte
	_, _ = rand.Read(random[:])
	a = &alone{id: session.ID(hex.EncodeToString(random[:])), owner: f.User, keep: f.Keep}
	a.dir = filepath.Join(f.DataDir, "run", string(a.id))
	if f.RunnerPath == "" {
		if f.RunnerPath, err = embedded.Install(filepath.Join(f.DataDir, "runner")); err != nil {
			return nil, err
		}
	}
	logger := f.logger(o.Stderr, redactor)
	f.sweep(ctx, logger)
	if f.Microagents == "" {
		f.Microagents = filepath.Join(f.DataDir, "microagents")
	}
	// The address is loopback, since whoever runs this may reach what this machine may.
	c := &serveCmd{DataFlags: config.DataFlags{DataDir: a.dir}, sandboxFlags: f.sandboxFlags, profileFlags: f.profileFlags, listenFlags: listenFlags{Addr: "127.0.0.1:0"}}
	d, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.db.Close(), os.RemoveAll(a.dir))
		}
	}()
	if a.unlock, err = datadir.Lock(a.dir); err != nil {
		return nil, err
	}
	keyring, err := secret.OpenKeyring(ctx, a.dir, os.Getenv("DECKHAND_MASTER_KEY"), d.db)
	if err != nil {
		return nil, err
	}
	body, err := settings.Encode(ctx, keyring, a.owner, chosen)
	if err != nil {
		return nil, err
	}
	if err := d.db.SaveSettings(ctx, settings.Record{User: a.owner, Version: 1, Body: body, UpdatedAt: time.Now().UTC()}); err != nil {
		return nil, err
	}
	if a.server, err = wire(ctx, c, file.Models, d, keyring, redactor, logger); err != nil {
		if f.Sandbox == "local" {
			err = fmt.Errorf("%w; use --sandbox host to run without a sandbox", err)
		}
		return nil, err
	}
	if !f.Keep {
		err = a.mark(ctx)
	}
	return a, err
}

func (f *talkFlags) logger(w io.Writer, redactor *secret.Redactor) *slog.Logger {
	return (&serveCmd{LogLevel: f.LogLevel}).logger(w, redactor)
}

// settings are the stored ones of the user, changed by the flags.
func (f *talkFlags) settings(ctx context.Context, cat *catalogue.Catalogue, redactor *secret.Redactor) (settings.Settings, error) {
	stored, err := f.stored(ctx, redactor)
	if err != nil {
		return stored, err
	}
	chosen, did, err := settings.Merge(&stored, f.changes())
	var invalid *api.ValidationError
	if errors.As(err, &invalid) && len(invalid.Detail) > 0 {
		return chosen, cli.Usagef("%s: %s", f.flagOf(invalid.Detail[0].Loc), invalid.Detail[0].Msg)
	}
	if err != nil {
		return chosen, err
	}
	redactor.Add(chosen.SecretValues()...)
	if f.Folder != "" { // no image knows it
		chosen.SandboxBaseContainerImage, chosen.SandboxRuntimeContainerImage = nil, nil
	}
	var models profile.Models
	before, now := models.Config(stored), models.Config(chosen)
	if key() == "" && (len(did.Notes) > 0 || connect.Address(before, cat) != connect.Address(now, cat)) {
		chosen.LLMAPIKey, now.APIKey = secret.Secret{}, "" // a key belongs to the host it was given for
	}
	switch {
	case f.Silent:
	case now.APIKey == "" && now.NeedsKey():
		return chosen, cli.Usagef("no key for the model %s: set LLM_API_KEY, choose another --model (scripted/demo needs no key), or store a key in the settings of %s", now.Model, f.User)
	case chosen.MaxBudgetPerTask != nil && !cat.Info(now.Model).Priced:
		return chosen, cli.Usagef("--budget: the price of %s is unknown, so the limit cannot be enforced; set a price under prices in the config file (0 is allowed)", now.Model)
	}
	return chosen, nil
}

// key is the model's key. It comes from the environment only: arguments can be seen by everybody.
func key() string {
	if k := os.Getenv("DECKHAND_LLM_API_KEY"); k != "" {
		return k
	}
	return os.Getenv("LLM_API_KEY")
}

// changes are what the flags say about settings.
func (f *talkFlags) changes() api.SettingsInput {
	var in api.SettingsInput
	for text, to := range map[*string]*api.Opt[string]{&f.Model: &in.LLMModel, &f.BaseURL: &in.LLMBaseURL, &f.Agent: &in.Agent, &f.Analyzer: &in.SecurityAnalyzer} {
		if *text != "" {
			*to = api.Some(*text)
		}
	}
	if k := key(); k != "" {
		in.LLMAPIKey = api.Some(k)
	}
	if f.MaxIterations != nil {
		in.MaxIterations = api.Some(*f.MaxIterations)
	}
	if f.Budget != nil {
		in.MaxBudgetPerTask = api.Some(*f.Budget)
	}
	if f.Confirm || f.Yes {
		in.ConfirmationMode = api.Some(f.Confirm)
	}
	return in
}

// flagOf is the flag that a setting was given by.
func (f *talkFlags) flagOf(loc []any) string {
	name := fmt.Sprint(loc[len(loc)-1])
	if flag, ok := map[string]string{"llm_model": "--model", "llm_base_url": "--base-url", "llm_api_key": "LLM_API_KEY", "max_budget_per_task": "--budget",
		"security_analyzer": "--analyzer", "confirmation_mode": "--confirm"}[name]; ok {
		return flag
	}
	return "--" + strings.ReplaceAll(name, "_", "-")
}

// stored reads the user's settings beside whatever server runs there. Where there are none, it makes none.
func (f *talkFlags) stored(ctx context.Context, redactor *secret.Redactor) (settings.Settings, error) {
	path, err := f.DatabasePath()
	if err != nil {
		return settings.Settings{}, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return settings.Defaults(), nil
	}
	d, err := openData(ctx, f.DataFlags, access.Options{})
	if err != nil {
		return settings.Settings{}, err
	}
	defer d.db.Close()
	keyring, err := secret.OpenKeyring(ctx, f.DataDir, os.Getenv("DECKHAND_MASTER_KEY"), d.db)
	if err != nil {
		return settings.Settings{}, err
	}
	found, err := settings.New(d.db, keyring, redactor).Get(ctx, f.User)
	if errors.Is(err, settings.ErrNotFound) {
		return settings.Defaults(), nil
	}
	return found, err
}

// forTerminal is the server as the person at the terminal meets it.
func (a *alone) forTerminal() cli.LocalServer {
	s := cli.LocalServer{ID: a.id, Owner: a.owner, Sessions: a.sessions, Log: a.data.db, Hub: a.hub, Frame: a.masks.Frame, Work: a.work, Unconfined: !a.driver.Confined()}
	if a.keep {
		s.Kept = a.dir
	}
	return s
}

// work begins to work on what there is. The channel is closed when a part of the server gave up.
func (a *alone) work(ctx context.Context) <-chan struct{} {
	ctx, a.stop = context.WithCancelCause(ctx)
	a.background.start(func() error { return a.loop.Run(ctx) }, a.stop)
	a.background.start(func() error { return a.keeper.Run(ctx) }, a.stop)
	return ctx.Done()
}

// end takes everything apart, and leaves nothing behind unless it is to be kept.
func (a *alone) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	if a.stop != nil {
		a.stop(nil)
	}
	a.background.wait()
	a.closeProfiles()
	a.keeper.Close() // or it would start again what is ended now
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
