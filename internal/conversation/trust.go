package conversation

import (
	"context"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// Trust is the command to trust the repository of a conversation, or not to.
type Trust struct {
	User    string
	ID      session.ID
	Trusted bool
}

// SetTrust marks the repository in the user's settings and in the conversation. If the second fails, the first holds all the
// same from the next start on. Work that outsiders asked for changes the conversation alone.
func (s *Service) SetTrust(ctx context.Context, c Trust) (session.State, error) {
	if _, err := s.Row(ctx, c.User, c.ID); err != nil {
		return session.State{}, err
	}
	st, err := s.Sessions.Load(ctx, c.ID)
	if err != nil {
		return session.State{}, err
	}
	if st.Created.Repository == "" {
		return session.State{}, refuse(Conflict, api.CodeConflict, "The conversation has no repository.")
	}
	err = s.Settings.Change(ctx, c.User, func(stored *settings.Settings) error {
		name := stored.RepositoryAt(st.Created.Address, st.Created.Provider, st.Created.Repository)
		if name != "" && st.Created.Outside == "" {
			stored.Trust(name, c.Trusted)
		}
		return nil
	})
	if err != nil {
		return session.State{}, err
	}
	return s.change(ctx, c.User, c.ID, func(st session.State) ([]session.Payload, error) {
		return st.SetTrust(session.TrustSet{Trusted: c.Trusted, Reason: session.TrustByUser})
	})
}
