package config

import (
	"fmt"
	"os"
	"strings"

	"deckhand/api"
)

// SettingsFlags change the settings of a user for one conversation.
type SettingsFlags struct {
	Model         string   `name:"model" env:"DECKHAND_MODEL" placeholder:"NAME" help:"Model, as provider/model; scripted/demo needs no key. Default: from the stored settings of --user. The key is read from LLM_API_KEY, from these settings, or from the provider's variable, such as ANTHROPIC_API_KEY, which also selects a model if none is set."`
	BaseURL       string   `name:"base-url" env:"DECKHAND_BASE_URL" placeholder:"URL" help:"Base URL of an OpenAI-compatible server."`
	User          string   `name:"user" default:"admin" placeholder:"NAME" help:"User whose stored settings are used, if any (default: ${default})."`
	Agent         string   `name:"agent" placeholder:"NAME" help:"Agent profile: CodeActAgent, ReadOnlyAgent or BrowsingAgent."`
	MaxIterations *int     `name:"max-iterations" placeholder:"N" help:"Maximum number of model calls per turn."`
	Budget        *float64 `name:"budget" placeholder:"USD" help:"Spending limit in US dollars."`
	Confirm       bool     `name:"confirm" xor:"approval" help:"Ask before risky tool calls; without --analyzer, before all tool calls."`
	Yes           bool     `name:"yes" xor:"approval" short:"y" help:"Approve all tool calls without asking."`
	// Last is true if Model is the one that was chosen last in the folder.
	Last          bool   `kong:"-"`
	key, variable string // of the model, from a provider's variable
	selected      bool   // the variable also selected the model
	Analyzer      string `name:"analyzer" enum:",llm,rules" default:"" placeholder:"NAME" help:"Risk analyzer for tool calls: llm or rules."`
}

// Changes returns the settings that the flags set.
func (f *SettingsFlags) Changes() api.SettingsInput {
	var in api.SettingsInput
	for text, to := range map[*string]*api.Opt[string]{&f.Model: &in.LLMModel, &f.BaseURL: &in.LLMBaseURL, &f.Agent: &in.Agent, &f.Analyzer: &in.SecurityAnalyzer} {
		if *text != "" {
			*to = api.Some(*text)
		}
	}
	if k := f.ModelKey(); k != "" {
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

// OfServer returns a flag that is set and applies to a whole server, "" if there is none. The server uses the base URL, and asks
// before all calls if asks is true.
func (f *SettingsFlags) OfServer(baseURL string, asks bool) string {
	switch {
	case f.BaseURL != "" && f.BaseURL != baseURL:
		return "--base-url"
	case f.Agent != "":
		return "--agent"
	case f.Analyzer != "":
		return "--analyzer"
	case f.MaxIterations != nil:
		return "--max-iterations"
	case f.Confirm && !asks:
		return "--confirm"
	}
	return ""
}

// Conflict returns the first flag that only a server's own settings can follow and that differs from those, "" if none does.
func (f *SettingsFlags) Conflict(now api.Settings) string {
	differs := func(flag string, has *string) bool { return flag != "" && (has == nil || *has != flag) }
	switch {
	case differs(f.BaseURL, now.LLMBaseURL):
		return "--base-url"
	case differs(f.Agent, now.Agent):
		return "--agent"
	case f.MaxIterations != nil && (now.MaxIterations == nil || *now.MaxIterations != *f.MaxIterations):
		return "--max-iterations"
	}
	return ""
}

// Approval is when the flags make the agent ask: always, risky or never; "" if they do not say.
func (f *SettingsFlags) Approval() string {
	switch {
	case f.Yes:
		return "never"
	case f.Confirm && f.Analyzer == "":
		return "always"
	case f.Confirm || f.Analyzer != "":
		return "risky"
	}
	return ""
}

// Overrides returns what a conversation needs to follow the flags for the model and the budget. now is what was chosen for it;
// joined means that the settings of the server are not those of the flags.
func (f *SettingsFlags) Overrides(now api.Overrides, joined bool) (in api.SetOverrides) {
	if f.Model != "" && now.Model() != f.Model && (joined || now.Model() != "") {
		in.LLMModel = api.Some(f.Model)
	}
	if limit := now.MaxBudgetPerTask; f.Budget != nil && (limit == nil && joined || limit != nil && *limit != *f.Budget) {
		in.MaxBudgetPerTask = api.Some(*f.Budget)
	}
	return in
}

// ModelKey returns the API key of the model, from the environment only: all users can see command-line arguments.
func ModelKey() string {
	if k := os.Getenv("DECKHAND_LLM_API_KEY"); k != "" {
		return k
	}
	return os.Getenv("LLM_API_KEY")
}

// SettingFlag returns the flag of a setting.
func SettingFlag(loc []any) string {
	name := fmt.Sprint(loc[len(loc)-1])
	if flag, ok := map[string]string{"llm_model": "--model", "llm_base_url": "--base-url", "llm_api_key": "LLM_API_KEY", "max_budget_per_task": "--budget",
		"security_analyzer": "--analyzer", "confirmation_mode": "--confirm"}[name]; ok {
		return flag
	}
	return "--" + strings.ReplaceAll(name, "_", "-")
}
