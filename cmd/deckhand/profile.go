package main

import (
	"errors"
	"math"
	"net/http"
	"path/filepath"
	"time"

	"deckhand/internal/llm/cassette"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/profile"
	"deckhand/internal/provider"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/session"
)

// profileFlags configure the models.
type profileFlags struct {
	Microagents     string        `name:"microagents" env:"DECKHAND_MICROAGENTS" placeholder:"DIR" help:"Folder with microagents and skills for all users. Default: microagents in the data directory."`
	ApprovalTimeout time.Duration `name:"approval-timeout" env:"DECKHAND_APPROVAL_TIMEOUT" default:"0" help:"How long a tool call waits for approval in confirmation mode; 0 means no limit."`
	ApprovalDefault string        `name:"approval-default" env:"DECKHAND_APPROVAL_DEFAULT" default:"reject" enum:"accept,reject" help:"Decision after --approval-timeout: accept or reject."`
	UserBudget      float64       `name:"user-budget" env:"DECKHAND_USER_BUDGET" default:"0" placeholder:"USD" help:"Spending limit in US dollars per user and calendar month (UTC); 0 means no limit."`
	ModelTimeout    time.Duration `name:"model-timeout" env:"DECKHAND_MODEL_TIMEOUT" default:"10m" help:"Retry a model call when the provider sends no data for this long; 0 means no limit."`
	SearchURL       string        `name:"search-url" env:"DECKHAND_SEARCH_URL" placeholder:"URL" help:"Base URL of a Tavily-compatible search service. Default: Tavily."`
	Cassettes       string        `name:"cassettes" env:"DECKHAND_CASSETTES" placeholder:"DIR" help:"Folder with recorded model traffic: the model cassette/NAME replays DIR/NAME.jsonl."`
	Silent          bool          `kong:"-"` // never call a model
	RecordCassettes string        `name:"record-cassettes" env:"DECKHAND_RECORD_CASSETTES" placeholder:"DIR" help:"Record the model traffic of every conversation in this folder."`
}

// userLimit is the monthly budget of each user; 0 is no limit.
func (f *profileFlags) userLimit() (session.Money, error) {
	if f.UserBudget < 0 || math.IsNaN(f.UserBudget) {
		return 0, errors.New("--user-budget must be an amount in US dollars, such as 50, or 0 for no limit")
	}
	return session.FromDollars(f.UserBudget), nil
}

// profile returns the config of the agents' profiles.
func (f *profileFlags) profile(s *server, dataDir string, client *http.Client, models *catalogue.Catalogue, driver drivers.Driver, titles bool) profile.Config {
	c := profile.Config{Models: provider.Models{Settings: s.settings, Client: client, Silent: f.Silent, Limited: f.UserBudget > 0,
		Connector: connect.Connector{Catalogue: models, Cassettes: cassette.Dir(f.Cassettes), Silence: f.ModelTimeout, Tokens: &connect.Tokens{}}},
		Sessions: s.sessions, Keyring: s.keyring, Keeper: s.keeper, Forges: s.forges, Outward: s.out, Logger: s.logger,
		Record: cassette.Dir(f.RecordCassettes), Titles: titles, Microagents: f.Microagents, Users: filepath.Join(dataDir, "users"), SearchURL: f.SearchURL,
		Slow: driver.SlowStart, FrontEnd: s.front != nil, Disabled: s.data.gate.Disabled}
	if c.Microagents == "" {
		c.Microagents = filepath.Join(dataDir, "microagents")
	}
	if driver.Confined {
		c.Workdir = sandbox.Workspace
	}
	return c
}
