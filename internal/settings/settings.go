// Package settings knows the settings fields: their defaults, what may stand in
// them, how an update changes them, and how they are kept with every secret sealed.
package settings

import (
	"maps"
	"slices"

	"deckhand/api"
	"deckhand/internal/secret"
)

// What may stand in the fields that are chosen from a list. The empty string means none.
var (
	Agents            = []string{"CodeActAgent", "ReadOnlyAgent", "BrowsingAgent"}
	SecurityAnalyzers = []string{"llm", "rules"}
)

// Settings is what one user has stored. A nil pointer is null on the wire.
type Settings struct {
	Plain
	ModelRoles
	LLMAPIKey      secret.Secret
	SearchAPIKey   secret.Secret
	SandboxAPIKey  secret.Secret
	ProviderTokens map[string]ProviderToken
	CustomSecrets  map[string]CustomSecret
	MCP            *MCP
	// LLMKeyProvider is the provider that LLMAPIKey was stored for, "" if that is not known.
	LLMKeyProvider string
	// ModelProviders are the user's entries by the provider's name.
	ModelProviders map[string]ModelProvider
	// VerifiedEmail is the address that an administrator, or a link mailed to it, confirmed to be
	// the user's.
	VerifiedEmail string
	Notifications Notifications
	// TrustedRepositories are those that the user trusts, as RepositoryName spells them.
	TrustedRepositories []string
	// Commands are the texts of the user's own slash commands by name.
	Commands map[string]string
}

// ProviderToken opens a git provider. Without a token it only remembers the host that
// a token will be for.
type ProviderToken struct {
	Token  secret.Secret
	Host   string // "" for the provider's own
	UserID string
}

// CustomSecret becomes an environment variable of the sandbox.
type CustomSecret struct {
	Value       secret.Secret
	Description string
	// Repositories are those whose conversations get it, as RepositoryName spells
	// them; none are all.
	Repositories []string
}

// MCP lists tool servers.
type MCP struct {
	SSE   []Server
	Stdio []StdioServer
	SHTTP []Server
}

// Server is a tool server at an address.
type Server struct {
	URL     string
	APIKey  secret.Secret
	Timeout *int // seconds, SHTTP only; nil for the default
}

// StdioServer is a tool server that the sandbox starts.
type StdioServer struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]secret.Secret
}

// Clone returns a copy that shares nothing that can be changed.
func (s Settings) Clone() Settings {
	s.Plain = s.Plain.clone()
	s.ProviderTokens, s.CustomSecrets = maps.Clone(s.ProviderTokens), maps.Clone(s.CustomSecrets)
	s.ModelProviders, s.Favourites = maps.Clone(s.ModelProviders), slices.Clone(s.Favourites)
	s.TrustedRepositories, s.Commands = slices.Clone(s.TrustedRepositories), maps.Clone(s.Commands)
	s.Notifications = s.Notifications.clone()
	if s.MCP != nil {
		m := s.MCP.Clone()
		s.MCP = &m
	}
	return s
}

// Clone returns a copy that shares nothing that can be changed.
func (m MCP) Clone() MCP {
	m.SSE, m.Stdio, m.SHTTP = slices.Clone(m.SSE), slices.Clone(m.Stdio), slices.Clone(m.SHTTP)
	for i := range m.SHTTP {
		m.SHTTP[i].Timeout = copyOf(m.SHTTP[i].Timeout)
	}
	for i := range m.Stdio {
		m.Stdio[i].Args = slices.Clone(m.Stdio[i].Args)
		m.Stdio[i].Env = maps.Clone(m.Stdio[i].Env)
	}
	return m
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// SecretValues lists every secret in s, for a Redactor.
func (s Settings) SecretValues() []string {
	var out []string
	add := func(v secret.Secret) {
		if !v.IsZero() {
			out = append(append(out, v.Reveal()), parts(v.Reveal())...)
		}
	}
	add(s.LLMAPIKey)
	add(s.SearchAPIKey)
	add(s.SandboxAPIKey)
	for _, p := range s.ModelProviders {
		add(p.Key)
	}
	for _, t := range s.ProviderTokens {
		add(t.Token)
	}
	for _, c := range s.CustomSecrets {
		add(c.Value)
	}
	if s.MCP != nil {
		out = append(out, s.MCP.SecretValues()...)
	}
	return out
}

// SecretValues lists every secret in m, for a Redactor.
func (m MCP) SecretValues() []string {
	var out []string
	for _, srv := range slices.Concat(m.SSE, m.SHTTP) {
		if !srv.APIKey.IsZero() {
			out = append(out, srv.APIKey.Reveal())
		}
	}
	for _, srv := range m.Stdio {
		for _, v := range srv.Env {
			if !v.IsZero() {
				out = append(out, v.Reveal())
			}
		}
	}
	return out
}

// View is what GET shows: everything but the secrets.
func View(s Settings) api.Settings {
	s = s.Clone()
	out := api.Settings{
		SecretsStore: api.SecretNames{ProviderTokens: map[string]string{}, CustomSecrets: map[string]string{}},
		LLMAPIKeySet: !s.LLMAPIKey.IsZero() || !s.ModelProviders[s.keyProvider()].Key.IsZero(), SearchAPIKeySet: !s.SearchAPIKey.IsZero(), SandboxAPIKeySet: !s.SandboxAPIKey.IsZero(),
		ProviderTokensSet: map[string]*string{},
	}
	s.show(&out)
	s.showApprovals(&out)
	for name, t := range s.ProviderTokens {
		if t.Token.IsZero() {
			continue
		}
		out.SecretsStore.ProviderTokens[name] = api.Masked
		out.ProviderTokensSet[name] = nil
		if t.Host != "" {
			out.ProviderTokensSet[name] = &t.Host
		}
	}
	for name := range s.CustomSecrets {
		out.SecretsStore.CustomSecrets[name] = api.Masked
	}
	if s.MCP != nil {
		m := s.MCP.View()
		out.MCPConfig = &m
	}
	return out
}

// View shows m with every secret masked.
func (m MCP) View() api.MCPConfig {
	m = m.Clone()
	out := api.MCPConfig{SSEServers: viewServers(m.SSE), StdioServers: []api.StdioServer{}, SHTTPServers: viewServers(m.SHTTP)}
	for _, srv := range m.Stdio {
		v := api.StdioServer{Name: srv.Name, Command: srv.Command, Args: append([]string{}, srv.Args...), Env: map[string]string{}}
		for name, value := range srv.Env {
			v.Env[name] = mask(value)
		}
		out.StdioServers = append(out.StdioServers, v)
	}
	return out
}

func viewServers(list []Server) []api.MCPServer {
	out := []api.MCPServer{}
	for _, srv := range list {
		v := api.MCPServer{URL: srv.URL, Timeout: srv.Timeout}
		if !srv.APIKey.IsZero() {
			masked := mask(srv.APIKey)
			v.APIKey = &masked
		}
		out = append(out, v)
	}
	return out
}

// mask shows an empty value as empty: there is nothing to hide and nothing to keep.
func mask(s secret.Secret) string {
	if s.IsZero() {
		return ""
	}
	return api.Masked
}
