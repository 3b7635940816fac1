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
	"path/filepath"
	"time"

	"deckhand/internal/activity"
	"deckhand/internal/admission"
	"deckhand/internal/agent"
	"deckhand/internal/cluster"
	"deckhand/internal/config/reload"
	"deckhand/internal/conversation"
	"deckhand/internal/conversation/attempts"
	slashcommand "deckhand/internal/conversation/command"
	"deckhand/internal/conversation/disabled"
	"deckhand/internal/conversation/portable"
	"deckhand/internal/conversation/review"
	"deckhand/internal/datadir"
	"deckhand/internal/gitaccess"
	"deckhand/internal/gitprovider"
	"deckhand/internal/health"
	"deckhand/internal/httpapi"
	"deckhand/internal/httpapi/account"
	"deckhand/internal/httpapi/conversations"
	"deckhand/internal/httpapi/legacy"
	"deckhand/internal/httpapi/page"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/machine"
	"deckhand/internal/notify"
	"deckhand/internal/outbound"
	"deckhand/internal/profile"
	"deckhand/internal/queue"
	"deckhand/internal/replica"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/solvable"
	"deckhand/internal/telemetry"
	"deckhand/internal/tool/bash"
	"deckhand/internal/trigger"
	"deckhand/internal/workspace"
	"deckhand/internal/workspace/network"
	"deckhand/web"
)

// server is all parts of the server.
type server struct {
	data    *data
	keyring *secret.Keyring
	api     *httpapi.Handler
	loop    *agent.Loop
	metrics *telemetry.Metrics
	// activity and git know how model calls and requests to git hosts went.
	activity *activity.Activity
	git      activity.Hosts
	tracer   *telemetry.Tracer
	keeper   *workspace.Keeper
	replica  *replica.Parts
	egress   *egress.Proxy
	// workspaces are the keeper's workspaces with the environment of the current
	// settings.
	workspaces *profile.Workspaces
	driver     drivers.Driver
	front      *legacy.FrontEnd // nil for none
	out        sandbox.Outward
	profiles   *profile.Builder
	forges     *gitaccess.Forges
	rater      *solvable.Rater
	// public is the base URL for users, or ""; local is the base URL on this machine.
	public, local string
	sessions      *session.Sessions
	settings      *settings.Service
	// conversations are the use cases that all entry points call.
	conversations *conversation.Service

	hub       *live.Hub
	admission *admission.Gate
	webhooks  *notify.Dispatcher
	reloader  *reload.Reloader
	triggers  *trigger.Worker
	attempts  *attempts.Service
	imports   *portable.Service
	logger    *slog.Logger
	redactor  *secret.Redactor
	masks     *profile.Masks
	// onStopped is called before the sandbox driver is closed; nil for nothing.
	onStopped func(context.Context) error
}

// wire connects the parts, in the order of a request.
func wire(ctx context.Context, c *serveCmd, models *catalogue.Catalogue, d *data, keyring *secret.Keyring, redactor *secret.Redactor, logger *slog.Logger) (*server, error) {
	s := &server{data: d, keyring: keyring, logger: logger, redactor: redactor, metrics: telemetry.NewMetrics(version)}
	if err := datadir.UseChain(ctx, d.db, keyring); err != nil {
		return nil, err
	}
	signOn, err := signOn(ctx, c.signOnFlags, d, keyring, redactor)
	if err != nil {
		return nil, err
	}
	if c.LegacyUI != "" {
		if s.front, err = legacy.OpenFrontEnd(c.LegacyUI); err != nil {
			return nil, fmt.Errorf("--legacy-ui: %w", err)
		}
	}
	if c.OTLPEndpoint != "" {
		if s.tracer, err = telemetry.NewTracer(ctx, c.OTLPEndpoint, version, logger); err != nil {
			return nil, err
		}
	}
	reach, err := c.Reach()
	if err != nil {
		return nil, err
	}
	s.activity = activity.New(models.ProviderName)
	client := outbound.NewClient(reach, 10*time.Second)
	gitClient := s.git.Client(client)

	limit, err := c.userLimit()
	if err != nil {
		return nil, err
	}
	sessions := session.New(s.activity.Log(d.db), session.WithUserLimit(limit))
	userSettings := settings.New(d.db, keyring, redactor)
	joined, err := replica.Open(ctx, replica.Config{Flags: c.replicaFlags, DataDir: c.DataDir, DB: d.db, Keyring: keyring, Logger: logger})
	if err != nil {
		return nil, err
	}
	userSettings.SingleProcess = joined.Alone() // commands that change settings notify us
	s.masks = &profile.Masks{Settings: userSettings, Index: d.db}
	hub := live.New(d.db, s.masks.Frame, s.masks.Native)
	sessions.Written(hub.Written)
	s.sessions, s.settings, s.hub, s.admission = sessions, userSettings, hub, admission.New(c.Limits(c.perUser()))
	s.replica = joined.Join(sessions, d.db, d.db, hub, s.admission, d.gate, func() int { return s.loop.Working() + s.loop.Waiting() })
	s.admission.OnMove(hub.SetPlace)
	driver, policy, err := s.wireSandboxes(ctx, c, sessions, userSettings, gitClient, reach)
	if err != nil {
		return nil, err
	}
	patient := outbound.NewClient(reach, 0)
	s.forges = &gitaccess.Forges{Settings: userSettings, Sessions: sessions, Client: s.git.Client(patient), Public: func() string { return s.public }}
	s.profiles = profile.New(c.profile(s, c.DataDir, patient, models, driver, c.Titles == "model"))
	s.loop = agent.New(agent.Config{Sessions: sessions, Log: d.db, Index: d.db, Member: joined.Member, Leases: joined, Wakes: joined, MayTake: s.replica.MayTake, Deltas: s.activity.Deltas(s.replica.Deltas), Logger: logger, Admission: s.admission, Busy: func() bool { return s.api.Pending() > busyRequests },
		Workspaces: s.workspaces, Profile: s.profiles.Profile, Recall: s.profiles.Recall, Picture: s.profiles.Picture, Script: profile.Script, Shell: bash.Tool{}, Worked: s.worked,
		Delegate: func(ctx context.Context, d conversation.Delegate) error { return s.conversations.Delegate(ctx, d) },
		Approval: agent.Approval{Within: c.ApprovalTimeout, Accept: c.ApprovalDefault == "accept"}})
	sessions.Observe(hub)
	sessions.Watch(s.loop)
	sessions.Watch(s.keeper)
	member, announcer := queue.Member{Name: s.loop.Member, Live: joined.Live, Shared: !joined.Alone()}, cluster.Announcer{Wakes: joined, Member: s.loop.Member}
	sessions.Observe(announcer)
	sessions.Watch(announcer)

	s.conversations = conversation.New(conversation.Config{
		Sessions: sessions, Log: d.db, Index: d.db, Settings: userSettings, Seal: keyring, NewID: d.db.NewID, Models: s.profiles.Rules(), UserLimit: limit, SandboxImages: driver.Images,
		Conflicts: d.gate, Workspaces: s.keeper, Feedback: d.db.Feedback(), Redact: redactor.Add, Admission: s.admission,
		VerifyRepository: func(ctx context.Context, st settings.Settings, provider, repository, branch string) (string, error) {
			return gitprovider.Verify(ctx, gitClient, gitaccess.Tokens(st), provider, repository, branch)
		},
	})
	d.gate.OnChange = disabled.Stopper(d.gate.DisabledUsers, s.conversations)
	told, err := s.wireHooks(ctx, c.Flags, reach, client, member)
	if err != nil {
		return nil, err
	}
	config := httpapi.Config{
		Conversations: conversations.Config{Service: s.conversations, Sessions: sessions, Log: d.db, Index: d.db, Settings: userSettings, Hub: hub, Mask: s.masks.Event,
			RepositoryName: gitaccess.RepositoryName, Commands: &slashcommand.Runner{Conversations: s.conversations, Repository: s.profiles.RepositoryFiles, Compactable: s.loop.Compactable}, Microagents: s.profiles.MicroagentList, MCPStates: s.profiles.ServerStates},
		Account: account.Config{Models: s.profiles.Connector.Catalogue.Names, Providers: &s.profiles.Models, TestModel: s.profiles.Test, TestMCP: s.profiles.TestServers, Usage: account.Usage{Ledger: d.db, Limit: limit}, DeleteAfter: time.Duration(c.DeleteAfter), Redact: redactor.Add},
		Hooks:   told, Legacy: legacy.Config{Feedback: d.db.Feedback(), FrontEnd: s.front, FrontEndHosts: c.LegacyAllow},
		Access: rest.Admission{Gate: d.gate, Unlimited: c.RateLimit == 0, Hosts: c.Hosts(), Origins: c.AllowOrigin, PublicURL: c.PublicURL},
		Page:   page.Config{Built: web.Files(), SignOn: signOn}, Retries: &rest.Retries{Store: d.db, Seal: keyring, Lock: joined.Lock()}, Bodies: c.bodies(), Logger: logger,
		Telemetry: httpapi.Telemetry{Observe: func(f httpapi.Finished) { s.metrics.Request(f.Route, f.Method, f.Status, f.Took, f.Stream) }},
		Server:    httpapi.Server{Version: version, DataDir: c.DataDir, Ready: health.Ready(d.db, c.DataDir, logger)},
	}
	config.Files.Workspaces, config.Files.Egress, config.Files.ServerPolicy = s.keeper, s.egress, policy
	s.imports = &portable.Service{Conversations: s.conversations, Queries: config.Conversations.Reader(""), Workspaces: s.keeper, Machine: s.replica.Machine(), Dir: filepath.Join(c.DataDir, "imports"), Logger: logger}
	config.Conversations.Portable = s.imports
	s.wireForges(&config, gitClient)
	if c.MetricsAddr == "" {
		config.Telemetry.Metrics = s.metrics.Handler()
	}
	if s.tracer != nil {
		config.Telemetry.Trace, config.Telemetry.NameTrace = s.tracer.Span, telemetry.Name
	}
	s.wireTriggers(&config, member)
	if config.Forwarding, err = c.forwarding(ctx, d, keyring); err != nil {
		return nil, err
	}
	config.Server.Board, config.Server.Level, config.Server.Temporary = s.board(c, config), c.level, c.seldom
	config.Server.Peers, config.Legacy.Sockets.Engine.Tag = joined.Router(), joined.Machine()
	s.api = httpapi.New(config)
	s.replica.Tell(s.keeper, s.api.Lists(), hub, s.triggers, s.attempts)
	return s, nil
}

// wireSandboxes creates the sandbox driver, the keeper of workspaces and the egress
// proxy.
func (s *server) wireSandboxes(ctx context.Context, c *serveCmd, sessions *session.Sessions, userSettings *settings.Service, client *http.Client, reach outbound.Policy) (drivers.Driver, egress.Policy, error) {
	policy, private, err := c.Policy()
	if err = cmp.Or(err, c.CheckSandboxes()); err != nil {
		return drivers.Driver{}, policy, err
	}
	instance, err := datadir.Instance(ctx, s.data.db)
	if err != nil {
		return drivers.Driver{}, policy, err
	}
	s.egress = egress.New(egress.Config{Policy: network.PolicyOf(sessions, policy), AllowPrivate: private, Git: gitaccess.Grants(sessions, userSettings), Ledger: s.data.db.Egress(), Log: s.logger})
	s.out = func(ctx context.Context, id, call string, conn net.Conn) {
		s.egress.Serve(ctx, id, agent.ModelsID(call), conn)
	}
	if err := datadir.ClaimWorkspaces(filepath.Join(c.DataDir, "boxes"), instance); err != nil {
		return drivers.Driver{}, policy, errors.Join(err, s.egress.Close())
	}
	c.Together = c.together()
	for _, text := range c.Warnings() {
		s.logger.Warn(text)
	}
	choice := c.Driver(c.DataDir, instance, s.out, s.logger)
	choice.Options.Reach = reach.CheckPeer
	d, err := drivers.Choose(ctx, choice)
	if err != nil {
		return d, policy, errors.Join(err, s.egress.Close())
	}
	s.driver = d
	s.replica.Share(ctx, d.Driver)
	s.logger.Info("sandbox", "driver", d.Name, "egress", policy.Mode)
	if c.Folder == "" && !s.data.db.ReadOnly() {
		datadir.WarnIfOtherDriver(c.DataDir, d.Name, s.logger)
	}
	sealing, err := datadir.SandboxKeys(ctx, s.data.db, s.keyring)
	if err != nil {
		return d, policy, errors.Join(err, s.egress.Close(), d.Close())
	}
	spec := profile.Sandboxes(profile.SandboxConfig{Settings: userSettings, Limits: c.PerSandbox(), Folder: c.Folder, Path: d.Path(os.Getenv("PATH")), Gate: d.Confined, Seal: sealing})
	trust := &gitaccess.Trust{Sessions: sessions, Settings: userSettings, Client: client, Logger: s.logger}
	s.keeper = workspace.New(workspace.Config{Driver: d.Driver, Name: d.Name, Sessions: sessions, Index: s.data.db, Spec: s.replica.Spec(trust.Spec(spec)), Logger: s.logger, PerUser: c.perUser(), DiskPerUser: c.diskPerUser(d.Driver), Machine: s.replica.Machine(), Here: s.replica.Here, Suspension: workspace.Suspension{After: c.SuspendAfter, MaxLive: machine.LiveSandboxes(c.MaxLiveSandboxes), Followed: func(id session.ID) bool { return s.hub.Following(id) > 0 }},
		Prepare: gitaccess.NewCheckout(gitaccess.CheckoutConfig{Sessions: sessions, Settings: userSettings, Folder: c.Folder, Confinable: d.Confined,
			AskTime: c.ApprovalTimeout, AcceptLate: c.ApprovalDefault == "accept"}).Prepare,
		OnEnded: func(id session.ID) { userSettings.Release(string(id)) },
		Forgotten: func(ctx context.Context, id session.ID) {
			s.profiles.Forget(id)
			if err := s.egress.Forget(ctx, string(id)); err != nil {
				s.logger.Error("cannot remove the network log of a deleted conversation", "session", id, "error", err)
			}
		}})
	s.workspaces = &profile.Workspaces{Workspaces: s.keeper, Sessions: sessions, Spec: spec}
	return d, policy, nil
}

// board returns the health of the server, and adds the metrics of the parts.
func (s *server) board(c *serveCmd, config httpapi.Config) *health.Board {
	h := health.Config{Version: version, DataDir: c.DataDir, Ready: func(ctx context.Context) error { return errors.Join(s.data.db.Ping(ctx), s.data.db.Healthy()) }, ReadOnly: s.data.db.ReadOnly(), Database: s.data.db.Version, NATS: s.replica.NATS(), Keeper: s.keeper, NoSandbox: s.driver.Name == drivers.None, Conversations: s.conversations,
		Activity: s.activity, Git: &s.git, Working: s.loop.Working, Waiting: s.loop.Waiting, Admission: s.admission, Requests: func() int { return s.api.Pending() }, Streams: s.hub.Followers, Notified: s.webhooks.Stats, Level: c.level, Logger: s.logger,
		Queues: []health.Queue{{Name: "webhooks", Store: s.data.db.Queue(notify.Queue)}, {Name: "triggers", Store: s.data.db.Queue(trigger.Queue)}, {Name: "attempts", Store: s.data.db.Queue(s.replica.Queue(attempts.Queue))}}}
	if config.Page.SignOn != nil {
		h.SignOn = config.Page.SignOn.Check
	}
	board := health.New(h)
	s.metrics.Add(append(append(s.activity.Collectors(), board.Metrics()...), s.replica.Collectors()...)...)
	s.metrics.Store(s.data.db.Written)
	return board
}

// busyRequests is the number of concurrent requests above which the server counts as
// busy.
const busyRequests = 4

// wireForges gives the API the git providers and the user's model.
func (s *server) wireForges(c *httpapi.Config, client *http.Client) {
	s.rater = solvable.New(s.profiles.Ask, s.logger)
	c.Git.Rater, c.Conversations.Ask, c.MCP.Proposers = s.rater, s.profiles.Ask, s.forges.Proposers
	c.Files.Reviews = &review.Service{Conversations: s.conversations, Sessions: s.sessions, Settings: s.settings, Workspaces: s.keeper, Ask: s.profiles.Ask, Forges: s.forges}
	c.Git.Forge = func(ctx context.Context, provider string, t settings.ProviderToken) (gitprovider.Provider, error) {
		return gitaccess.Open(ctx, client, provider, t)
	}
}

// worked implements agent.Config.Worked.
func (s *server) worked(owner string, w agent.Work) {
	if s.tracer == nil {
		return
	}
	if labels, counts, ok := s.profiles.Usage(owner, w); ok {
		s.tracer.Count("usage", labels, counts)
	}
}
