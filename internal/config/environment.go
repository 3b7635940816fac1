package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ProviderKey is a variable in which people keep the key of a provider, and the model that is used if
// only the key is known.
type ProviderKey struct{ Variable, Provider, Model string }

// ProviderKeys are the variables, in the order in which they are looked at.
var ProviderKeys = []ProviderKey{
	{"ANTHROPIC_API_KEY", "anthropic", "anthropic/claude-sonnet-4-6"},
	{"OPENAI_API_KEY", "openai", "openai/gpt-5.6-sol"},
	{"GEMINI_API_KEY", "gemini", "gemini/gemini-3.1-pro-preview-customtools"},
	{"GOOGLE_API_KEY", "gemini", "gemini/gemini-3.1-pro-preview-customtools"},
	{"OPENROUTER_API_KEY", "openrouter", "openrouter/anthropic/claude-sonnet-4.6"},
	{"MISTRAL_API_KEY", "mistral", "mistral/mistral-large-latest"},
	{"GROQ_API_KEY", "groq", "groq/moonshotai/kimi-k2-instruct-0905"},
	{"DEEPSEEK_API_KEY", "deepseek", "deepseek/deepseek-v4-pro"},
	{"XAI_API_KEY", "xai", "xai/grok-4.5"},
}

// Stored is what the stored settings say about the model.
type Stored struct {
	Model, BaseURL *string // nil if not set
	HasKey         bool
}

// UseEnvironment takes the key, and the model if none is chosen, from the variables of providers. Flags,
// LLM_API_KEY and stored settings take precedence. A key is only used with its own provider's address. A base URL without a
// model is an error: the server there has models of its own.
func (f *SettingsFlags) UseEnvironment(stored Stored) error {
	if f.BaseURL != "" && f.Model == "" && (stored.Model == nil || *stored.Model == "") {
		return errors.New("--base-url needs --model, such as --model openai/NAME; the key of that server is read from LLM_API_KEY")
	}
	if ModelKey() != "" || f.BaseURL != "" {
		return nil
	}
	chosen, before := f.Model, ""
	if stored.Model != nil {
		before = *stored.Model
	}
	if chosen == "" {
		chosen = before
	}
	same := provider(chosen) == provider(before)
	if stored.HasKey && (f.Model == "" || same) || stored.BaseURL != nil && same {
		return nil
	}
	for _, p := range ProviderKeys {
		if key := strings.TrimSpace(os.Getenv(p.Variable)); key != "" && (chosen == "" || provider(chosen) == p.Provider) {
			if f.key, f.variable = key, p.Variable; chosen == "" {
				f.Model, f.selected = p.Model, true
			}
			return nil
		}
	}
	return nil
}

// Origin describes the model of a run and the source of the choice. If stored settings take precedence over a provider's key in the environment, it
// tells how to use that key. Call UseEnvironment first.
func (f *SettingsFlags) Origin(model string) string {
	switch {
	case f.Last:
		return "model " + model + ", last chosen in this folder"
	case f.selected:
		return "model " + model + ", selected by " + f.variable
	case f.Model != "" && f.Model == os.Getenv("DECKHAND_MODEL"):
		return "model " + model + ", from DECKHAND_MODEL"
	case f.Model != "":
		return "model " + model + ", from --model"
	}
	text := "model " + model + ", from the stored settings of " + f.User
	for _, p := range ProviderKeys {
		if strings.TrimSpace(os.Getenv(p.Variable)) != "" {
			if p.Provider != provider(model) {
				text += "; to use " + p.Variable + " instead: --model " + p.Model
			}
			break
		}
	}
	return text
}

// KeyVariable is the variable with the key of a model's provider, "" if there is none.
func KeyVariable(model string) string {
	for _, p := range ProviderKeys {
		if p.Provider == provider(model) {
			return p.Variable
		}
	}
	return ""
}

func provider(model string) string {
	name, _, _ := strings.Cut(model, "/")
	if name == "google" {
		return "gemini"
	}
	return strings.ToLower(name)
}

// ModelKey returns the key of the model: see ModelKey, or what UseEnvironment found.
func (f *SettingsFlags) ModelKey() string {
	if key := ModelKey(); key != "" {
		return key
	}
	return f.key
}

// KeySource is the variable with the key of the model, "" if the key is from the settings.
func (f *SettingsFlags) KeySource() string {
	for _, name := range []string{"DECKHAND_LLM_API_KEY", "LLM_API_KEY"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return f.variable
}

// MasterKey returns the master key from the environment or from the systemd credential master-key; "" if neither is set.
func MasterKey() string {
	if key := os.Getenv("DECKHAND_MASTER_KEY"); key != "" {
		return key
	}
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return ""
	}
	b, err := os.ReadFile(filepath.Join(dir, "master-key"))
	key := strings.TrimSpace(string(b))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil || key == "": // invalid on purpose, so that no new key is created
		return "the credential master-key cannot be read"
	}
	return key
}

// otherVariables are those of no flag: keys, and what git hooks in a sandbox set.
var otherVariables = []string{
	"DECKHAND_MASTER_KEY", "DECKHAND_NEW_MASTER_KEY", "DECKHAND_LLM_API_KEY", "DECKHAND_COAUTHOR", "DECKHAND_HOOKS", "DECKHAND_CONFIG_COUNT",
}

// unused lists the DECKHAND_* variables of the environment that are not known. Those of tests are left out.
func unused(known []string) (names []string) {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "DECKHAND_") && !strings.HasPrefix(name, "DECKHAND_TEST_") && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
