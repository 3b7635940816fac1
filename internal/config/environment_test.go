package config

import (
	"strings"
	"testing"

	"deckhand/internal/llm/catalogue"
)

func TestKeysOfProviders(t *testing.T) { // sets variables, so it runs alone
	for _, p := range ProviderKeys {
		t.Setenv(p.Variable, "")
	}
	t.Setenv("LLM_API_KEY", "")
	t.Setenv("DECKHAND_LLM_API_KEY", "")
	for name, c := range map[string]struct {
		env            map[string]string
		flags          SettingsFlags
		stored         Stored
		model, withKey string
	}{
		"nothing":                   {},
		"one key":                   {env: map[string]string{"GROQ_API_KEY": "g"}, model: "groq/moonshotai/kimi-k2-instruct-0905", withKey: "g"},
		"the first of two":          {env: map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}, model: "anthropic/claude-sonnet-4-6", withKey: "a"},
		"the key of a chosen model": {env: map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}, flags: SettingsFlags{Model: "openai/gpt-4o"}, model: "openai/gpt-4o", withKey: "o"},
		"google is gemini":          {env: map[string]string{"GOOGLE_API_KEY": "g"}, flags: SettingsFlags{Model: "google/gemini-2.5-pro"}, model: "google/gemini-2.5-pro", withKey: "g"},
		"no key for a chosen model": {env: map[string]string{"OPENAI_API_KEY": "o"}, flags: SettingsFlags{Model: "mistral/x"}, model: "mistral/x"},
		"LLM_API_KEY wins":          {env: map[string]string{"OPENAI_API_KEY": "o", "LLM_API_KEY": "l"}, withKey: "l"},
		"stored key wins":           {env: map[string]string{"OPENAI_API_KEY": "o"}, stored: Stored{Model: ref("openai/gpt-4o"), HasKey: true}},
		"stored model without key":  {env: map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}, stored: Stored{Model: ref("openai/gpt-4o")}, withKey: "o"},
		"another provider":          {env: map[string]string{"ANTHROPIC_API_KEY": "a"}, flags: SettingsFlags{Model: "anthropic/m"}, stored: Stored{Model: ref("openai/gpt-4o"), HasKey: true}, model: "anthropic/m", withKey: "a"},
		"never to another address":  {env: map[string]string{"OPENAI_API_KEY": "o"}, flags: SettingsFlags{Model: "openai/x", BaseURL: "http://lan:4000"}, model: "openai/x"},
		"nor to a stored one":       {env: map[string]string{"OPENAI_API_KEY": "o"}, stored: Stored{Model: ref("openai/x"), BaseURL: ref("http://lan:4000")}},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			f := c.flags
			if err := f.UseEnvironment(c.stored); err != nil {
				t.Fatal(err)
			}
			if f.Model != c.model || f.ModelKey() != c.withKey {
				t.Errorf("model %q with key %q, want %q with %q", f.Model, f.ModelKey(), c.model, c.withKey)
			}
			if c.withKey != "" && f.Changes().LLMAPIKey.Value != c.withKey {
				t.Errorf("%+v", f.Changes())
			}
		})
	}
}

// A server of one's own never gets the default model of a provider.
func TestBaseURLNeedsAModel(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "o")
	f := SettingsFlags{BaseURL: "http://lan:4000"}
	if err := f.UseEnvironment(Stored{}); err == nil || !strings.Contains(err.Error(), "--model") || f.Model != "" {
		t.Errorf("%v, model %q", err, f.Model)
	}
	if err := f.UseEnvironment(Stored{Model: ref("openai/x")}); err != nil {
		t.Error(err)
	}
}

// A model that no list knows any more would be a bad default.
func TestDefaultModelsAreListed(t *testing.T) {
	t.Parallel()
	all := catalogue.New(nil)
	for _, p := range ProviderKeys {
		if _, ok := all.Provider(p.Provider); !ok {
			t.Errorf("%s: provider %s is unknown", p.Variable, p.Provider)
		}
		if p.Provider != "mistral" && all.Info(p.Model).Window == 0 { // the list has no models of mistral's own
			t.Errorf("%s: model %s is unknown", p.Variable, p.Model)
		}
	}
}

func TestKeyVariable(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{"openai/gpt-4o": "OPENAI_API_KEY", "google/gemini-2.5-pro": "GEMINI_API_KEY", "Anthropic/x": "ANTHROPIC_API_KEY", "bedrock/x": "", "": ""} {
		if got := KeyVariable(model); got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}

// A run says which model it uses and where the choice comes from.
func TestOrigin(t *testing.T) {
	for name, c := range map[string]struct {
		flags  SettingsFlags
		env    map[string]string
		stored string
		want   string
	}{
		"flag":                    {flags: SettingsFlags{Model: "openai/a"}, want: "model openai/a, from --model"},
		"variable":                {flags: SettingsFlags{Model: "openai/a"}, env: map[string]string{"DECKHAND_MODEL": "openai/a"}, want: "model openai/a, from DECKHAND_MODEL"},
		"last":                    {flags: SettingsFlags{Model: "openai/a", Last: true}, want: "model openai/a, last chosen in this folder"},
		"key of a provider":       {env: map[string]string{"ANTHROPIC_API_KEY": "k"}, want: "model anthropic/claude-sonnet-4-6, selected by ANTHROPIC_API_KEY"},
		"stored":                  {stored: "openai/b", want: "model openai/b, from the stored settings of ada"},
		"stored, key of another":  {stored: "scripted/demo", env: map[string]string{"ANTHROPIC_API_KEY": "k"}, want: "model scripted/demo, from the stored settings of ada; to use ANTHROPIC_API_KEY instead: --model anthropic/claude-sonnet-4-6"},
		"stored, key of the same": {stored: "anthropic/b", env: map[string]string{"ANTHROPIC_API_KEY": "k"}, want: "model anthropic/b, from the stored settings of ada"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, k := range append([]string{"DECKHAND_MODEL", "LLM_API_KEY", "DECKHAND_LLM_API_KEY"}, variables()...) {
				t.Setenv(k, c.env[k])
			}
			f := c.flags
			f.User = "ada"
			stored := Stored{}
			if c.stored != "" {
				stored.Model = &c.stored
			}
			if err := f.UseEnvironment(stored); err != nil {
				t.Fatal(err)
			}
			model := f.Model
			if model == "" {
				model = c.stored
			}
			if got := f.Origin(model); got != c.want {
				t.Errorf("%s\ninstead of\n%s", got, c.want)
			}
		})
	}
}

func variables() (out []string) {
	for _, p := range ProviderKeys {
		out = append(out, p.Variable)
	}
	return out
}
