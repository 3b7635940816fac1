package profile

import (
	"testing"

	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// Git ignores embedded bare repositories in every kind of sandbox.
func TestSandboxesProtectBare(t *testing.T) {
	t.Parallel()
	for _, gate := range []bool{false, true} {
		spec, err := Sandboxes(SandboxConfig{Settings: settings.New(settings.NewMemStore(), nil, secret.NewRedactor()), Gate: gate,
			Seal: func(session.ID) []byte { return nil }})(t.Context(), session.State{Owner: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		if spec.Env["GIT_CONFIG_KEY_0"] != "safe.bareRepository" || spec.Env["GIT_CONFIG_VALUE_0"] != "explicit" || spec.Env["GIT_CONFIG_COUNT"] != "1" {
			t.Errorf("gate %v: %v", gate, spec.Env)
		}
	}
}
