package portable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"deckhand/api"
	"deckhand/internal/clip"
	"deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// exportedSettings are the overrides of a conversation and the settings of its user that applied to it, without secrets. A file can
// come from anyone, so an import applies only those that its user could choose for the new conversation and that do not loosen a
// limit, and reports the others.
type exportedSettings struct {
	Model         string   `json:"llm_model,omitempty"`
	Effort        string   `json:"reasoning_effort,omitempty"`
	Budget        *float64 `json:"max_budget_per_task,omitempty"`
	Approval      string   `json:"approval,omitempty"`
	Plan          bool     `json:"plan_mode,omitempty"`
	Agent         string   `json:"agent,omitempty"`
	MaxIterations int      `json:"max_iterations,omitempty"`
	Servers       []server `json:"mcp_servers,omitempty"`
}

// server is an MCP server. The path of a URL and the arguments of a command are left out: they can contain keys.
type server struct {
	Kind    string `json:"kind"` // sse, shttp or stdio
	Name    string `json:"name,omitempty"`
	Address string `json:"address"` // scheme and host of the URL, or the command
	// Secrets means that the server had a key or environment variables.
	Secrets bool `json:"secrets,omitempty"`
}

// Maximum lengths of texts in the settings of a file.
const (
	maxText  = 100
	maxModel = 256
)

// settingsOf returns the settings of a conversation.
func (s *Service) settingsOf(ctx context.Context, row session.Row) (exportedSettings, error) {
	st, err := s.Conversations.Sessions.Load(ctx, row.ID)
	if err != nil {
		return exportedSettings{}, err
	}
	stored, err := s.Conversations.Settings.Get(ctx, row.Owner)
	if errors.Is(err, settings.ErrNotFound) {
		return exportedSettings{}, nil
	}
	if err != nil {
		return exportedSettings{}, err
	}
	chosen, err := conversation.ChosenFor(ctx, s.Conversations.Sessions, st)
	if err != nil {
		return exportedSettings{}, err
	}
	o := chosen.InForce
	c := exportedSettings{Model: o.Model, Effort: o.Effort, Budget: stored.MaxBudgetPerTask, Approval: o.Approval, Plan: o.Plan,
		Agent: cmp.Or(st.Created.Agent, agentOf(stored))}
	if o.Limited {
		c.Budget = new(o.Budget.Dollars())
	}
	if stored.MaxIterations != nil {
		c.MaxIterations = *stored.MaxIterations
	}
	if len(st.Created.MCP) > 0 {
		if stored.MCP, err = s.ownServers(ctx, st); err != nil {
			return exportedSettings{}, err
		}
	}
	c.Servers = serversOf(stored.MCP)
	return c, nil
}

// agentOf returns the agent in the settings.
func agentOf(s settings.Settings) string {
	if s.Agent == nil || *s.Agent == "" {
		return settings.Agents[0]
	}
	return *s.Agent
}

// ownServers returns the MCP servers that a conversation was created with.
func (s *Service) ownServers(ctx context.Context, st session.State) (*settings.MCP, error) {
	top := st
	for top.Created.Parent != "" {
		var err error
		if top, err = s.Conversations.Sessions.Load(ctx, top.Created.Parent); err != nil {
			return nil, err
		}
	}
	plain, err := s.Conversations.Seal.Open(ctx, st.Owner, conversation.SealedMCP(top.ID), st.Created.MCP)
	if err != nil {
		return nil, err
	}
	var in api.MCPConfig
	if err := json.Unmarshal(plain, &in); err != nil {
		return nil, err
	}
	own, _ := settings.CheckMCP(in, nil)
	return &own, nil
}

// serversOf describes MCP servers.
func serversOf(m *settings.MCP) (out []server) {
	if m == nil {
		return nil
	}
	for kind, list := range map[string][]settings.Server{"sse": m.SSE, "shttp": m.SHTTP} {
		for _, s := range list {
			if u, err := url.Parse(s.URL); err == nil {
				secrets := !s.APIKey.IsZero() || u.User != nil || u.RawQuery != ""
				out = append(out, server{Kind: kind, Address: clip.Bytes(u.Scheme+"://"+u.Host, maxText), Secrets: secrets})
			}
		}
	}
	for _, s := range m.Stdio {
		out = append(out, server{Kind: "stdio", Name: clip.Bytes(s.Name, maxText), Address: clip.Bytes(s.Command, maxText), Secrets: len(s.Env) > 0})
	}
	slices.SortFunc(out, func(a, b server) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address))
	})
	return out[:min(len(out), maxServers)]
}

// applier applies the settings of a file to an import.
type applier struct {
	*Service
	user string
	id   session.ID
	out  *api.ImportedConversation
}

func (a applier) skip(setting, format string, args ...any) {
	a.out.SkippedSettings = append(a.out.SkippedSettings, api.SkippedSetting{Setting: setting, Reason: fmt.Sprintf(format, args...)})
}

// try sets an override, and reports a refusal.
func (a applier) try(ctx context.Context, setting string, b api.SetOverrides) error {
	_, err := a.Conversations.Override(ctx, a.user, a.id, b)
	if refused := conversation.RefusalOf(err); refused != nil {
		a.skip(setting, "%s", refused.Text)
		return nil
	}
	if err == nil {
		a.out.AppliedSettings = append(a.out.AppliedSettings, setting)
	}
	return err
}

// apply applies the settings of a file.
func (a applier) apply(ctx context.Context, m manifest) error {
	own, err := a.Conversations.Settings.Get(ctx, a.user)
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return err
	}
	c := m.Settings
	err = nil
	switch {
	case len(c.Model) > maxModel:
		a.skip("llm_model", "The name of the model is too long.")
	case c.Model != "" && c.Model != a.Conversations.Models.Name(&own):
		err = a.try(ctx, "llm_model", api.OverrideModel(c.Model))
	}
	if err == nil && c.Effort != "" {
		err = a.try(ctx, "reasoning_effort", api.SetOverrides{ReasoningEffort: api.Some(c.Effort)})
	}
	if err == nil && c.Plan {
		err = a.try(ctx, "plan_mode", api.SetOverrides{PlanMode: api.Some(true)})
	}
	if err == nil && c.Budget != nil {
		err = a.budget(ctx, *c.Budget, own)
	}
	if err == nil && c.Approval != "" {
		err = a.approval(ctx, c.Approval, own)
	}
	if err != nil {
		return err
	}
	if c.Agent != "" && c.Agent != agentOf(own) {
		a.skip("agent", "The conversation used the agent %q, but your settings have %q. To use the former, change your settings.", clip.Bytes(c.Agent, maxText), agentOf(own))
	}
	if c.MaxIterations > 0 && (own.MaxIterations == nil || *own.MaxIterations != c.MaxIterations) {
		a.skip("max_iterations", "The limit was %d. To use it, change your settings.", c.MaxIterations)
	}
	if m.Repository != "" {
		a.skip("repository", "The files of %q were imported without access to its git provider.", clip.Bytes(m.Repository, maxText))
	}
	have := serversOf(own.MCP)
	for _, s := range c.Servers {
		if slices.ContainsFunc(have, func(h server) bool { return h.Kind == s.Kind && h.Name == s.Name && h.Address == s.Address }) {
			continue
		}
		again := ""
		if s.Secrets {
			again = " and enter its secrets again"
		}
		a.skip("mcp_config", "To use the MCP server %q (%s), add it to your settings%s.", clip.Bytes(cmp.Or(s.Name, s.Address), maxText), clip.Bytes(s.Kind, maxText), again)
	}
	return nil
}

// budget applies a budget that is lower than the limit of the user.
func (a applier) budget(ctx context.Context, limit float64, own settings.Settings) error {
	const most = 1e9
	switch mine := own.MaxBudgetPerTask; {
	case limit < 0 || limit > most:
		a.skip("max_budget_per_task", "The file has an invalid budget.")
	case mine != nil && *mine < limit:
		a.skip("max_budget_per_task", "The budget was %.2f USD. Your limit of %.2f USD applies.", limit, *mine)
	case mine == nil || *mine > limit:
		return a.try(ctx, "max_budget_per_task", api.SetOverrides{MaxBudgetPerTask: api.Some(limit)})
	}
	return nil
}

// approvals are the approval modes, strictest first.
var approvals = []string{settings.AskAlways, settings.AskRisky, settings.AskNever}

// approval applies an approval mode that is stricter than that of the user.
func (a applier) approval(ctx context.Context, mode string, own settings.Settings) error {
	switch asks, mine := slices.Index(approvals, mode), slices.Index(approvals, own.Approvals()); {
	case asks < 0:
		a.skip("approval", "The file has an unknown approval mode.")
	case asks > mine:
		a.skip("approval", "The mode was %q. Your stricter mode %q applies.", mode, own.Approvals())
	case asks < mine:
		return a.try(ctx, "approval", api.SetOverrides{Approval: api.Some(mode)})
	}
	return nil
}
