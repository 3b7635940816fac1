package doctor

import (
	"context"
	"errors"
	"fmt"

	"deckhand/api"
	"deckhand/internal/advice"
	"deckhand/internal/llm/connect"
	"deckhand/internal/outbound"
	"deckhand/internal/provider"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
)

// Settings is where the settings of users are.
type Settings interface {
	settings.Store
	secret.KeyStore
}

// ModelOf says whose stored model is tested.
type ModelOf struct {
	User    string
	DataDir string
	Models  connect.Connector
	Reach   outbound.Policy
}

// StoredModel tests the stored model of a user in the same way as the server.
func (r *Report) StoredModel(ctx context.Context, db Settings, m ModelOf) error {
	keyring, err := secret.ReadKeyring(ctx, m.DataDir, r.MasterKey, db)
	if err != nil && !errors.Is(err, secret.ErrUnused) {
		return advice.With(err, "check the database")
	}
	client := outbound.NewClient(m.Reach, 0)
	defer client.CloseIdleConnections()
	known := &provider.Models{Settings: settings.New(db, keyring, secret.NewRedactor()), Client: client, Connector: m.Models}
	found, err := known.Test(ctx, m.User, api.TestModel{})
	if errors.Is(err, settings.ErrNotFound) {
		return advice.With(fmt.Errorf("user %s has no stored settings", m.User), "choose another user with --user, or log in as this user and choose a model")
	}
	if err != nil {
		return advice.With(err, "correct the model in Settings, Models")
	}
	r.Model(found)
	return nil
}
