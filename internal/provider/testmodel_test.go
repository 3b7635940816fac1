package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
)

// good answers if the key is right.
var good = llmtest.Able("sk-right-key")

// tester can try models, with settings in memory.
func tester(t *testing.T) *Models {
	t.Helper()
	keyring, err := secret.OpenKeyring(t.Context(), t.TempDir(), "", secret.NewMemKeys())
	if err != nil {
		t.Fatal(err)
	}
	redactor, tr := secret.NewRedactor(), &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &Models{Settings: settings.New(settings.NewMemStore(), keyring, redactor), Client: &http.Client{Transport: tr},
		Connector: connect.Connector{Catalogue: catalogue.New(nil)}}
}

// inShort is a report in a line.
func inShort(r api.ModelReport) string {
	s := "bad"
	if r.OK {
		s = "ok"
	}
	if r.ErrorID != nil {
		s += " " + *r.ErrorID
	}
	for _, n := range r.Notes {
		s += " [" + n + "]"
	}
	for _, c := range r.Checks {
		if c.OK != nil && !*c.OK {
			s += " " + c.Name + ": " + c.Message
		}
	}
	return s
}

func TestTestModel(t *testing.T) {
	t.Parallel()
	server, other := llmtest.New(t, good), llmtest.New(t, good)
	b := tester(t)
	in := func(model, key, base string) api.TestModel {
		var out api.TestModel
		for text, to := range map[*string]*api.Opt[string]{&model: &out.LLMModel, &key: &out.LLMAPIKey, &base: &out.LLMBaseURL} {
			if *text != "" {
				*to = api.Some(*text)
			}
		}
		return out
	}
	if _, err := b.Test(t.Context(), "ada", api.TestModel{}); !errors.Is(err, settings.ErrNotFound) {
		t.Errorf("nothing is stored: %v", err)
	}
	if r, err := b.Test(t.Context(), "ada", in("openai/gpt-4o", "sk-right-key", server.URL+"/v1")); err != nil || inShort(r) != "ok" || r.Model != "openai/gpt-4o" {
		t.Errorf("all was sent: %s, %v", inShort(r), err)
	}
	if _, err := b.Settings.Update(t.Context(), "ada", api.SettingsInput{LLMModel: api.Some("openai/gpt-4o"), LLMAPIKey: api.Some("sk-right-key"), LLMBaseURL: api.Some(server.URL + "/v1")}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in   api.TestModel
		want []string
	}{
		"as stored":           {api.TestModel{}, []string{"ok"}},
		"another model there": {in("openai/gpt-4o-mini", "", ""), []string{"ok"}},
		"a wrong key":         {in("", "sk-wrong-key", ""), []string{"bad", "STATUS$ERROR_LLM_AUTHENTICATION", "API key is missing or invalid"}},
		"another host":        {in("", "", other.URL+"/v1"), []string{"bad", "STATUS$ERROR_LLM_AUTHENTICATION", "was not used"}},
		"another host, key":   {in("", "sk-right-key", other.URL+"/v1"), []string{"ok"}},
		"no server":           {in("", "k", "http://127.0.0.1:1/v1"), []string{"bad", "STATUS$ERROR_LLM_SERVICE_UNAVAILABLE"}},
		"no such provider":    {api.TestModel{LLMModel: api.Some("acme/m"), LLMBaseURL: api.Some("")}, []string{"bad", "STATUS$ERROR", "was not used", "unknown model"}},
		"the script":          {in("scripted/demo", "", ""), []string{"ok"}},
	} {
		before := len(other.Asked())
		r, err := b.Test(t.Context(), "ada", c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if got := inShort(r); !strings.Contains(got, want) || strings.Contains(got, "wrong-key") {
				t.Errorf("%s: %s, want %q", name, got, want)
			}
		}
		for _, a := range other.Asked()[before:] {
			if name == "another host" && strings.Contains(a.Header.Get("Authorization"), "right-key") {
				t.Error("the stored key went to another host")
			}
		}
	}
	var invalid *api.ValidationError
	if _, err := b.Test(t.Context(), "ada", in("", "", "ftp://x")); !errors.As(err, &invalid) {
		t.Errorf("%v", err)
	}
	if s, err := b.Settings.Get(t.Context(), "ada"); err != nil || *s.LLMModel != "openai/gpt-4o" || s.LLMAPIKey.Reveal() != "sk-right-key" {
		t.Errorf("trying changed the settings: %+v, %v", s, err)
	}
}

// A stored key does not follow the user from one provider to the next.
func TestTestModelKeepsKeysApart(t *testing.T) {
	t.Parallel()
	b := tester(t)
	if _, err := b.Settings.Update(t.Context(), "ada", api.SettingsInput{LLMModel: api.Some("anthropic/claude-sonnet-4-5"), LLMAPIKey: api.Some("sk-anthropic-key")}); err != nil {
		t.Fatal(err)
	}
	sent := map[string]bool{}
	b.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		var all strings.Builder
		_ = r.Header.Write(&all)
		sent[r.URL.Host] = strings.Contains(all.String(), "sk-anthropic-key")
		return nil, context.DeadlineExceeded
	})}
	for _, model := range []string{"anthropic/claude-opus-4-5", "openai/gpt-4o", "groq/qwen/qwen3-32b"} {
		if _, err := b.Test(t.Context(), "ada", api.TestModel{LLMModel: api.Some(model)}); err != nil {
			t.Fatal(err)
		}
	}
	if !sent["api.anthropic.com"] || sent["api.openai.com"] || sent["api.groq.com"] || len(sent) != 3 {
		t.Errorf("who was sent the key: %v", sent)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that is not stored yet is tested with the first model that it lists.
func TestTestModelOfAServerThatListsModels(t *testing.T) {
	t.Parallel()
	server, b := llmtest.New(t, good), tester(t)
	in := func(base, key string) api.TestModel {
		return api.TestModel{LLMModel: api.Some("vllm/"), LLMBaseURL: api.Some(base), LLMAPIKey: api.Some(key)}
	}
	if r, err := b.Test(t.Context(), "ada", in(server.URL+"/v1", "sk-right-key")); err != nil || inShort(r) != "ok" || r.Model != "vllm/test" {
		t.Errorf("%s of %s, %v", inShort(r), r.Model, err)
	}
	if r, err := b.Test(t.Context(), "ada", in("http://127.0.0.1:1", "k")); err != nil || !strings.Contains(inShort(r), "No server responded at http://127.0.0.1:1") || r.ErrorID == nil {
		t.Errorf("%s, %v", inShort(r), err)
	}
	if r, err := b.Test(t.Context(), "ada", api.TestModel{LLMModel: api.Some("anthropic/")}); err != nil || !strings.Contains(inShort(r), "enter the name of a model") {
		t.Errorf("%s, %v", inShort(r), err)
	}
}

// A key of the default model without a host does not hide the base URL in the provider's entry.
func TestEntryHasTheBaseURL(t *testing.T) {
	t.Parallel()
	server, b := llmtest.New(t, good), tester(t)
	store(t, b, "ada", api.SettingsInput{LLMModel: api.Some("work/m"), LLMAPIKey: api.Some("sk-other-key")})
	s, err := b.Settings.Get(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if why := b.Unusable(s, ""); !strings.Contains(why, "set the base URL") {
		t.Errorf("without an entry: %q", why)
	}
	entry(t, b, "ada", "work", "sk-right-key", server.URL+"/v1")
	if r, err := b.Test(t.Context(), "ada", api.TestModel{}); err != nil || inShort(r) != "ok" {
		t.Errorf("%s, %v", inShort(r), err)
	}
	for _, a := range server.Asked() {
		if strings.Contains(a.Header.Get("Authorization"), "other") {
			t.Error("the key of the settings went to the host of the entry")
		}
	}
}

// Credentials of clouds are checked when they are stored, and never shown.
func TestCloudCredentials(t *testing.T) {
	t.Parallel()
	b := tester(t)
	set := func(id, key string) error {
		_, err := b.SetProvider(t.Context(), "ada", id, &api.SetModelProvider{APIKey: api.Some(key), BaseURL: api.Some("https://bedrock-runtime.us-east-1.amazonaws.com")})
		return err
	}
	var invalid *api.ValidationError
	for id, key := range map[string]string{"bedrock": "AWS_ACCESS_KEY_ID=AKIDCANARY", "vertexai": `{"type":"service_account","private_key":"CANARY"}`} {
		if err := set(id, key); !errors.As(err, &invalid) || invalid.Detail[0].Loc[1] != "api_key" || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := set("bedrock", "AWS_ACCESS_KEY_ID=AKIDCANARY\nAWS_SECRET_ACCESS_KEY=secretcanary0123456789\n"); err != nil {
		t.Fatal(err)
	}
	s, err := b.Settings.Get(t.Context(), "ada")
	if err != nil || b.Unusable(s, "bedrock/amazon.nova-pro-v1:0") != "" || !slices.Contains(s.SecretValues(), "secretcanary0123456789") {
		t.Errorf("%v, %q", err, b.Unusable(s, "bedrock/amazon.nova-pro-v1:0"))
	}
	if list, err := b.Providers(t.Context(), "ada"); err != nil || strings.Contains(fmt.Sprint(list), "anary") {
		t.Errorf("%v", err)
	}
}
