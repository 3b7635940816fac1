package profile

import (
	"context"
	"encoding/json"
	"sync"

	"deckhand/api"
	"deckhand/internal/agent"
	"deckhand/internal/conversation"
	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/tool"
	"deckhand/internal/tool/mcp"
)

// maxOffered is how many tools a model is offered: OpenAI and Gemini refuse
// every request that has more.
const maxOffered = 128

// foreign gives the tools of tool servers. A read-only agent gets none, because their effects are unknown.
func (b *Builder) foreign(ctx context.Context, st session.State, s settings.Settings, p agent.Profile) (func(context.Context) []tool.Tool, error) {
	if p.Agent != codeAct {
		return nil, nil
	}
	all, err := b.toolServers(ctx, st, s)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	set := b.servers.Set(string(st.ID), mcp.Config{Servers: all, Reserved: tool.Names(), Room: max(maxOffered-len(p.Tools), 1), Client: b.Client, Logger: b.Logger,
		Box:      b.box(st),
		Withhold: b.withhold(st),
		Report:   func(status mcp.Status) { b.report(st.ID, p.Masker, status) }})
	return set.Tools, nil
}

// toolServers are those that the conversation was created with, else those of the settings.
func (b *Builder) toolServers(ctx context.Context, st session.State, s settings.Settings) ([]mcp.Server, error) {
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
func (b *Builder) ownServers(ctx context.Context, st session.State) (settings.MCP, error) {
	id := st.ID
	for up := st; up.Created.Parent != ""; {
		var err error
		if up, err = b.Sessions.Load(ctx, up.Created.Parent); err != nil {
			return settings.MCP{}, err
		}
		id = up.ID
	}
	plain, err := b.Keyring.Open(ctx, st.Owner, conversation.SealedMCP(id), st.Created.MCP)
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
	b.Settings.Hold(st.Owner, string(id), own.SecretValues()...)
	return own, nil
}

// latest is the session in whose workspace a session works, as it is now.
func (b *Builder) latest(ctx context.Context, id session.ID) (session.State, error) {
	st, err := b.Sessions.Load(ctx, id)
	if err != nil {
		return st, err
	}
	return b.top(ctx, st)
}

// withhold keeps the values of tool servers from a repository that is not trusted, as
// customSecrets does with custom secrets: its code could take the place of a server.
func (b *Builder) withhold(st session.State) func(context.Context) (string, error) {
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
func (b *Builder) box(st session.State) tool.Box {
	return func(ctx context.Context) (*sandbox.Sandbox, error) {
		top, err := b.latest(ctx, st.ID)
		if err != nil {
			return nil, err
		}
		box, release, err := b.Keeper.Use(ctx, top.ID)
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
func (b *Builder) report(id session.ID, masker *secret.Masker, s mcp.Status) {
	n := session.Noted{ID: "STATUS$MCP_SERVER_FAILED", Error: true, Message: masker.String("The MCP server " + s.Name + " cannot be used: " + s.Error)}
	waits := s.State == mcp.Starting && !s.Late
	switch {
	case waits:
		n = session.Noted{ID: "STATUS$MCP_SERVER_STARTING", Message: "Waiting for the MCP server " + s.Name + " to start."}
	case s.State == mcp.Starting:
		n.Message = "The MCP server " + s.Name + " has not started yet. The agent continues without its tools."
	case s.State == mcp.Ready:
		n = session.Noted{ID: "STATUS$MCP_SERVER_READY", Message: "The MCP server " + s.Name + " is available."}
	}
	if !waits && !b.announced.changes(id, s.Name, s.State != mcp.Ready) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), reportTime)
	defer cancel()
	_, err := b.Sessions.Update(ctx, id, func(s session.State) ([]session.Payload, error) {
		if !s.Exists() || s.Deleted {
			return nil, nil
		}
		return []session.Payload{n}, nil
	})
	if err != nil {
		b.Logger.Warn("cannot record the state of an MCP server", "session", id, "error", err)
	}
}

// ServerStates implements conversations.Config.MCPStates.
func (b *Builder) ServerStates(ctx context.Context, owner string, id session.ID) ([]api.MCPServerStatus, error) {
	masker, err := b.Settings.Masker(ctx, owner)
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

// TestServers implements account.Config.TestMCP.
func (b *Builder) TestServers(ctx context.Context, user string, m settings.MCP) ([]api.MCPServerStatus, error) {
	masker, err := b.Settings.Masker(ctx, user)
	if err != nil {
		return nil, err
	}
	masker = masker.With(m.SecretValues()...)
	out := []api.MCPServerStatus{}
	for _, s := range mcp.Probe(ctx, mcp.Config{Servers: mcp.Servers(m), Client: b.Client, Logger: b.Logger}) {
		s.Error = masker.String(s.Error)
		out = append(out, s.Wire())
	}
	return out, nil
}
