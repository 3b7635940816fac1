package settings

import (
	"maps"
	"slices"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/secret"
)

// Changes tells what an update did beyond what it was asked to.
type Changes struct {
	Notes []string // sentences for the user
}

// merger applies one update and collects everything that is wrong with it.
type merger struct {
	out   Settings
	bad   []api.FieldError
	notes []string
}

// Merge applies in to old, or to the defaults if old is nil. It changes neither. Its
// error is a *api.ValidationError that lists every bad field and repeats no value.
func Merge(old *Settings, in api.SettingsInput) (Settings, Changes, error) {
	m := &merger{out: Defaults()}
	if old != nil {
		m.out = old.Clone()
	}
	provider, mode := m.out.keyProvider(), m.out.Approvals()
	m.plain(&m.out.Plain, in)
	m.approvals(mode, in)
	m.bindKey(provider, m.llmKey(in))
	m.secrets(in.SecretsStore)
	m.mcp(in.MCPConfig)
	m.key("search_api_key", in.SearchAPIKey, &m.out.SearchAPIKey)
	m.key("sandbox_api_key", in.SandboxAPIKey, &m.out.SandboxAPIKey)
	m.compare(old, in)
	if len(m.bad) > 0 {
		return Settings{}, Changes{}, &api.ValidationError{Detail: m.bad}
	}
	return m.out, Changes{Notes: m.notes}, nil
}

// compare refuses more secrets than one user may have, and tells of those that are
// new and cannot be masked. What was stored before there was a limit can stay.
func (m *merger) compare(old *Settings, in api.SettingsInput) {
	before := Settings{}
	if old != nil {
		before = *old
	}
	if n := m.out.secretBytes(); n > maxSecretBytes && n > before.secretBytes() {
		field := "secrets_store"
		if !in.SecretsStore.Set {
			field = "mcp_config"
		}
		m.refuse(tooMuch, field)
	}
	for _, name := range slices.Sorted(maps.Keys(m.out.CustomSecrets)) {
		c := m.out.CustomSecrets[name]
		if why := c.Unmasked(); why != "" && !c.Value.Equal(before.CustomSecrets[name].Value) {
			m.notes = append(m.notes, name+": "+why)
		}
	}
}

// nullKeeps makes null the same as omitted, for the fields where it is.
func nullKeeps[T any](o api.Opt[T]) api.Opt[T] {
	if o.Null {
		return api.Opt[T]{}
	}
	return o
}

func (m *merger) refuse(p *problem, path ...any) {
	m.bad = append(m.bad, api.FieldError{Loc: append([]any{"body"}, path...), Msg: p.msg, Type: p.typ})
}

// text sets a string. The empty string is always right: it clears.
func (m *merger) text(name string, in api.Opt[string], dst **string, check func(string) *problem) {
	v, ok := in.Get()
	switch {
	case !in.Set:
	case !ok:
		*dst = nil
	default:
		if v != "" {
			if p := check(v); p != nil {
				m.refuse(p, name)
				return
			}
		}
		*dst = &v
	}
}

func number[T any](m *merger, name string, in api.Opt[T], dst **T, check func(T) *problem) {
	v, ok := in.Get()
	switch {
	case !in.Set:
	case !ok:
		*dst = nil
	default:
		if p := check(v); p != nil {
			m.refuse(p, name)
			return
		}
		*dst = &v
	}
}

func (m *merger) flag(name string, in api.Opt[bool], dst *bool) {
	switch v, ok := in.Get(); {
	case !in.Set:
	case !ok:
		m.refuse(&problem{"none_forbidden", "Must not be null. Send true or false, or omit the field to keep the stored value."}, name)
	default:
		*dst = v
	}
}

// key sets a key and reports whether one was sent: null and the mask keep what is stored.
func (m *merger) key(name string, in api.Opt[string], dst *secret.Secret) (sent bool) {
	v, ok := in.Get()
	if !ok {
		return false
	}
	if v == api.Masked {
		if dst.IsZero() {
			m.refuse(nothingStored, name)
		}
		return false
	}
	if v != "" {
		v = compact(v)
		if p := checkKey(v); p != nil {
			m.refuse(p, name)
			return false
		}
	}
	*dst = secret.New(v)
	return true
}

// llmKey sets the model's address and key together: a key belongs to the host it was
// given for, or redirecting the address would be a way to steal it. It reports whether a key was sent.
func (m *merger) llmKey(in api.SettingsInput) (sent bool) {
	before := origin(deref(m.out.LLMBaseURL))
	m.text("llm_base_url", nullKeeps(in.LLMBaseURL), &m.out.LLMBaseURL, checkURL)
	sent = m.key("llm_api_key", in.LLMAPIKey, &m.out.LLMAPIKey)
	if !sent && !m.out.LLMAPIKey.IsZero() && origin(deref(m.out.LLMBaseURL)) != before {
		m.out.LLMAPIKey = secret.Secret{}
		m.notes = append(m.notes, "The stored API key was removed, because the host of the base URL changed. Enter the API key again.")
	}
	return sent
}

// bindKey notes which provider the key of the settings belongs to: that of the model that it was stored with, and not
// that of whichever model is chosen later. was is the provider before the update.
func (m *merger) bindKey(was string, sent bool) {
	now := m.out.keyProvider()
	switch {
	case m.out.LLMAPIKey.IsZero():
		m.out.LLMKeyProvider = ""
	case sent:
		m.out.LLMKeyProvider = now
	case m.out.LLMKeyProvider == "":
		m.out.LLMKeyProvider = first(was, now)
	}
	owner := m.out.LLMKeyProvider
	if now == "" || now == was || owner == "" || owner == now || deref(m.out.LLMBaseURL) != "" || !m.out.ModelProviders[now].Key.IsZero() {
		return
	}
	m.notes = append(m.notes, "The stored API key belongs to "+owner+" and is not used for models of "+now+". Enter an API key for this provider.")
}

func (m *merger) mcp(in api.Opt[api.MCPConfig]) {
	v, ok := in.Get()
	switch {
	case !in.Set:
	case !ok:
		m.out.MCP = nil
	default:
		cfg, bad := CheckMCP(v, m.out.MCP, "body", "mcp_config")
		m.bad = append(m.bad, bad...)
		m.out.MCP = &cfg
	}
}

func (m *merger) secrets(in api.Opt[api.UserSecrets]) {
	v, ok := in.Get()
	switch {
	case !in.Set:
		return
	case !ok:
		if len(m.out.ProviderTokens)+len(m.out.CustomSecrets) > 0 {
			m.notes = append(m.notes, "All git provider tokens and custom secrets were removed, because secrets_store was null.")
		}
		m.out.ProviderTokens, m.out.CustomSecrets = nil, nil
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v.ProviderTokens)) {
		m.providerToken(name, v.ProviderTokens[name])
	}
	for _, name := range slices.Sorted(maps.Keys(v.CustomSecrets)) {
		m.customSecret(name, v.CustomSecrets[name])
	}
	if len(m.out.CustomSecrets) > maxCustomSecrets {
		m.refuse(&problem{"too_long", "Too many custom secrets: the limit is 1000."}, "secrets_store", "custom_secrets")
	}
}

func (m *merger) providerToken(name string, in *api.ProviderToken) {
	path := []any{"secrets_store", "provider_tokens", name}
	if known := gitprovider.Names(); !slices.Contains(known, name) {
		m.refuse(oneOf(known)(name), path...)
		return
	}
	if in == nil {
		delete(m.out.ProviderTokens, name)
		return
	}
	t := m.out.ProviderTokens[name]
	before := providerOrigin(name, t.Host)
	m.part(in.Host, &t.Host, checkHost, append(path, "host")...)
	m.part(in.UserID, &t.UserID, checkLine(255), append(path, "user_id")...)

	token, ok := in.Token.Get()
	kept := !ok || token == api.Masked
	switch {
	case kept && ok && t.Token.IsZero():
		m.refuse(nothingStored, append(path, "token")...)
	case kept && !t.Token.IsZero() && providerOrigin(name, t.Host) != before:
		t.Token = secret.Secret{}
		m.notes = append(m.notes, "The stored token for "+name+" was dropped, because its host changed. Send the token again.")
	case !kept && token != "":
		if p := checkKey(token); p != nil {
			m.refuse(p, append(path, "token")...)
		}
		fallthrough
	case !kept:
		t.Token = secret.New(token)
	}
	if t == (ProviderToken{}) {
		delete(m.out.ProviderTokens, name)
		return
	}
	if m.out.ProviderTokens == nil {
		m.out.ProviderTokens = map[string]ProviderToken{}
	}
	m.out.ProviderTokens[name] = t
}

func (m *merger) customSecret(name string, in *api.CustomSecret) {
	path := []any{"secrets_store", "custom_secrets", name}
	if in == nil {
		delete(m.out.CustomSecrets, name)
		return
	}
	if p := checkSecretName(name); p != nil {
		m.refuse(p, path...)
		return
	}
	c, stored := m.out.CustomSecrets[name]
	m.part(in.Description, &c.Description, checkDescription, append(path, "description")...)
	m.repositories(in.Repositories, &c.Repositories, append(slices.Clone(path), "repositories")...)
	value, ok := in.Secret.Get()
	switch {
	case ok && value == "":
		delete(m.out.CustomSecrets, name)
		return
	case (!ok || value == api.Masked) && !stored:
		m.refuse(nothingStored, append(path, "secret")...)
		return
	case ok && value != api.Masked:
		if p := checkEnvValue(value); p != nil {
			m.refuse(p, append(path, "secret")...)
			return
		}
		c.Value = secret.New(value)
	}
	if m.out.CustomSecrets == nil {
		m.out.CustomSecrets = map[string]CustomSecret{}
	}
	m.out.CustomSecrets[name] = c
}

// part sets one string of an entry: omitted keeps, null and the empty string clear.
func (m *merger) part(in api.Opt[string], dst *string, check func(string) *problem, path ...any) {
	if !in.Set {
		return
	}
	v, _ := in.Get()
	if v != "" {
		if p := check(v); p != nil {
			m.refuse(p, path...)
			return
		}
	}
	*dst = v
}

func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
