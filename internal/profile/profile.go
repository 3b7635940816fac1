package profile

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"deckhand/internal/agent"
	"deckhand/internal/conversation"
	"deckhand/internal/gitaccess"
	"deckhand/internal/knowledge"
	"deckhand/internal/llm/cassette"
	"deckhand/internal/llm/picture"
	"deckhand/internal/provider"
	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/tool"
	"deckhand/internal/tool/mcp"
	"deckhand/internal/v0"
	"deckhand/internal/workspace"
)

// Config says what a Builder works with.
type Config struct {
	provider.Models
	Sessions *session.Sessions
	Keyring  *secret.Keyring
	Keeper   *workspace.Keeper
	Forges   *gitaccess.Forges
	Outward  sandbox.Outward
	Logger   *slog.Logger

	Record cassette.Dir // "" records nothing
	Titles bool         // the model names conversations
	// Microagents is the folder with knowledge for all users, Users that with a
	// folder for each of them.
	Microagents, Users string
	SearchURL          string
	// Slow says that sandboxes take long to start; Workdir is what a sandbox calls
	// its workspace, "" if it has no fixed name.
	Slow    bool
	Workdir string
	// FrontEnd says that a legacy front end is served.
	FrontEnd bool
	// Disabled reports whether a user is disabled; agents do not work for one. It may be nil.
	Disabled func(ctx context.Context, user string) (bool, error)
}

// Builder turns settings into what an agent works with.
type Builder struct {
	Config
	pictures *picture.Fetcher
	library  *knowledge.Library
	servers  *mcp.Pool
	tools    tools
	// announced are the tool servers that people know to fail.
	announced announced
}

// New makes a Builder. Close it.
func New(c Config) *Builder {
	b := &Builder{Config: c,
		pictures: &picture.Fetcher{Client: c.Client},
		library:  &knowledge.Library{Global: c.Microagents, Users: c.Users},
		servers:  mcp.NewPool(0)}
	b.tools = newTools(tool.Server{Outward: c.Outward, Client: c.Client, SearchURL: c.SearchURL, SearchKey: b.searchKey, Skill: b.readSkill})
	return b
}

// Close ends connections to tool servers and browsers.
func (b *Builder) Close() {
	b.servers.Close()
	b.tools.close()
}

// Forget ends what was open for a conversation.
func (b *Builder) Forget(id session.ID) {
	b.servers.Forget(string(id))
	b.tools.forget(id)
	b.announced.forget(id)
}

// Picture implements agent.Config.Picture.
func (b *Builder) Picture(ctx context.Context, address string) (string, error) {
	return b.pictures.DataURL(ctx, address)
}

// Profile implements agent.Config.Profile.
func (b *Builder) Profile(ctx context.Context, st session.State) (agent.Profile, error) {
	if b.Disabled != nil {
		if disabled, err := b.Disabled(ctx, st.Owner); err != nil {
			return agent.Profile{}, err
		} else if disabled {
			return agent.Profile{}, &agent.ProfileError{ID: "STATUS$ERROR", Reason: "The user " + st.Owner + " is disabled on this server."}
		}
	}
	s, err := b.Settings.Get(ctx, st.Owner)
	if errors.Is(err, settings.ErrNotFound) {
		missing := conversation.NoSettings()
		return agent.Profile{}, &agent.ProfileError{ID: missing.Code, Reason: missing.Text}
	}
	if err != nil {
		return agent.Profile{}, err
	}
	masker, err := b.Settings.Masker(ctx, st.Owner)
	if err != nil {
		return agent.Profile{}, err
	}
	c, plan, err := b.override(ctx, st, &s)
	if err != nil {
		return agent.Profile{}, err
	}
	p := agent.Profile{Agent: agentOf(st, s), ModelName: c.Model, Info: b.Connector.Catalogue.Info(c.Model), MaxAsks: 500,
		Confirm: s.Confirms(), Condense: s.EnableDefaultCondenser, Warm: b.Slow, Masker: masker}
	if s.CondenserMaxSize != nil && s.EnableDefaultCondenser {
		p.MaxMessages = *s.CondenserMaxSize
	}
	// What is recorded or scripted knows no answer to a question that is not in it.
	p.Title = b.Titles && !strings.HasPrefix(c.Model, "scripted/") && !strings.HasPrefix(c.Model, "cassette/")
	if s.MaxIterations != nil {
		p.MaxAsks = *s.MaxIterations
	}
	if s.SecurityAnalyzer != nil {
		p.Analyzer = *s.SecurityAnalyzer
	}
	if plan { // nothing but what reads
		p.Agent = readOnly
	}
	language := ""
	if s.Language != nil {
		language = *s.Language
	}
	p.System = agent.System(agent.SystemInput{Agent: p.Agent, Language: language, RateCalls: p.Analyzer == "llm", Plan: plan})
	// A missing key is said by the provider, in the turn.
	if r := b.Rules().Check(&s, conversation.Use{Model: c.Model, Price: true, UserLimit: b.Limited}); r != nil {
		return p, &agent.ProfileError{ID: r.Code, Reason: r.Text}
	}
	if s.MaxBudgetPerTask != nil {
		budget := session.FromDollars(*s.MaxBudgetPerTask)
		p.Budget = &budget
	}
	if b.Silent {
		p.Model = silence{}
	} else if p.Model, err = b.Open(c, masker); err != nil {
		return p, &agent.ProfileError{ID: "STATUS$ERROR", Reason: masker.String(err.Error())}
	}
	p.Model = b.recorded(p.Model, masker)
	p.Small, p.Fallback = b.alternative(s, s.Small, c, masker), b.alternative(s, s.Fallback, c, masker)
	requests, err := b.Forges.Requests(ctx, st, s)
	if err != nil {
		return p, err
	}
	p.Tools = b.tools.of(p.Agent, conversationOf(st, !s.SearchAPIKey.IsZero()), requests)
	p.More, err = b.foreign(ctx, st, s, p)
	return p, err
}

// agentOf is the profile that the conversation has: that of the delegating conversation, or the user's.
func agentOf(st session.State, s settings.Settings) string {
	switch {
	case st.Created.Agent != "":
		return st.Created.Agent
	case s.Agent != nil && *s.Agent != "":
		return *s.Agent
	}
	return codeAct
}

// Script implements agent.Config.Script.
func Script(raw string) ([]agent.Recorded, error) {
	steps, err := v0.ParseReplay(raw)
	out := make([]agent.Recorded, len(steps))
	for i, s := range steps {
		out[i] = agent.Recorded{Said: s.Said, Text: s.Text, Calls: s.Calls}
	}
	return out, err
}

// top is the session in whose workspace a session works.
func (b *Builder) top(ctx context.Context, st session.State) (session.State, error) {
	for st.Created.Parent != "" {
		up, err := b.Sessions.Load(ctx, st.Created.Parent)
		if err != nil {
			return st, err
		}
		st = up
	}
	return st, nil
}
