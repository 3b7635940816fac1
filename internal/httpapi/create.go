package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// plan is what a creation request comes down to after precedence.
type plan struct {
	trigger, repository, provider, branch string
	message                               *session.UserSaid
	// task is the provider that a suggested task is from, "" without one. filled says
	// that the repository is the task's too.
	task   string
	filled bool
	// prompt composes the message's text, if it is not the client's, when it is
	// known where the repository is.
	prompt func(provider string) string
}

// createConversation decides everything before it stores anything: a refused
// request leaves nothing behind.
func createConversation(d *Door, ctx context.Context, c *call, _ none, b api.CreateConversation) (api.ConversationResponse, error) {
	if faults := checkCreate(b); len(faults) > 0 {
		return api.ConversationResponse{}, &api.ValidationError{Detail: faults}
	}
	id, given := d.conversationID(c, b)
	print := "" // nobody can ask for a random id again
	if given {
		print = fingerprint(c.who.User, b)
		if again, err := d.existing(ctx, c, id, print); again != nil || err != nil {
			return deref(again), err
		}
	}
	if err := d.checkSettings(ctx, c); err != nil {
		return api.ConversationResponse{}, err
	}
	p := planOf(c, b)
	if p.repository != "" {
		s, err := d.Settings.Get(ctx, c.who.User)
		if err != nil {
			return api.ConversationResponse{}, err
		}
		if p.task != "" && s.ProviderTokens[p.task].Token.IsZero() {
			return api.ConversationResponse{}, fail(http.StatusBadRequest, api.CodeGitAuthentication,
				"The suggested task is from "+p.task+", which is not connected. Store a token for "+p.task+" in the settings.")
		}
		provider, err := d.VerifyRepository(ctx, s, p.provider, p.repository, p.branch)
		if missing, ok := errors.AsType[*gitprovider.BranchError](err); ok {
			return api.ConversationResponse{}, fail(http.StatusBadRequest, api.CodeGitBranch, missing.Error())
		}
		if err != nil {
			return api.ConversationResponse{}, fail(http.StatusBadRequest, api.CodeGitAuthentication, err.Error())
		}
		if p.filled && provider != p.task { // the same name elsewhere is another repository
			return api.ConversationResponse{}, fail(http.StatusBadRequest, api.CodeGitAuthentication,
				"Unable to access repo "+p.repository+" at "+p.task+", which the suggested task is from.")
		}
		p.provider = provider
	}
	if p.prompt != nil {
		p.message.Text = p.prompt(p.provider)
	}
	var err error
	created := session.Created{Owner: c.who.User, Trigger: p.trigger, Repository: p.repository, Branch: p.branch, Provider: p.provider,
		Instructions: b.ConversationInstructions.Value, Replay: b.ReplayJSON.Value, Fingerprint: print, Outside: c.outside}
	if m, ok := b.MCPConfig.Get(); ok {
		if created.MCP, err = d.sealMCP(ctx, c.who.User, id, m); err != nil {
			return api.ConversationResponse{}, err
		}
	}
	c.session = string(id)
	st, err := d.Sessions.Create(ctx, id, created, p.message)
	if errors.Is(err, session.ErrConflict) { // somebody was faster
		again, err := d.existing(ctx, c, id, print)
		return deref(again), err
	}
	return response(string(id), nil, st.Status()), err
}

// conversationID is the one asked for, or one that a repeated request finds
// again, or a new one.
func (d *Door) conversationID(c *call, b api.CreateConversation) (id session.ID, given bool) {
	if v, ok := b.ConversationID.Get(); ok {
		return session.ID(v), true
	}
	if id := c.derivedID(); id != "" {
		return id, true
	}
	return d.NewID(), false
}

// derivedID is the id that a request with an Idempotency-Key gets; "" for another. Nobody can choose it.
func (c *call) derivedID() session.ID {
	if len(c.retryKey) < 32 {
		return ""
	}
	return session.ID(c.retryKey[:32])
}

// existing answers for an id that is taken: the same conversation for the same
// request, a conflict otherwise, nil when it is free.
func (d *Door) existing(ctx context.Context, c *call, id session.ID, print string) (*api.ConversationResponse, error) {
	row, err := d.Index.Row(ctx, id)
	free := errors.Is(err, session.ErrNotFound)
	if err != nil && !free {
		return nil, err
	}
	if free || row.Owner != c.who.User {
		// Whether a name is free tells which conversations others have. A few may be tried; from then on the answer is the
		// same for all that are not the user's own.
		if a := d.Gate.MayConflict(c.who.User); !a.OK && id != c.derivedID() {
			return nil, tooMany(a, "Too many requests with a conversation_id that is taken. Leave it out, or wait.")
		}
	}
	if free {
		return nil, nil
	}
	taken := fail(http.StatusConflict, api.CodeConversationTaken, "This conversation_id is taken by another conversation; choose another.")
	if row.Owner != c.who.User {
		d.Gate.Conflict(c.who.User)
		return nil, taken
	}
	if row.Deleted {
		return nil, taken
	}
	st, err := d.Sessions.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	if st.Created.Fingerprint != print {
		return nil, taken
	}
	return ptr(response(string(id), nil, st.Status())), nil
}

// fingerprint recognises the same request: what it means, not how it was spelled.
func fingerprint(user string, b api.CreateConversation) string {
	b.ConversationID = api.Opt[string]{}
	text, _ := json.Marshal(b)
	var fields map[string]any
	_ = json.Unmarshal(text, &fields)
	for name, v := range fields {
		if v == nil { // here null and absent are the same
			delete(fields, name)
		}
	}
	meaning, _ := json.Marshal(fields)
	return digest(user, string(meaning))
}

// settingsMissing is the creation family's answer to a user without settings.
func settingsMissing(err error) error {
	if errors.Is(err, settings.ErrNotFound) {
		return fail(http.StatusBadRequest, api.CodeSettingsNotFound, "Settings not found")
	}
	return err
}

// checkSettings says what keeps the asker's settings from starting a conversation.
func (d *Door) checkSettings(ctx context.Context, c *call) error {
	var refused *fault
	if err := d.Settings.Read(ctx, c.who.User, func(s *settings.Settings) { refused = d.refuseSettings(s) }); err != nil {
		return settingsMissing(err)
	}
	if refused != nil {
		return refused
	}
	return nil
}

// refuseSettings says what in the settings keeps a conversation from starting.
func (d *Door) refuseSettings(s *settings.Settings) *fault {
	model := d.Models.Default
	if s.LLMModel != nil && *s.LLMModel != "" {
		model = *s.LLMModel
	}
	if s.LLMAPIKey.IsZero() && d.Models.NeedsKey(model, deref(s.LLMBaseURL)) {
		return fail(http.StatusBadRequest, api.CodeLLMAuthentication, "Error authenticating with the LLM provider. Please check your API key")
	}
	if !d.Images && (deref(s.SandboxBaseContainerImage) != "" || deref(s.SandboxRuntimeContainerImage) != "") {
		return fail(http.StatusBadRequest, api.CodeSandboxImage,
			"The settings name a sandbox image, but this server's sandbox cannot run images. Clear sandbox_base_container_image and sandbox_runtime_container_image, or ask the operator for a driver that can.")
	}
	return d.refuseBudget(s)
}

// refuseBudget says why a money limit could not be kept; nil if it can, or there is none.
func (d *Door) refuseBudget(s *settings.Settings) *fault {
	model := d.Models.Default
	if deref(s.LLMModel) != "" {
		model = *s.LLMModel
	}
	if s.MaxBudgetPerTask != nil && !d.Models.HasPrice(model) {
		return fail(http.StatusBadRequest, api.CodePriceUnknown,
			"max_budget_per_task is set, but the price of the model is not known, so the limit could not be kept. Clear the budget, or give the model a price under prices in the server's config file (0 is a price).")
	}
	if d.Usage.Limit > 0 && !d.Models.HasPrice(model) {
		return fail(http.StatusBadRequest, api.CodePriceUnknown,
			"This server limits what a user may spend, but the price of the model is not known, so the limit could not be kept. Choose another model, or ask the operator to give it a price under prices in the server's config file (0 is a price).")
	}
	return nil
}

// planOf is the precedence: a suggested task over a microagent over the message. Both
// fill in the repository and the provider; a repository in the request always wins.
func planOf(c *call, b api.CreateConversation) plan {
	p := plan{trigger: "gui", repository: b.Repository.Value, provider: b.GitProvider.Value, branch: b.SelectedBranch.Value}
	if c.bearer {
		p.trigger = "openhands_api"
	}
	if c.trigger != "" {
		p.trigger = c.trigger
	}
	said := session.UserSaid{Text: b.InitialUserMsg.Value, Images: b.ImageURLs.Value}
	speaks := said.Text != "" || len(said.Images) > 0
	if t, ok := b.SuggestedTask.Get(); ok {
		p.trigger, p.task, p.filled = "suggested_task", t.GitProvider, p.repository == "" || p.repository == t.Repo
		if p.filled {
			p.repository, p.provider = t.Repo, t.GitProvider
		}
		p.prompt = func(string) string { return gitprovider.TaskPrompt(t) }
	} else if m, ok := b.CreateMicroagent.Get(); ok {
		p.trigger = "microagent_management"
		if p.repository == "" {
			p.repository = m.Repo
			if v, ok := m.GitProvider.Get(); ok && p.provider == "" {
				p.provider = v
			}
		}
		if said.Text == "" {
			p.prompt = func(provider string) string {
				m.GitProvider = api.Some(provider)
				return gitprovider.MicroagentPrompt(m)
			}
		}
	}
	if speaks || p.prompt != nil {
		said.Key = c.retryKey
		p.message = &said
	}
	return p
}

func (d *Door) sealMCP(ctx context.Context, user string, id session.ID, m api.MCPConfig) ([]byte, error) {
	d.redactMCP(m)
	plain, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return d.Seal.Seal(ctx, user, sealedMCP(id), plain)
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// redactMCP keeps the conversation's own keys out of the logs.
func (d *Door) redactMCP(m api.MCPConfig) {
	if d.Redact == nil {
		return
	}
	for _, s := range slices.Concat(m.SSEServers, m.SHTTPServers) {
		d.Redact(deref(s.APIKey))
	}
	for _, s := range m.StdioServers {
		for _, v := range s.Env {
			d.Redact(v)
		}
	}
}
