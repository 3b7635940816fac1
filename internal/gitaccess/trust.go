package gitaccess

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// pushTime bounds how long a git provider may take to say who may push.
const pushTime = 10 * time.Second

// RepositoryName is how settings name the repository of a conversation, "" if it
// has none or it is not known where it is.
func RepositoryName(c session.Created, s settings.Settings) string {
	return s.RepositoryAt(c.Address, c.Provider, c.Repository)
}

// CustomSecrets are those that a session's sandbox gets: none if its repository
// is not trusted, and those that are limited to repositories only there.
func CustomSecrets(st session.State, s settings.Settings) map[string]settings.CustomSecret {
	out := map[string]settings.CustomSecret{}
	if !st.Trusts() {
		return out
	}
	repository := RepositoryName(st.Created, s)
	for name, c := range s.CustomSecrets {
		if c.For(repository) {
			out[name] = c
		}
	}
	return out
}

// Trust finds out whether repositories are trusted.
type Trust struct {
	Sessions *session.Sessions
	Settings *settings.Service
	Client   *http.Client // checks every address it dials
	Logger   *slog.Logger
}

// Spec rates the repository each time before a sandbox is started: rights change.
func (t *Trust) Spec(next func(ctx context.Context, st session.State) (sandbox.Spec, error)) func(ctx context.Context, st session.State) (sandbox.Spec, error) {
	return func(ctx context.Context, st session.State) (sandbox.Spec, error) {
		st, err := t.rate(ctx, st)
		if err != nil {
			return sandbox.Spec{}, err
		}
		return next(ctx, st)
	}
}

// rate records whether the session's repository is trusted.
func (t *Trust) rate(ctx context.Context, st session.State) (session.State, error) {
	if st.Created.Repository == "" || st.Created.Parent != "" || st.Trust.Reason == session.TrustByUser {
		return st, nil
	}
	s, err := t.Settings.Get(ctx, st.Owner)
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return st, err
	}
	found := t.judge(ctx, st, s)
	return t.Sessions.Update(ctx, st.ID, func(s session.State) ([]session.Payload, error) { return s.SetTrust(found) })
}

func (t *Trust) judge(ctx context.Context, st session.State, s settings.Settings) session.TrustSet {
	c := st.Created
	switch {
	case c.Trusted:
		return session.TrustSet{Trusted: true, Reason: session.TrustByUser}
	case c.Outside != "":
		return session.TrustSet{Reason: session.TrustOutside}
	case s.Trusts(RepositoryName(c, s)):
		return session.TrustSet{Trusted: true, Reason: session.TrustByList}
	case c.Provider == "" || c.Address != "" || s.ProviderTokens[c.Provider].Token.IsZero():
		return session.TrustSet{Reason: session.TrustUnknown} // pushing is impossible
	}
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	forge, err := Open(ctx, t.Client, c.Provider, s.ProviderTokens[c.Provider])
	may := false
	if err == nil {
		may, err = gitprovider.CanPush(ctx, forge, c.Repository, "")
	}
	switch reason := gitprovider.ReasonOf(err); {
	case err == nil && may:
		return session.TrustSet{Trusted: true, Reason: session.TrustByPush}
	case err == nil, reason == gitprovider.NotFound, reason == gitprovider.Scope, reason == gitprovider.BadToken:
		return session.TrustSet{Reason: session.TrustNoPush}
	case st.Trust.Reason == session.TrustByPush: // as far as is known
		return st.Trust
	}
	t.Logger.Info("cannot determine who can push to a repository", "session", st.ID, "error", err)
	return session.TrustSet{Reason: session.TrustUnknown}
}
