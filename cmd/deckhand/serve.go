package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/admission"
	"deckhand/internal/agent/idle"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/config/reload"
	"deckhand/internal/control"
	"deckhand/internal/datadir"
	"deckhand/internal/httpapi"
	"deckhand/internal/httpapi/legacy"
	"deckhand/internal/idempotency"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/machine"
	"deckhand/internal/notify/mail"
	"deckhand/internal/replica"
	"deckhand/internal/sandbox/boxflags"
	"deckhand/internal/secret"
	"deckhand/internal/store"
	"deckhand/internal/telemetry"
)

// sandboxFlags configure the sandboxes.
type sandboxFlags = boxflags.Flags

// replicaFlags make a server one of several on the same database.
type replicaFlags = replica.Flags

type idleFlags = idle.Flags

// serveCmd is deckhand serve.
type serveCmd struct {
	config.ListenFlags
	config.DataFlags
	config.TLSFlags
	sandboxFlags `group:"sandbox"`
	profileFlags `group:"model"`
	signOnFlags  `group:"signon"`
	shareFlags   `group:"limits"`
	replicaFlags `group:"replicas"`

	admission.LimitFlags `group:"limits"`
	idleFlags
	mail.Flags   `group:"mail"`
	LegacyUI     string   `name:"legacy-ui" group:"web" env:"DECKHAND_LEGACY_UI" placeholder:"DIR" help:"Serve the legacy web front end at /, from its build folder with index.html. Default: Deckhand's web page."`
	LegacyAllow  []string `name:"legacy-ui-allow" group:"web" env:"DECKHAND_LEGACY_UI_ALLOW" placeholder:"HOST,…" help:"Hosts from which the legacy front end may load scripts, styles and fonts, such as cdn.jsdelivr.net for its diff editor. Default: only this server."`
	AllowOrigin  []string `name:"allow-origin" group:"web" env:"DECKHAND_ALLOW_ORIGIN" placeholder:"ORIGIN" help:"Web origins that may call the API, such as https://tools.example.org."`
	PortsDomain  string   `name:"ports-domain" group:"web" env:"DECKHAND_PORTS_DOMAIN" placeholder:"NAME" help:"Serve sandbox ports under subdomains of this name, such as ports.example.org; its wildcard DNS record must point here. Default: subdomains of localhost if the server listens on loopback."`
	RateLimit    float64  `name:"rate-limit" group:"limits" env:"DECKHAND_RATE_LIMIT" default:"50" help:"Maximum requests per second per key; 0 means no limit."`
	RateBurst    int      `name:"rate-burst" group:"limits" env:"DECKHAND_RATE_BURST" default:"100" help:"Maximum burst of requests per key."`
	Titles       string   `name:"titles" group:"model" env:"DECKHAND_TITLES" default:"model" enum:"model,task" help:"How to title a conversation after its first turn: model (a small model call within the budget) or task (the first words of the task)."`
	MetricsAddr  string   `name:"metrics-addr" group:"monitor" env:"DECKHAND_METRICS_ADDR" placeholder:"ADDR" help:"Serve /metrics and profiles (/debug/pprof/) on this address without a key. Default: metrics on the main address, with an admin key."`
	OTLPEndpoint string   `name:"otlp-endpoint" group:"monitor" env:"DECKHAND_OTLP_ENDPOINT" placeholder:"URL" help:"Send traces to this OTLP endpoint, such as http://127.0.0.1:4318. Default: no traces."`
	LogLevel     string   `name:"log-level" group:"monitor" env:"DECKHAND_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Log level: debug, info, warn or error."`
	LogFormat    string   `name:"log-format" group:"monitor" env:"DECKHAND_LOG_FORMAT" default:"text" enum:"text,json" help:"Log format: text or json."`

	level *slog.LevelVar
	// temporary says that the data is removed with the process, seldom that it may never get a request.
	temporary, seldom bool
}

// shutdownTime is how long requests may take after a signal, and stopTime how long everything may, less than systemd waits.
const shutdownTime, stopTime = 20 * time.Second, 45 * time.Second

// Run serves until ctx ends, then finishes requests in progress.
func (c *serveCmd) Run(ctx context.Context, file *config.Resolver, o *cli.Output) (err error) {
	defer machine.Stopped(ctx, &err)
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer machine.EndWithin(ctx, stopTime)()
	machine.CollectOften()
	models := catalogue.New(file.Models())
	redactor := secret.NewRedactor()
	c.level = telemetry.Level(c.LogLevel)
	logs := o.Stderr
	if file, ok := logs.(*os.File); ok {
		lines := telemetry.NewLines(file)
		defer lines.Close()
		logs = lines
	}
	logger := telemetry.NewLogger(logs, c.level, c.LogFormat, redactor.Handler)

	for _, name := range file.Unused {
		logger.Warn("unknown environment variable; check its spelling", "name", name)
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return fmt.Errorf("cannot create the data directory: %w", err)
	}
	unlock, err := datadir.Lock(c.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	datadir.WarnIfOpen(c.DataDir, logger)
	d, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer d.db.Close()
	if d.db.ReadOnly() {
		logger.Warn("the database is read-only: conversations can be read but not changed")
	}
	keyring, err := secret.OpenKeyring(ctx, c.DataDir, config.MasterKey(), d.db)
	if err != nil {
		return err
	}
	if err := d.signCookies(ctx, keyring, c.limits()); err != nil {
		return err
	}
	s, err := wire(ctx, c, models, d, keyring, redactor, logger)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return config.ListenError(c.Addr, err)
	}
	if c.RemoveSandboxes {
		s.onStopped = s.driver.DestroyAll
	}
	s.reloader = &reload.Reloader{Read: func() (reload.Values, error) { return values(file.Args) }, Level: c.level, Catalogue: models, Log: logger, Limits: s.admission.SetLimits}
	if err := s.reloader.Begin(); err != nil {
		return err
	}
	s.public, s.local = c.Base(listener.Addr(), c.TLSCert != ""), c.Local(listener.Addr(), c.TLSCert != "")
	if err := (cli.Start{Gate: d.gate, DataDir: c.DataDir, ReadOnly: d.db.ReadOnly(), Version: version, Base: s.public}).Announce(ctx, o.Stdout); err != nil {
		listener.Close()
		return err
	}
	if err := machine.NotifyReady(); err != nil {
		logger.Warn(err.Error())
	}
	return s.run(ctx, stop, c, listener)
}

// check returns a usage error if the server cannot start with the flags, before anything is written to disk.
func (c *serveCmd) check() error {
	err := c.wrong()
	if err != nil {
		err = cli.Usagef("%w", err)
	}
	return err
}

func (c *serveCmd) wrong() error {
	if err := errors.Join(c.CheckTLS(), c.CheckListen(c.TLSCert != ""), c.CheckLimits(), c.CheckDatabase(), c.CheckMail(), c.CheckReplicas(c.Database), c.CheckSignOn(), c.CheckSandboxes(), telemetry.CheckEndpoint(c.OTLPEndpoint), secret.CheckMaster(config.MasterKey()),
		config.CheckOrigins(c.AllowOrigin), config.CheckAddress("--metrics-addr", c.MetricsAddr), config.CheckFolder("--microagents", c.Microagents), config.CheckFolder("--cassettes", c.Cassettes)); err != nil {
		return err
	}
	if _, err := c.userLimit(); err != nil {
		return err
	}
	if _, err := httpapi.PublicPath(c.PublicURL); c.PublicURL != "" && err != nil {
		return fmt.Errorf("--public-url: %w", err)
	}
	return cmp.Or(c.CheckPortsDomain(c.PortsDomain), legacy.CheckFrontEnd(c.LegacyUI, c.LegacyAllow))
}

func (c *serveCmd) limits() access.Options {
	o := access.Options{RatePerSecond: c.RateLimit, Burst: c.RateBurst, MaxKeys: c.UserKeys}
	if c.UserRateLimit > 0 {
		o.UserRatePerSecond, o.UserBurst = c.UserRateLimit, max(1, int(2*c.UserRateLimit))
	}
	if c.RateLimit == 0 {
		o.RatePerSecond, o.Burst = 1e12, 1<<30
	}
	return o
}

func (c *serveCmd) open(ctx context.Context) (*data, error) {
	return openDataWith(ctx, c.DataFlags, c.limits(), store.Options{Reserve: reserveSize, Together: c.Several(), Temporary: c.temporary, Templates: c.Shared})
}

// signCookies gives the gate a persistent key, so that browsers stay logged in after a
// restart.
func (d *data) signCookies(ctx context.Context, keyring *secret.Keyring, o access.Options) error {
	if d.db.ReadOnly() {
		return nil
	}
	key, err := datadir.Key(ctx, d.db, keyring, "cookie_key", "cookie key")
	if err != nil {
		return err
	}
	o.CookieKey = key
	d.gate = access.NewGate(d.db, o)
	return nil
}

// run serves until ctx ends, which stop does.
func (s *server) run(ctx context.Context, stop context.CancelCauseFunc, c *serveCmd, listener net.Listener) error {
	if c := s.reloader.TLS(); c != nil {
		listener = httpapi.ListenTLS(listener, c)
	} else {
		listener = httpapi.Listen(listener)
	}
	web := httpapi.NewWeb(s.api, s.logger)
	background := &tasks{}
	background.start(func() error { return s.loop.Run(ctx) }, stop)
	background.start(func() error { return s.keeper.Run(ctx) }, stop)
	background.start(func() error { return s.replica.Run(ctx, s.api, s.api.HasPort) }, stop)
	background.start(func() error { idle.Close(ctx, s.sessions, s.data.db, c.IdleClose, s.logger); return nil }, stop)
	background.start(func() error { return s.data.gate.Watch(ctx, s.logger) }, stop)
	if !s.data.db.ReadOnly() {
		background.start(func() error { return idempotency.Expire(ctx, s.data.db, s.logger) }, stop)
		background.start(func() error { return idle.Delete(ctx, s.data.db, c.DeleteAfter, s.conversations.Expire, s.logger) }, stop)
	}
	background.start(func() error { return s.reloader.Run(ctx) }, stop)
	background.start(func() error { return s.runQueue(ctx, s.webhooks.Run) }, stop)
	background.start(func() error { return s.runQueue(ctx, s.triggers.Run) }, stop)
	background.start(func() error { return s.runQueue(ctx, s.attempts.Run) }, stop)
	background.start(func() error { return s.runQueue(ctx, s.imports.Sweep) }, stop)
	background.start(func() error { return s.trySignOn(ctx) }, stop)
	if socket, err := control.Listen(c.DataDir); err == nil {
		background.start(func() error { return control.Serve(ctx, socket, s.control) }, stop)
	} else {
		s.logger.Warn("changes by key commands take effect after a second", "error", err)
	}
	if c.MetricsAddr != "" {
		background.start(func() error { return telemetry.Serve(ctx, c.MetricsAddr, s.api.GuardHost(s.metrics.Private())) }, stop)
	}
	background.start(func() error { machine.Settle(ctx); return nil }, stop)
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		stop(err)
	case <-ctx.Done():
	}
	s.logger.Info("stopping: finishing work in progress")
	s.api.Close() // ends streams; readers resume where they were
	err := web.End(shutdownTime)
	background.wait()
	s.rater.Close()
	s.profiles.Close()
	s.replica.Close()
	s.keeper.Close() // sandboxes keep running for the next server
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if s.onStopped != nil {
		err = errors.Join(err, s.onStopped(grace))
	}
	err = errors.Join(err, s.driver.Close(), s.egress.Close(), s.front.Close())
	if s.tracer != nil {
		err = errors.Join(err, s.tracer.Close(grace))
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, http.ErrServerClosed) {
		return cause
	}
	return err
}
