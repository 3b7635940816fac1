package profile

import (
	"context"
	"fmt"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/connect"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// override puts what the person chose for a conversation in the place of the
// settings. One that was delegated goes by what was chosen for those above it.
func (b *Builder) override(ctx context.Context, st session.State, s *settings.Settings) error {
	chosen := st.Overrides
	for up := st; up.Created.Parent != ""; {
		var err error
		if up, err = b.Sessions.Load(ctx, up.Created.Parent); err != nil {
			return err
		}
		chosen = chosen.Over(up.Overrides)
	}
	if chosen.Limited {
		dollars := chosen.Budget.Dollars()
		s.MaxBudgetPerTask = &dollars
	}
	if chosen.Model == "" {
		return nil
	}
	// The settings may have changed since it was chosen: a key never goes to another host.
	if why := b.otherModel(*s, chosen.Model); why != "" {
		return &agent.ProfileError{ID: "STATUS$ERROR", Reason: why}
	}
	s.LLMModel = &chosen.Model
	return nil
}

// otherModel implements httpapi.Models.Other: it says why a conversation cannot go on with
// a model in place of the one in the settings.
func (m *Models) otherModel(s settings.Settings, model string) string {
	now := m.Config(s)
	then := now
	then.Model = model
	if _, err := m.Connector.Open(then); err != nil {
		return secret.NewMasker(s.SecretValues()...).String(err.Error())
	}
	if m.keyGoesElsewhere(now, then) {
		return fmt.Sprintf("%s has another provider than %s, which the llm_api_key in the settings belongs to. Choose a model of the same provider, or change the settings.", model, now.Model)
	}
	if then.APIKey == "" && then.NeedsKey() {
		return fmt.Sprintf("%s needs an llm_api_key. Store one in the settings.", model)
	}
	return ""
}

// keyGoesElsewhere is true if the key of one configuration would be sent to another host with
// the other.
func (m *Models) keyGoesElsewhere(now, then llm.Config) bool {
	to := connect.Address(then, m.Connector.Catalogue)
	return now.APIKey != "" && to != "" && to != connect.Address(now, m.Connector.Catalogue)
}
