package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/internal/agent"
	"deckhand/internal/conversation"
	"deckhand/internal/knowledge"
	"deckhand/internal/llm"
	"deckhand/internal/llm/cassette"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/picture"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/solvable"
	"deckhand/internal/tool"
	"deckhand/internal/tool/mcp"
	"deckhand/internal/tool/propose"
	"deckhand/internal/v0"
	"deckhand/internal/workspace"
)

// brainFlags say how agents think and whom they ask.
type brainFlags struct {
	Microagents     string        `name:"microagents" env:"DECKHAND_MICROAGENTS" placeholder:"DIR" help:"Folder with microagents and skills for all users. Default: microagents in the data directory."`
	ApprovalTimeout time.Duration `name:"approval-timeout" env:"DECKHAND_APPROVAL_TIMEOUT" default:"0" help:"How long a tool call waits for approval in confirmation mode; 0 means no limit."`
	ApprovalDefault string        `name:"approval-default" env:"DECKHAND_APPROVAL_DEFAULT" default:"reject" enum:"accept,reject" help:"Decision after --approval-timeout: accept or reject."`
	UserBudget      float64       `name:"user-budget" env:"DECKHAND_USER_BUDGET" default:"0" placeholder:"USD" help:"Spending limit per user and calendar month (UTC) in US dollars; 0 means no limit."`
	ModelTimeout    time.Duration `name:"model-timeout" env:"DECKHAND_MODEL_TIMEOUT" default:"10m" help:"Retry a model call when the provider sends no data for this long; 0 means no limit."`
	SearchURL       string        `name:"search-url" env:"DECKHAND_SEARCH_URL" placeholder:"URL" help:"Base URL of a Tavily-compatible search service. Default: Tavily."`
	Cassettes       string        `name:"cassettes" env:"DECKHAND_CASSETTES" placeholder:"DIR" help:"Folder with recorded model traffic: the model cassette/NAME replays DIR/NAME.jsonl."`
	Silent          bool          `kong:"-"` // no model is ever asked
	RecordCassettes string        `name:"record-cassettes" env:"DECKHAND_RECORD_CASSETTES" placeholder:"DIR" help:"Record the model traffic of every conversation in this folder."`
}

// brain makes it, with the parts that the server has.
func (f *brainFlags) brain(s *server, dataDir string, sessions *session.Sessions, all *settings.Service, client *http.Client, models map[string]catalogue.Override, h hands) *brain {
	global := f.Microagents
	if global == "" {
		global = filepath.Join(dataDir, "microagents")
	}
	b := &brain{settings: all, sessions: sessions, keyring: s.keyring, client: client, keeper: s.keeper, logger: s.logger,
		models:   connect.Connector{Catalogue: catalogue.New(models), Cassettes: cassette.Dir(f.Cassettes), Silence: f.ModelTimeout},
		record:   cassette.Dir(f.RecordCassettes),
		pictures: &picture.Fetcher{Client: client},
		library:  &knowledge.Library{Global: global, Users: filepath.Join(dataDir, "users")},
		servers:  mcp.NewPool(0), silent: f.Silent, warm: h.slow, limited: f.UserBudget > 0}
	if h.name != host.Name {
		b.workdir = sandbox.Workspace
	}
	b.tools = newTools(s.out, client, f.SearchURL, b.searchKey, b.readSkill)
	return b
}

// brain turns settings into what an agent works with.
type brain struct {
	settings *settings.Service
	sessions *session.Sessions
	keyring  *secret.Keyring
	models   connect.Connector
	record   cassette.Dir // "" records nothing
	titles   bool         // the model names conversations
	client   *http.Client // checks every address it dials
	pictures *picture.Fetcher
	library  *knowledge.Library
	servers  *mcp.Pool
	keeper   *workspace.Keeper
	tools    tools
	// silent says that no model is asked: what is recorded is all there is.
	silent bool
	// warm says that sandboxes take long to start; workdir is what a sandbox calls
	// its workspace, "" if it has no fixed name.
	warm    bool
	workdir string
	// public is the address at which people find this server; "" if they do not.
	public string
	// frontEnd says that a legacy front end is served.
	frontEnd bool
	// limited says that there is a limit on what a user may spend.
	limited bool
	// rater says how likely issues are solved; nil if nobody wants to know.
	rater *solvable.Rater
	// announced are the tool servers that people know to fail.
	announced announced
	logger    *slog.Logger
}

// close ends connections to tool servers and browsers.
func (b *brain) close() {
	if b.rater != nil {
		b.rater.Close()
	}
	b.servers.Close()
	b.tools.browser.Close()
}

// forget ends what was open for a conversation.
func (b *brain) forget(id session.ID) {
	b.servers.Forget(string(id))
	b.tools.browser.Forget(string(id))
	b.announced.forget(id)
}

// defaultModel is what a user without llm_model gets: a real one, so that a
// missing key is said at once and nobody talks to the demo by accident.
const defaultModel = "anthropic/claude-sonnet-4-20250514"

// userLimit is what each user may spend in a month; 0 is as much as they like.
func (f *brainFlags) userLimit() (session.Money, error) {
	if f.UserBudget < 0 || math.IsNaN(f.UserBudget) {
		return 0, errors.New("--user-budget must be an amount in US dollars, such as 50, or 0 for no limit")
	}
	return session.FromDollars(f.UserBudget), nil
}

// rules is what the use cases know of models. Where no model is asked, none needs a key.
func (b *brain) rules() conversation.Models {
	return conversation.Models{Default: defaultModel, HasPrice: b.hasPrice, Blind: b.blind, Other: b.otherModel,
		NeedsKey: func(model, baseURL string) bool {
			return !b.silent && (llm.Config{Model: model, BaseURL: baseURL}).NeedsKey()
		}}
}

func (b *brain) hasPrice(model string) bool { return b.models.Catalogue.Info(model).Priced }

// blind says why the model is of no use for a message with images. Of one that is
// in no list nobody can tell.
func (b *brain) blind(model string) string {
	said, _ := b.models.Catalogue.Override(model)
	switch listed := catalogue.New(nil).Info(model).Window > 0; {
	case said.Images != nil && !*said.Images:
		return v0.ImagesDisabled
	case listed && !b.models.Catalogue.Info(model).Images:
		return v0.ImagesUnsupported
	}
	return ""
}

// config is how the user reaches the model.
func (b *brain) config(s settings.Settings) llm.Config {
	c := llm.Config{Model: defaultModel, APIKey: s.LLMAPIKey.Reveal(), Client: b.client}
	if s.LLMModel != nil && *s.LLMModel != "" {
		c.Model = *s.LLMModel
	}
	if s.LLMBaseURL != nil {
		c.BaseURL = *s.LLMBaseURL
	}
	return c
}

// profile implements agent.Config.Profile.
func (b *brain) profile(ctx context.Context, st session.State) (agent.Profile, error) {
	s, err := b.settings.Get(ctx, st.Owner)
	if errors.Is(err, settings.ErrNotFound) {
		return agent.Profile{}, &agent.ProfileError{ID: api.CodeSettingsNotFound, Reason: "Settings not found"}
	}
	if err != nil {
		return agent.Profile{}, err
	}
	masker, err := b.settings.Masker(ctx, st.Owner)
	if err != nil {
		return agent.Profile{}, err
	}
	if err := b.override(ctx, st, &s); err != nil {
		return agent.Profile{}, err
	}
	c := b.config(s)
	p := agent.Profile{Agent: agentOf(st, s), ModelName: c.Model, Info: b.models.Catalogue.Info(c.Model), MaxAsks: 500,
		Confirm: s.ConfirmationMode != nil && *s.ConfirmationMode, Condense: s.EnableDefaultCondenser, Warm: b.warm, Masker: masker}
	if s.CondenserMaxSize != nil && s.EnableDefaultCondenser {
		p.MaxMessages = *s.CondenserMaxSize
	}
	// What is recorded or scripted knows no answer to a question that is not in it.
	p.Title = b.titles && !strings.HasPrefix(c.Model, "scripted/") && !strings.HasPrefix(c.Model, "cassette/")
	if s.MaxIterations != nil {
		p.MaxAsks = *s.MaxIterations
	}
	if s.SecurityAnalyzer != nil {
		p.Analyzer = *s.SecurityAnalyzer
	}
	language := ""
	if s.Language != nil {
		language = *s.Language
	}
	p.System = agent.System(agent.SystemInput{Agent: p.Agent, Language: language, RateCalls: p.Analyzer == "llm"})
	// A missing key is said by the provider, in the turn.
	if r := b.rules().Check(&s, conversation.Use{Price: true, UserLimit: b.limited}); r != nil {
		return p, &agent.ProfileError{ID: r.Code, Reason: r.Text}
	}
	if s.MaxBudgetPerTask != nil {
		budget := session.FromDollars(*s.MaxBudgetPerTask)
		p.Budget = &budget
	}
	if b.silent {
		p.Model = silence{}
	} else if p.Model, err = b.open(c, masker); err != nil {
		return p, &agent.ProfileError{ID: "STATUS$ERROR", Reason: masker.String(err.Error())}
	}
	if b.record != "" {
		p.Model = b.record.Record(p.Model, masker.String)
	}
	requests, err := b.requests(ctx, st, s)
	if err != nil {
		return p, err
	}
	p.Tools = b.tools.of(p.Agent, st, !s.SearchAPIKey.IsZero(), requests)
	p.More, err = b.foreign(ctx, st, s, p)
	return p, err
}

// open opens a model for the owner of masker, whose secrets are not in cassettes.
func (b *brain) open(c llm.Config, masker *secret.Masker) (llm.Model, error) {
	models := b.models
	models.Redact = masker.String
	return models.Open(c)
}

// agentOf is the profile that the conversation has: that of whoever delegated it, or the user's.
func agentOf(st session.State, s settings.Settings) string {
	switch {
	case st.Created.Agent != "":
		return st.Created.Agent
	case s.Agent != nil && *s.Agent != "":
		return *s.Agent
	}
	return codeAct
}

// maxOffered is how many tools a model is offered: OpenAI and Gemini refuse
// every request that has more.
const maxOffered = 128

// foreign gives the tools of tool servers. An agent that may only read gets none, for nobody knows what they do.
func (b *brain) foreign(ctx context.Context, st session.State, s settings.Settings, p agent.Profile) (func(context.Context) []tool.Tool, error) {
	if p.Agent != codeAct {
		return nil, nil
	}
	all, err := b.toolServers(ctx, st, s)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	reserved := append(v0.Tools(), propose.Names()...)
	for _, t := range p.Tools {
		reserved = append(reserved, t.Spec().Name)
	}
	set := b.servers.Set(string(st.ID), mcp.Config{Servers: all, Reserved: reserved, Room: max(maxOffered-len(p.Tools), 1), Client: b.client, Logger: b.logger,
		Box:      b.box(st),
		Withhold: b.withhold(st),
		Report:   func(status mcp.Status) { b.report(st.ID, p.Masker, status) }})
	return set.Tools, nil
}

// toolServers are those that the conversation was created with, else those of the settings.
func (b *brain) toolServers(ctx context.Context, st session.State, s settings.Settings) ([]mcp.Server, error) {
	var all settings.MCP
	if s.MCP != nil {
		all = *s.MCP
	}
	if len(st.Created.MCP) > 0 {
		var err error
		if all, err = b.ownServers(ctx, st); err != nil {
			return nil, err
		}
	}
	return mcp.Servers(all), nil
}

// ownServers unseals what the conversation was created with. One that was
// delegated has the servers of the one that it was created for.
func (b *brain) ownServers(ctx context.Context, st session.State) (settings.MCP, error) {
	id := st.ID
	for up := st; up.Created.Parent != ""; {
		var err error
		if up, err = b.sessions.Load(ctx, up.Created.Parent); err != nil {
			return settings.MCP{}, err
		}
		id = up.ID
	}
	plain, err := b.keyring.Open(ctx, st.Owner, conversation.SealedMCP(id), st.Created.MCP)
	if err != nil {
		return settings.MCP{}, err
	}
	var in api.MCPConfig
	if err := json.Unmarshal(plain, &in); err != nil {
		return settings.MCP{}, err
	}
	own, faults := settings.CheckMCP(in, nil)
	if len(faults) > 0 {
		return settings.MCP{}, &api.ValidationError{Detail: faults}
	}
	b.settings.Hold(st.Owner, string(id), own.SecretValues()...)
	return own, nil
}

// latest is the session in whose workspace a session works, as it is now.
func (b *brain) latest(ctx context.Context, id session.ID) (session.State, error) {
	st, err := b.sessions.Load(ctx, id)
	if err != nil {
		return st, err
	}
	return b.top(ctx, st)
}

// withhold keeps the values of tool servers from a repository that is not trusted, as
// customSecrets does with custom secrets: its code could take the place of a server.
func (b *brain) withhold(st session.State) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		top, err := b.latest(ctx, st.ID)
		if err != nil || top.Trusts() {
			return "", err
		}
		return "it is not started because its environment has values (env) and the repository " + top.Created.Repository +
			" is not trusted. To start it, mark the repository as trusted", nil
	}
}

// box gives the sandbox to tool servers that run in it.
func (b *brain) box(st session.State) tool.Box {
	return func(ctx context.Context) (*sandbox.Sandbox, error) {
		top, err := b.latest(ctx, st.ID)
		if err != nil {
			return nil, err
		}
		box, release, err := b.keeper.Use(ctx, top.ID)
		if err != nil {
			return nil, err
		}
		release()
		return box.Under(top.Claim), nil
	}
}

// announced remembers which tool servers people were told of that they fail. A server
// is tried again and again, each time with other words perhaps; people need to hear of it once.
type announced struct {
	mu     sync.Mutex
	failed map[session.ID]map[string]bool
}

// changes reports whether people were told otherwise the last time.
func (a *announced) changes(id session.ID, server string, fails bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed[id][server] == fails {
		return false
	}
	if a.failed == nil {
		a.failed = map[session.ID]map[string]bool{}
	}
	if a.failed[id] == nil {
		a.failed[id] = map[string]bool{}
	}
	a.failed[id][server] = fails
	return true
}

func (a *announced) forget(id session.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.failed, id)
}

// report tells people of a tool server that does not work, or does again.
func (b *brain) report(id session.ID, masker *secret.Masker, s mcp.Status) {
	n := session.Noted{ID: "STATUS$MCP_SERVER_READY", Message: "The MCP server " + s.Name + " is available again."}
	if s.State != mcp.Ready {
		n = session.Noted{ID: "STATUS$MCP_SERVER_FAILED", Error: true, Message: masker.String("The MCP server " + s.Name + " cannot be used: " + s.Error)}
	}
	if !b.announced.changes(id, s.Name, s.State != mcp.Ready) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), reportTime)
	defer cancel()
	_, err := b.sessions.Update(ctx, id, func(s session.State) ([]session.Payload, error) {
		if !s.Exists() || s.Deleted {
			return nil, nil
		}
		return []session.Payload{n}, nil
	})
	if err != nil {
		b.logger.Warn("cannot record the state of an MCP server", "session", id, "error", err)
	}
}

// script implements agent.Config.Script.
func script(raw string) ([]agent.Recorded, error) {
	steps, err := v0.ParseReplay(raw)
	out := make([]agent.Recorded, len(steps))
	for i, s := range steps {
		out[i] = agent.Recorded{Said: s.Said, Text: s.Text, Calls: s.Calls}
	}
	return out, err
}

// states implements httpapi.Config.MCPStates.
func (b *brain) states(ctx context.Context, owner string, id session.ID) ([]api.MCPServerStatus, error) {
	masker, err := b.settings.Masker(ctx, owner)
	if err != nil {
		return nil, err
	}
	out := []api.MCPServerStatus{}
	for _, s := range b.servers.States(string(id)) {
		s.Error = masker.String(s.Error)
		out = append(out, s.Wire())
	}
	return out, nil
}

// testServers implements httpapi.Config.TestMCP.
func (b *brain) testServers(ctx context.Context, user string, m settings.MCP) ([]api.MCPServerStatus, error) {
	masker, err := b.settings.Masker(ctx, user)
	if err != nil {
		return nil, err
	}
	masker = masker.With(m.SecretValues()...)
	out := []api.MCPServerStatus{}
	for _, s := range mcp.Probe(ctx, mcp.Config{Servers: mcp.Servers(m), Client: b.client, Logger: b.logger}) {
		s.Error = masker.String(s.Error)
		out = append(out, s.Wire())
	}
	return out, nil
}
