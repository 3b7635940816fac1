package takeover_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/settings"
	"deckhand/internal/takeover"
)

// All secrets of testdata, also those that are refused.
var canaries = []string{
	"sk-legacy-canary-0001", "legacy-env-canary-01", "legacy-mcp-canary-01", "legacy-github-canary-01", "legacy-gitlab-canary-01",
	"legacy-forge-canary-01", "legacy-npm-canary-01", "legacy-name-canary-01", "legacy-path-canary-01",
}

func TestSettings(t *testing.T) {
	h := build(t)
	r := h.take(legacy).Settings
	got, err := h.settings.Get(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if *got.LLMModel != "openai/test-model" || got.LLMAPIKey.Reveal() != canaries[0] || *got.LLMBaseURL != "http://127.0.0.1:9/v1" || *got.MaxIterations != 250 ||
		!*got.ConfirmationMode || !got.EnableSoundNotifications || *got.GitUserName != "Ada" || *got.UserConsentsToAnalytics {
		t.Errorf("%+v", settings.View(got))
	}
	if got.ProviderTokens["github"].Token.Reveal() != "legacy-github-canary-01" || got.ProviderTokens["gitlab"].Host != "git.corp.example" || len(got.ProviderTokens) != 2 {
		t.Errorf("provider tokens: %+v", settings.View(got).ProviderTokensSet)
	}
	if npm := got.CustomSecrets["NPM_TOKEN"]; npm.Value.Reveal() != "legacy-npm-canary-01" || npm.Description != "publish key" || len(got.CustomSecrets) != 1 {
		t.Errorf("custom secrets: %+v", settings.View(got).SecretsStore)
	}
	if m := got.MCP; m == nil || len(m.SSE) != 1 || len(m.SHTTP) != 1 || m.SHTTP[0].APIKey.Reveal() != "legacy-mcp-canary-01" || len(m.Stdio) != 1 || m.Stdio[0].Name != "files" {
		t.Errorf("tool servers: %+v", settings.View(got).MCPConfig)
	}
	for _, want := range []string{"security_analyzer: ", "mcp_config.stdio_servers.0.name: ", "secrets_store.provider_tokens.sourceforge: ", "secrets_store.custom_secrets.not a name: ", "secrets_store.custom_secrets.PATH: "} {
		if !slices.ContainsFunc(r.Refused, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%s is not refused: %q", want, r.Refused)
		}
	}
	if len(r.Refused) != 5 || !slices.Contains(r.Imported, "condenser_max_size") || !slices.Contains(r.Imported, "custom_secrets.NPM_TOKEN") {
		t.Errorf("%+v", r)
	}
}

// Defect 2 of the legacy server: what it stores for sandbox_api_key is the mask.
func TestDefect02ImportedSandboxKeyIsNoMask(t *testing.T) {
	h := build(t)
	r := h.take(legacy).Settings
	got, err := h.settings.Get(t.Context(), "ada")
	if err != nil || !got.SandboxAPIKey.IsZero() {
		t.Errorf("%v, and the mask was stored: %v", err, !got.SandboxAPIKey.IsZero())
	}
	if slices.Contains(r.Imported, "sandbox_api_key") || !slices.ContainsFunc(r.Notes, func(s string) bool { return strings.HasPrefix(s, "sandbox_api_key is masked") }) {
		t.Errorf("%+v", r)
	}
}

// What the user chose here stays, and no key is ever joined with another server's address.
func TestStoredSettingsStay(t *testing.T) {
	h := build(t)
	mine := api.SettingsInput{LLMModel: api.Some("anthropic/mine"), Language: api.Some("de"), EnableSoundNotifications: api.Some(false), SecretsStore: api.Some(api.UserSecrets{
		CustomSecrets: map[string]*api.CustomSecret{"NPM_TOKEN": {Secret: api.Some("my-own-token")}}})}
	if _, err := h.settings.Update(t.Context(), "ada", mine); err != nil {
		t.Fatal(err)
	}
	r := h.take(legacy).Settings
	got, err := h.settings.Get(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if *got.LLMModel != "anthropic/mine" || !got.LLMAPIKey.IsZero() || got.LLMBaseURL != nil || *got.Language != "de" || got.EnableSoundNotifications || got.CustomSecrets["NPM_TOKEN"].Value.Reveal() != "my-own-token" {
		t.Errorf("%+v", settings.View(got))
	}
	if *got.GitUserName != "Ada" || got.ProviderTokens["github"].Token.IsZero() || got.MCP == nil {
		t.Errorf("what was not set is not taken over: %+v", settings.View(got))
	}
	for _, name := range []string{"llm_model", "llm_api_key", "llm_base_url", "language", "enable_sound_notifications", "custom_secrets.NPM_TOKEN"} {
		if !slices.Contains(r.Kept, name) || slices.Contains(r.Imported, name) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	h.take(legacy, func(m *takeover.Import) { m.Overwrite = true })
	got, err = h.settings.Get(t.Context(), "ada")
	if err != nil || *got.LLMModel != "openai/test-model" || *got.Language != "en" || got.CustomSecrets["NPM_TOKEN"].Value.Reveal() != "legacy-npm-canary-01" {
		t.Errorf("%+v %v", settings.View(got), err)
	}
}

// No secret is in the report or in the events, wherever it stood: in a text, in a
// list, in the model's answer.
func secretsAreNowhere(t *testing.T, h *house, r takeover.Report) {
	report, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var log []byte
	for _, e := range slices.Concat(h.events(newer), h.events(older)) {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, b...)
	}
	for _, c := range canaries {
		if strings.Contains(string(report), c) || strings.Contains(string(log), c) {
			t.Errorf("%s can be read", c)
		}
	}
	if n := strings.Count(string(log), "**********"); n < 4 {
		t.Errorf("only %d masks", n)
	}
}

func TestOldAndDamagedSettings(t *testing.T) {
	h := build(t)
	r := h.take(write(t, map[string]string{
		"settings.json": `{"llm_api_key":"","max_iterations":"many","secrets_store":{"provider_tokens":{"github":"ghp-in-the-settings","bitbucket":{"token":null}},"custom_secrets":{"A":"one-of-old"}},"mcp_config":{"servers":[]}}`,
		"secrets.json":  `{"provider_tokens":{"github":{"token":"ghp-of-the-secrets"}},"custom_secrets":{"B":{"secret":""},"C":{"secret":"**********"}},"more":1}`,
	})).Settings
	got, err := h.settings.Get(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if got.ProviderTokens["github"].Token.Reveal() != "ghp-of-the-secrets" || got.CustomSecrets["A"].Value.Reveal() != "one-of-old" || len(got.CustomSecrets) != 1 || len(got.ProviderTokens) != 1 {
		t.Errorf("%+v", settings.View(got))
	}
	if len(r.Refused) != 3 {
		t.Errorf("%q", r.Refused)
	}
	for text, want := range map[string]string{`{"llm_model":"a/b"`: "truncated", `[]`: "not a JSON object", `null`: "not a JSON object"} {
		h := build(t)
		r := h.take(write(t, map[string]string{"settings.json": text}))
		if len(r.Settings.Refused) != 1 || !strings.Contains(r.Settings.Refused[0], want) || r.Clean() {
			t.Errorf("%s: %+v", text, r.Settings)
		}
	}
}
