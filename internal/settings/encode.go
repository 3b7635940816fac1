package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"deckhand/internal/secret"
)

// stored is how settings are kept: JSON with every secret sealed on its own.
// mcp_config is sealed whole, because addresses and arguments can hold keys too.
type stored struct {
	Format int `json:"format"`
	Plain
	ModelRoles
	LLMAPIKey           []byte                 `json:"llm_api_key,omitempty"`
	LLMKeyProvider      string                 `json:"llm_key_provider,omitempty"`
	ModelProviders      map[string]storedModel `json:"model_providers,omitempty"`
	SearchAPIKey        []byte                 `json:"search_api_key,omitempty"`
	SandboxAPIKey       []byte                 `json:"sandbox_api_key,omitempty"`
	ProviderTokens      map[string]storedToken `json:"provider_tokens,omitempty"`
	CustomSecrets       map[string]storedValue `json:"custom_secrets,omitempty"`
	MCP                 []byte                 `json:"mcp_config,omitempty"`
	VerifiedEmail       string                 `json:"verified_email,omitempty"`
	TrustedRepositories []string               `json:"trusted_repositories,omitempty"`
	Notifications       Notifications          `json:"notifications,omitzero"`
	Commands            map[string]string      `json:"commands,omitempty"`
}

type storedModel struct {
	Key     []byte `json:"key,omitempty"`
	BaseURL string `json:"base_url,omitempty"`
}

type storedToken struct {
	Token  []byte `json:"token,omitempty"`
	Host   string `json:"host,omitempty"`
	UserID string `json:"user_id,omitempty"`
}

type storedValue struct {
	Secret       []byte   `json:"secret"`
	Description  string   `json:"description,omitempty"`
	Repositories []string `json:"repositories,omitempty"`
}

// storedMCP is what the sealed bytes of mcp_config hold.
type storedMCP struct {
	SSE   []storedServer `json:"sse,omitempty"`
	Stdio []storedStdio  `json:"stdio,omitempty"`
	SHTTP []storedServer `json:"shttp,omitempty"`
}

type storedServer struct {
	URL     string `json:"url"`
	APIKey  string `json:"api_key,omitempty"`
	Timeout *int   `json:"timeout,omitempty"`
}

type storedStdio struct {
	Name    string            `json:"name"`
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

const storedFormat = 1

// The names under which secrets are sealed. A key's name includes the address it was
// given for, so that editing the address in the database makes the key unusable there.
func llmKeyField(baseURL *string, provider string) string {
	if provider == "" { // as it was before keys belonged to a provider
		return "llm_api_key for " + deref(baseURL)
	}
	return "llm_api_key for " + deref(baseURL) + " of " + provider
}

func modelField(id, baseURL string) string { return "model_providers." + id + " for " + baseURL }

func tokenField(name, host string) string {
	return "secrets_store.provider_tokens." + name + " for " + host
}

func customField(name string) string { return "secrets_store.custom_secrets." + name }

// Encode writes s with every secret sealed for the user.
func Encode(ctx context.Context, keys *secret.Keyring, user string, s Settings) ([]byte, error) {
	var failed error
	seal := func(field string, value secret.Secret) []byte {
		if value.IsZero() || failed != nil {
			return nil
		}
		sealed, err := keys.Seal(ctx, user, field, []byte(value.Reveal()))
		if err != nil {
			failed = fmt.Errorf("sealing a secret: %w", err)
		}
		return sealed
	}
	out := stored{
		Format: storedFormat, Plain: s.Plain, ModelRoles: s.ModelRoles, LLMKeyProvider: s.LLMKeyProvider, VerifiedEmail: s.VerifiedEmail, TrustedRepositories: s.TrustedRepositories, Notifications: s.Notifications, Commands: s.Commands,
		LLMAPIKey: seal(llmKeyField(s.LLMBaseURL, s.LLMKeyProvider), s.LLMAPIKey), SearchAPIKey: seal("search_api_key", s.SearchAPIKey), SandboxAPIKey: seal("sandbox_api_key", s.SandboxAPIKey),
		ProviderTokens: make(map[string]storedToken), CustomSecrets: make(map[string]storedValue), ModelProviders: make(map[string]storedModel),
	}
	for id, p := range s.ModelProviders {
		out.ModelProviders[id] = storedModel{Key: seal(modelField(id, p.BaseURL), p.Key), BaseURL: p.BaseURL}
	}
	for name, t := range s.ProviderTokens {
		out.ProviderTokens[name] = storedToken{Token: seal(tokenField(name, t.Host), t.Token), Host: t.Host, UserID: t.UserID}
	}
	for name, c := range s.CustomSecrets {
		out.CustomSecrets[name] = storedValue{Secret: seal(customField(name), c.Value), Description: c.Description, Repositories: c.Repositories}
	}
	if s.MCP != nil {
		plain, err := json.Marshal(plainMCP(*s.MCP))
		if err != nil {
			return nil, fmt.Errorf("encoding mcp_config: %w", err)
		}
		out.MCP = seal("mcp_config", secret.New(string(plain)))
	}
	if failed != nil {
		return nil, failed
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding settings: %w", err)
	}
	return body, nil
}

// Decode reads what Encode wrote for the same user.
func Decode(ctx context.Context, keys *secret.Keyring, user string, body []byte) (Settings, error) {
	var in stored
	if err := json.Unmarshal(body, &in); err != nil {
		return Settings{}, fmt.Errorf("decoding settings: %w", err)
	}
	if in.Format != storedFormat {
		return Settings{}, fmt.Errorf("decoding settings: unknown format %d", in.Format)
	}
	var failed error
	open := func(field string, sealed []byte) secret.Secret {
		if len(sealed) == 0 || failed != nil {
			return secret.Secret{}
		}
		plain, err := keys.Open(ctx, user, field, sealed)
		if err != nil {
			name, _, _ := strings.Cut(field, " for ")
			failed = fmt.Errorf("opening the stored secret %s: %w", name, err)
		}
		return secret.New(string(plain))
	}
	s := Settings{
		Plain: in.Plain, ModelRoles: in.ModelRoles, LLMKeyProvider: in.LLMKeyProvider, VerifiedEmail: in.VerifiedEmail, TrustedRepositories: in.TrustedRepositories, Notifications: in.Notifications, Commands: in.Commands,
		LLMAPIKey: open(llmKeyField(in.LLMBaseURL, in.LLMKeyProvider), in.LLMAPIKey), SearchAPIKey: open("search_api_key", in.SearchAPIKey), SandboxAPIKey: open("sandbox_api_key", in.SandboxAPIKey),
	}
	if len(in.ModelProviders) > 0 {
		s.ModelProviders = make(map[string]ModelProvider, len(in.ModelProviders))
	}
	for id, p := range in.ModelProviders {
		s.ModelProviders[id] = ModelProvider{Key: open(modelField(id, p.BaseURL), p.Key), BaseURL: p.BaseURL}
	}
	if len(in.ProviderTokens) > 0 {
		s.ProviderTokens = make(map[string]ProviderToken, len(in.ProviderTokens))
	}
	for name, t := range in.ProviderTokens {
		s.ProviderTokens[name] = ProviderToken{Token: open(tokenField(name, t.Host), t.Token), Host: t.Host, UserID: t.UserID}
	}
	if len(in.CustomSecrets) > 0 {
		s.CustomSecrets = make(map[string]CustomSecret, len(in.CustomSecrets))
	}
	for name, c := range in.CustomSecrets {
		s.CustomSecrets[name] = CustomSecret{Value: open(customField(name), c.Secret), Description: c.Description, Repositories: c.Repositories}
	}
	if len(in.MCP) > 0 {
		plain := open("mcp_config", in.MCP)
		var m storedMCP
		if failed == nil && json.Unmarshal([]byte(plain.Reveal()), &m) != nil {
			failed = fmt.Errorf("decoding mcp_config: %w", secret.ErrTampered)
		}
		cfg := m.hide()
		s.MCP = &cfg
	}
	if failed != nil {
		return Settings{}, failed
	}
	return s, nil
}

// plainMCP reveals the secrets of m; its result goes nowhere but into a seal.
func plainMCP(m MCP) storedMCP {
	var out storedMCP
	servers := func(list []Server) (out []storedServer) {
		for _, s := range list {
			out = append(out, storedServer{URL: s.URL, APIKey: s.APIKey.Reveal(), Timeout: s.Timeout})
		}
		return out
	}
	out.SSE, out.SHTTP = servers(m.SSE), servers(m.SHTTP)
	for _, s := range m.Stdio {
		plain := storedStdio{Name: s.Name, Command: s.Command, Args: s.Args}
		for name, value := range s.Env {
			if plain.Env == nil {
				plain.Env = map[string]string{}
			}
			plain.Env[name] = value.Reveal()
		}
		out.Stdio = append(out.Stdio, plain)
	}
	return out
}

func (m storedMCP) hide() MCP {
	var out MCP
	servers := func(list []storedServer) (out []Server) {
		for _, s := range list {
			out = append(out, Server{URL: s.URL, APIKey: secret.New(s.APIKey), Timeout: s.Timeout})
		}
		return out
	}
	out.SSE, out.SHTTP = servers(m.SSE), servers(m.SHTTP)
	for _, s := range m.Stdio {
		hidden := StdioServer{Name: s.Name, Command: s.Command, Args: s.Args}
		for name, value := range s.Env {
			if hidden.Env == nil {
				hidden.Env = map[string]secret.Secret{}
			}
			hidden.Env[name] = secret.New(value)
		}
		out.Stdio = append(out.Stdio, hidden)
	}
	return out
}
