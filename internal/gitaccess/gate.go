package gitaccess

import (
	"context"
	"errors"
	"fmt"

	"deckhand/internal/gitgate"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// heldSite is a git host that a user has a token for.
type heldSite struct {
	gitgate.Site
	provider string
	token    secret.Secret
}

// siteOf is where a provider is for this user.
func siteOf(s settings.Settings, provider string) (gitgate.Site, bool) {
	u, err := gitprovider.Site(provider, s.ProviderTokens[provider].Host)
	if err != nil {
		return gitgate.Site{}, false
	}
	return gitgate.Origin(u)
}

// sites are those with a token, in a fixed order.
func sites(s settings.Settings) []heldSite {
	var out []heldSite
	for _, provider := range gitprovider.Names() {
		token := s.ProviderTokens[provider].Token
		if site, ok := siteOf(s, provider); ok && !token.IsZero() {
			out = append(out, heldSite{site, provider, token})
		}
	}
	return out
}

// Environment adds to env what makes git in a sandbox find the gate.
func Environment(env map[string]string, s settings.Settings) map[string]string {
	var all []gitgate.Site
	for _, held := range sites(s) {
		all = append(all, held.Site)
	}
	return gitgate.Environment(env, all, fmt.Sprintf("http://127.0.0.1:%d", sandbox.ProxyPort))
}

// Grants returns what git in a sandbox may do with the tokens of the sandbox's owner. It reads
// the settings each time, so a removed token stops working at once.
func Grants(sessions *session.Sessions, all *settings.Service) func(ctx context.Context, id string, site gitgate.Site) (gitgate.Grant, error) {
	return func(ctx context.Context, id string, site gitgate.Site) (gitgate.Grant, error) {
		// What is in memory may be old: another server may have changed it.
		st, err := sessions.Load(ctx, session.ID(id))
		if err != nil {
			return gitgate.Grant{}, err
		}
		s, err := all.Get(ctx, st.Owner)
		if errors.Is(err, settings.ErrNotFound) || st.Deleted || st.Confined() {
			return gitgate.Grant{}, gitgate.ErrNoToken
		}
		if err != nil {
			return gitgate.Grant{}, err
		}
		return grant(st.Created, s, site)
	}
}

func grant(c session.Created, s settings.Settings, site gitgate.Site) (gitgate.Grant, error) {
	var found *heldSite
	for _, held := range sites(s) {
		if held.Site == site && (found == nil || held.provider == c.Provider) {
			found = &held
		}
	}
	if found == nil {
		return gitgate.Grant{}, gitgate.ErrNoToken
	}
	usual, _ := siteOf(settings.Settings{}, found.provider)
	g := gitgate.Grant{Credentials: gitgate.Credentials(found.provider, found.token.Reveal(), site != usual), Confined: c.Repository != ""}
	if own, ok := siteOf(s, c.Provider); c.Provider == "" || ok && own == site {
		g.Own = c.Repository
	}
	return g, nil
}
