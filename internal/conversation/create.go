package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/idempotency"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// The triggers of conversations, as lists of conversations name them.
const (
	TriggerPage       = "gui"
	TriggerAPI        = "openhands_api"
	TriggerTask       = "suggested_task"
	TriggerMicroagent = "microagent_management"
	TriggerResolver   = "resolver"
	TriggerTerminal   = "cli"
	TriggerDelegation = "delegate"
)

// Create is the command to create a conversation.
type Create struct {
	User string
	// Trigger says who begins it. A suggested task and a microagent in the request replace it.
	Trigger string
	// Outside says that outsiders asked for it, or wrote what it is about.
	Outside session.Outside
	// RetryKey is the same for a command that is sent again, and names nothing else; "" if it cannot be sent again. It has
	// at least 32 characters that are allowed in an id.
	RetryKey string
	Request  api.CreateConversation
	// Local is set for a conversation in the terminal; nil for all others.
	Local *Local
}

// Local describes the repository of a conversation in the terminal, if it has one. No provider is asked about it.
type Local struct {
	Repository, Provider, Branch string
	// Address is where to clone the repository from; "" is its provider.
	Address string
	// Trusted is true when the user said that the repository is.
	Trusted bool
}

// Created is a conversation that was created, now or by an earlier delivery of the same command.
type Created struct {
	ID     session.ID
	Status session.Status
	// New is false for a conversation that an earlier delivery created.
	New bool
}

// Create decides everything before it stores anything: a refused command leaves nothing behind.
func (s *Service) Create(ctx context.Context, c Create) (Created, error) {
	if faults := checkCreate(c.Request); len(faults) > 0 {
		return Created{}, &api.ValidationError{Detail: faults}
	}
	id, given := s.idOf(c)
	print := "" // a random id cannot be asked for again
	if given {
		print = fingerprint(c.User, c.Request)
		if again, err := s.existing(ctx, c.User, id, derivedID(c.RetryKey), print); again != nil || err != nil {
			return value(again), err
		}
	}
	p := planOf(c)
	if err := s.CheckSettings(ctx, c.User, p.message); err != nil {
		return Created{}, err
	}
	if err := checkImages(ctx, c.Request.ImageURLs.Value); err != nil {
		return Created{}, err
	}
	if err := s.findRepository(ctx, c, &p); err != nil {
		return Created{}, err
	}
	if p.prompt != nil {
		p.message.Text = p.prompt(p.provider)
	}
	created := session.Created{Owner: c.User, Trigger: p.trigger, Repository: p.repository, Branch: p.branch, Provider: p.provider,
		Instructions: c.Request.ConversationInstructions.Value, Replay: c.Request.ReplayJSON.Value, Fingerprint: print, Outside: c.Outside}
	if c.Local != nil {
		created.Address, created.Trusted = c.Local.Address, c.Local.Trusted
	}
	var err error
	if m, ok := c.Request.MCPConfig.Get(); ok {
		if created.MCP, err = s.sealMCP(ctx, c.User, id, m); err != nil {
			return Created{}, err
		}
	}
	var title []session.Payload
	if p.message != nil && created.Replay == "" { // else what is recorded comes first
		if title, err = s.firstWords(ctx, session.State{}, c.User, p.message.Text); err != nil {
			return Created{}, err
		}
	}
	if p.message != nil || created.Replay != "" {
		release, err := s.reserve(c.User, id)
		if err != nil {
			return Created{}, err
		}
		defer release()
	}
	st, err := s.Sessions.Create(ctx, id, created, p.message, title...)
	if errors.Is(err, session.ErrConflict) { // another delivery was faster
		again, err := s.existing(ctx, c.User, id, derivedID(c.RetryKey), print)
		return value(again), err
	}
	if err == nil {
		s.arrived(st)
	}
	return Created{ID: id, Status: st.Status(), New: err == nil}, err
}

// CheckSettings refuses to start a conversation that could not work with the user's settings. first is its first message,
// nil without one.
func (s *Service) CheckSettings(ctx context.Context, user string, first *session.UserSaid) error {
	var refused *Refusal
	err := s.Settings.Read(ctx, user, func(stored *settings.Settings) {
		refused = s.checkSettings(stored, first != nil && len(first.Images) > 0)
	})
	if err != nil {
		return SettingsMissing(err)
	}
	if refused != nil {
		return refused
	}
	return nil
}

// idOf is the id asked for, or one that a repeated command finds again, or a new one.
func (s *Service) idOf(c Create) (id session.ID, given bool) {
	if v, ok := c.Request.ConversationID.Get(); ok {
		return session.ID(v), true
	}
	if id := derivedID(c.RetryKey); id != "" {
		return id, true
	}
	return s.NewID(), false
}

// derivedID is the id of a command with a retry key, "" for another. Users cannot choose it.
func derivedID(retryKey string) session.ID {
	if len(retryKey) < 32 {
		return ""
	}
	return session.ID(retryKey[:32])
}

// existing answers for an id that may be taken: the same conversation for the same command, a conflict for another, nil
// when the id is free.
func (s *Service) existing(ctx context.Context, user string, id, derived session.ID, print string) (*Created, error) {
	row, err := s.Index.Row(ctx, id)
	free := errors.Is(err, session.ErrNotFound)
	if err != nil && !free {
		return nil, err
	}
	if (free || row.Owner != user) && s.Conflicts != nil {
		// Whether a name is free tells which conversations others have. A few may be tried; from then on the answer is the
		// same for all that are not the user's own.
		if a := s.Conflicts.MayConflict(user); !a.OK && id != derived {
			return nil, &Refusal{Kind: TooMany, Code: api.CodeRateLimited, Rate: &a,
				Text: "Too many requests with a conversation_id that is already in use. Omit it, or wait."}
		}
	}
	if free {
		return nil, nil
	}
	taken := refuse(Conflict, api.CodeConversationTaken, "This conversation_id is already in use. Choose another.")
	if row.Owner != user {
		if s.Conflicts != nil {
			s.Conflicts.Conflict(user)
		}
		return nil, taken
	}
	if row.Deleted {
		return nil, taken
	}
	st, err := s.Sessions.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	if st.Created.Fingerprint != print {
		return nil, taken
	}
	return &Created{ID: id, Status: st.Status()}, nil
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
	return idempotency.Digest(user, string(meaning))
}

// plan is what a command comes down to after precedence.
type plan struct {
	trigger, repository, provider, branch string
	message                               *session.UserSaid
	// task is the provider of a suggested task, "" without one. filled is true if the repository is the task's too.
	task   string
	filled bool
	// prompt composes the text of the message once the provider of the repository is known; nil for a text of the user.
	prompt func(provider string) string
}

// planOf is the precedence: a suggested task over a microagent over the message. Both fill in the repository and the
// provider; a repository in the request always wins.
func planOf(c Create) plan {
	b := c.Request
	p := plan{trigger: c.Trigger, repository: b.Repository.Value, provider: b.GitProvider.Value, branch: b.SelectedBranch.Value}
	if l := c.Local; l != nil {
		p.repository, p.provider, p.branch = l.Repository, l.Provider, l.Branch
	}
	said := session.UserSaid{Text: b.InitialUserMsg.Value, Images: b.ImageURLs.Value}
	speaks := said.Text != "" || len(said.Images) > 0
	if t, ok := b.SuggestedTask.Get(); ok {
		p.trigger, p.task, p.filled = TriggerTask, t.GitProvider, p.repository == "" || p.repository == t.Repo
		if p.filled {
			p.repository, p.provider = t.Repo, t.GitProvider
		}
		p.prompt = func(string) string { return gitprovider.TaskPrompt(t) }
	} else if m, ok := b.CreateMicroagent.Get(); ok {
		p.trigger = TriggerMicroagent
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
		said.Key, said.Automated = c.RetryKey, c.Trigger == TriggerResolver
		p.message = &said
	}
	return p
}

// findRepository finds out where the repository is and whether the user can read it.
func (s *Service) findRepository(ctx context.Context, c Create, p *plan) error {
	if p.repository == "" || c.Local != nil {
		return nil
	}
	stored, err := s.stored(ctx, c.User)
	if err != nil {
		return err
	}
	if p.task != "" && stored.ProviderTokens[p.task].Token.IsZero() {
		return refuse(Unmet, api.CodeGitAuthentication,
			"The suggested task is from "+p.task+", but no token is stored for it. Store a token for "+p.task+" in the settings.")
	}
	provider, err := s.VerifyRepository(ctx, stored, p.provider, p.repository, p.branch)
	if missing, ok := errors.AsType[*gitprovider.BranchError](err); ok {
		return refuse(Unmet, api.CodeGitBranch, missing.Error())
	}
	if err != nil {
		return refuse(Unmet, api.CodeGitAuthentication, err.Error())
	}
	if p.filled && provider != p.task { // the same name elsewhere is another repository
		return refuse(Unmet, api.CodeGitAuthentication,
			"Unable to access repo "+p.repository+" at "+p.task+" of the suggested task.")
	}
	p.provider = provider
	return nil
}

// SealedMCP is the name under which a conversation's own tool servers are sealed.
func SealedMCP(id session.ID) string { return "conversation." + string(id) + ".mcp_config" }

// sealMCP encrypts the conversation's own tool servers, since they may hold keys.
func (s *Service) sealMCP(ctx context.Context, user string, id session.ID, m api.MCPConfig) ([]byte, error) {
	s.redactMCP(m)
	plain, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return s.Seal.Seal(ctx, user, SealedMCP(id), plain)
}

// redactMCP keeps the conversation's own keys out of the server's log.
func (s *Service) redactMCP(m api.MCPConfig) {
	if s.Redact == nil {
		return
	}
	for _, server := range slices.Concat(m.SSEServers, m.SHTTPServers) {
		s.Redact(value(server.APIKey))
	}
	for _, server := range m.StdioServers {
		for _, v := range server.Env {
			s.Redact(v)
		}
	}
}
