package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/secret"
)

func put(t *testing.T, s *Settings, id, home, body string) ([]string, error) {
	t.Helper()
	var in api.SetModelProvider
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	return s.SetModelProvider(id, home, in)
}

// A key stays with its provider and its host, whatever else is changed.
func TestModelProviderKeys(t *testing.T) {
	t.Parallel()
	const home = "https://api.anthropic.com"
	var s Settings
	for _, step := range []struct {
		id, home, body string
		key, note      string
		bad            string
	}{
		{"anthropic", home, `{"api_key":"sk-ant-1"}`, "sk-ant-1", "", ""},
		{"openai", "https://api.openai.com", `{"api_key":"sk-oai-1"}`, "sk-oai-1", "", ""},
		{"anthropic", home, `{"api_key":null}`, "sk-ant-1", "", ""},
		{"anthropic", home, `{"api_key":"**********"}`, "sk-ant-1", "", ""},
		{"anthropic", home, `{"base_url":"https://api.anthropic.com/v1"}`, "sk-ant-1", "", ""}, // the same host
		{"anthropic", home, `{"base_url":"https://evil.example"}`, "", "dropped", ""},
		{"anthropic", home, `{"api_key":"sk-ant-2"}`, "sk-ant-2", "", ""},
		{"anthropic", home, `{"api_key":"**********","base_url":null}`, "", "dropped", ""},
		{"anthropic", home, `{"api_key":"sk-ant-3","base_url":"https://proxy.example"}`, "sk-ant-3", "", ""},
		{"anthropic", home, `{"api_key":""}`, "", "", ""},
		{"anthropic", home, `{"api_key":"**********"}`, "", "", "api_key"},
		{"anthropic", home, `{"base_url":"ftp://x"}`, "", "", "base_url"},
		{"anthropic", home, `{"api_key":"a\nb"}`, "", "", "api_key"},
		{"work", "", `{"api_key":"k"}`, "", "", "base_url"},
		{"work", "", `{"api_key":"k-1","base_url":"http://10.0.0.5:8000/v1"}`, "k-1", "", ""},
		{"ollama", "http://localhost:11434/v1", `{}`, "", "", ""},
		{"Work", "", `{"base_url":"http://x"}`, "", "", "provider_id"},
		{"a/b", "", `{"base_url":"http://x"}`, "", "", "provider_id"},
		{"scripted", "", `{"base_url":"http://x"}`, "", "", "provider_id"},
	} {
		notes, err := put(t, &s, step.id, step.home, step.body)
		if step.bad != "" {
			if err == nil {
				t.Errorf("%s %s was taken", step.id, step.body)
			} else {
				wantRefused(t, step.body, err, err.(*api.ValidationError).Detail[0].Type, "body", step.bad)
			}
			continue
		}
		if err != nil || s.ModelProviders[step.id].Key.Reveal() != step.key || strings.Contains(strings.Join(notes, " "), "dropped") != (step.note != "") {
			t.Errorf("%s %s: key %q, notes %q, %v", step.id, step.body, s.ModelProviders[step.id].Key.Reveal(), notes, err)
		}
	}
	if s.ModelProviders["openai"].Key.Reveal() != "sk-oai-1" {
		t.Error("a change of one provider changed another")
	}
}

// What is stored is sealed for its provider, its base URL and its user.
func TestModelProvidersAreSealed(t *testing.T) {
	t.Parallel()
	keys, err := secret.OpenKeyring(t.Context(), t.TempDir(), "", secret.NewMemKeys())
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := update(nil, `{"llm_model":"openai/gpt-5","llm_api_key":"sk-default-canary"}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(t, &s, "anthropic", "https://api.anthropic.com", `{"api_key":"sk-ant-canary","base_url":"https://proxy.example"}`); err != nil {
		t.Fatal(err)
	}
	if err := s.SetModelRoles(api.SetModelRoles{Small: api.Some("openai/small"), Favourites: api.Some([]string{"a/b", "a/b", "c/d"})}); err != nil {
		t.Fatal(err)
	}
	body, err := Encode(t.Context(), keys, "ada", s)
	if err != nil || bytes.Contains(body, []byte("canary")) {
		t.Fatalf("%v: %s", err, body)
	}
	got, err := Decode(t.Context(), keys, "ada", body)
	if err != nil || got.ModelProviders["anthropic"].Key.Reveal() != "sk-ant-canary" || got.LLMAPIKey.Reveal() != "sk-default-canary" ||
		got.LLMKeyProvider != "openai" || got.Small != "openai/small" || len(got.Favourites) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, change := range [][2]string{{"https://proxy.example", "https://evil.example"}, {`"anthropic"`, `"evil"`}, {`"llm_key_provider":"openai"`, `"llm_key_provider":"evil"`}} {
		if !bytes.Contains(body, []byte(change[0])) {
			t.Fatalf("no %s in %s", change[0], body)
		}
		if _, err := Decode(context.Background(), keys, "ada", bytes.Replace(body, []byte(change[0]), []byte(change[1]), 1)); err == nil {
			t.Errorf("a key opened after %s became %s", change[0], change[1])
		}
	}
	view, _ := json.Marshal(View(got))
	if bytes.Contains(view, []byte("canary")) {
		t.Errorf("a key is shown: %s", view)
	}
	if all := strings.Join(got.SecretValues(), " "); !strings.Contains(all, "sk-ant-canary") {
		t.Error("the key is not masked")
	}
}

// The key of the settings belongs to the provider of the model that it was stored with.
func TestLLMKeyBelongsToItsProvider(t *testing.T) {
	t.Parallel()
	var s Settings
	for _, step := range []struct{ body, owner, note string }{
		{`{"llm_api_key":"k1"}`, "", ""},
		{`{"llm_model":"scripted/demo"}`, "", ""},
		{`{"llm_model":"Anthropic/claude"}`, "anthropic", ""},
		{`{"llm_model":"scripted/demo"}`, "anthropic", ""},
		{`{"llm_model":"openai/gpt"}`, "anthropic", "belongs to anthropic"},
		{`{"llm_model":"openai/gpt-5"}`, "anthropic", ""},
		{`{"llm_api_key":"k2"}`, "openai", ""},
		{`{"llm_api_key":""}`, "", ""},
	} {
		next, did, err := update(&s, step.body)
		if notes := strings.Join(did.Notes, " "); err != nil || next.LLMKeyProvider != step.owner || (step.note == "") != (notes == "") || !strings.Contains(notes, step.note) {
			t.Errorf("%s: owner %q, notes %q, %v", step.body, next.LLMKeyProvider, notes, err)
		}
		s = next
	}
}
