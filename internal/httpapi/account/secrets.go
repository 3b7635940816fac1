package account

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/settings"
)

func (d *Handlers) listSecrets(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.Secrets, error) {
	out := api.Secrets{CustomSecrets: []api.SecretInfo{}}
	err := d.Settings.Read(ctx, c.Who.User, func(s *settings.Settings) {
		for _, name := range slices.Sorted(maps.Keys(s.CustomSecrets)) {
			secret := s.CustomSecrets[name]
			out.CustomSecrets = append(out.CustomSecrets, api.SecretInfo{Name: name, Description: rest.OrNull(secret.Description),
				Repositories: append([]string{}, secret.Repositories...), Warning: secret.Unmasked()})
		}
	})
	if errors.Is(err, settings.ErrNotFound) {
		err = nil
	}
	return out, err
}

func (d *Handlers) createSecret(ctx context.Context, c *rest.Call, _ rest.None, b api.CreateSecret) (api.SecretCreated, error) {
	if d.Redact != nil {
		d.Redact(b.Value)
	}
	out := api.SecretCreated{Message: "Secret created successfully"}
	err := d.Settings.Change(ctx, c.Who.User, func(s *settings.Settings) error {
		err := s.AddSecret(b.Name, b.Value, b.Description.Value, b.Repositories)
		out.Warning = s.CustomSecrets[b.Name].Unmasked()
		return err
	})
	return out, secretFault(err, "", b.Name)
}

// secretPath names a custom secret: its name is its id.
type secretPath struct {
	ID string `path:"secret_id" maxLength:"128"`
}

func (d *Handlers) editSecret(ctx context.Context, c *rest.Call, p secretPath, b api.EditSecret) (api.Done, error) {
	err := d.Settings.Change(ctx, c.Who.User, func(s *settings.Settings) error {
		return s.EditSecret(p.ID, b.Name, b.Description, b.Repositories)
	})
	return api.Done{Message: "Secret updated successfully"}, secretFault(err, p.ID, b.Name)
}

func (d *Handlers) deleteSecret(ctx context.Context, c *rest.Call, p secretPath, _ rest.None) (api.Done, error) {
	err := d.Settings.Change(ctx, c.Who.User, func(s *settings.Settings) error { return s.RemoveSecret(p.ID) })
	return api.Done{Message: "Secret deleted successfully"}, secretFault(err, p.ID, "")
}

// secretFault says it in the words that clients know: a name that is taken is a
// message, all else an error.
func secretFault(err error, id, name string) error {
	switch {
	case errors.Is(err, settings.ErrNoSecret):
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "Secret with ID "+id+" not found")
	case errors.Is(err, settings.ErrSecretExists):
		f := rest.Fail(http.StatusBadRequest, api.CodeConflict, "Secret "+name+" already exists")
		f.Body = struct {
			Message string `json:"message"`
			MsgID   string `json:"msg_id"`
		}{f.Msg, f.Code}
		return f
	}
	return err
}

func (*Handlers) resetSettings(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (api.Done, error) {
	return api.Done{}, rest.Fail(http.StatusGone, api.CodeNotFound, "Reset settings functionality has been removed.")
}
