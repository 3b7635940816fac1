package gitaccess

import (
	"context"
	"errors"
	"net/http"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/forge"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// Forges opens git providers with the tokens that users have stored.
type Forges struct {
	Settings *settings.Service
	Sessions *session.Sessions
	Client   *http.Client // checks every address it dials
	// Public is the address at which people find this server; "" if they do not.
	Public func() string
}

// Page is where people read a conversation, "" if they cannot.
func (f *Forges) Page(id session.ID) string {
	public := f.Public()
	if public == "" {
		return ""
	}
	return public + "/conversations/" + string(id)
}

// Open opens a provider with a token.
func Open(ctx context.Context, client *http.Client, provider string, t settings.ProviderToken) (gitprovider.Provider, error) {
	return forge.Open(ctx, provider, call.Options{Client: client, Token: t.Token.Reveal(), Host: t.Host, Name: provider})
}

// Open opens a provider with the user's stored token, or anonymously if there is none.
func (f *Forges) Open(ctx context.Context, user, provider string) (gitprovider.Provider, error) {
	var t settings.ProviderToken
	err := f.Settings.Read(ctx, user, func(s *settings.Settings) { t = s.ProviderTokens[provider] })
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return nil, err
	}
	return Open(ctx, f.Client, provider, t)
}

// Tokens are what a user has stored for git providers, by their names.
func Tokens(st settings.Settings) map[string]gitprovider.Token {
	out := map[string]gitprovider.Token{}
	for name, t := range st.ProviderTokens {
		out[name] = gitprovider.Token{Token: t.Token.Reveal(), Host: t.Host}
	}
	return out
}

// NoTokenError says that a user has stored no token for a provider.
type NoTokenError struct{ Provider string }

func (e *NoTokenError) Error() string {
	return "No token is stored for " + e.Provider + ". Store one in the settings."
}

// Stored opens a provider with the token that a user stored for it, and
// says for which host that is. Without a token nothing can be answered there.
func (f *Forges) Stored(ctx context.Context, user, provider string) (gitprovider.Provider, string, error) {
	var t settings.ProviderToken
	err := f.Settings.Read(ctx, user, func(s *settings.Settings) { t = s.ProviderTokens[provider] })
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return nil, "", err
	}
	if t.Token.IsZero() {
		return nil, "", &NoTokenError{Provider: provider}
	}
	opened, err := Open(ctx, f.Client, provider, t)
	return opened, t.Host, err
}

// Whoami implements trigger.Integrations.Whoami. Where names are not
// unique, it is the account's id.
func (f *Forges) Whoami(ctx context.Context, user, provider string) (host, name string, err error) {
	opened, host, err := f.Stored(ctx, user, provider)
	if err != nil {
		return "", "", err
	}
	me, err := opened.User(ctx)
	at := gitprovider.Describe(provider)
	if site, bad := gitprovider.Site(provider, host); at.UsersByID && bad == nil && site.Host == at.Host {
		return host, me.ID, err
	}
	return host, me.Login, err
}
