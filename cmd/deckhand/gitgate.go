package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"deckhand/internal/agent"
	"deckhand/internal/gitgate"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// gitSite is a git host that a user has a token for.
type gitSite struct {
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

// gitSites are those with a token, in a fixed order.
func gitSites(s settings.Settings) []gitSite {
	var out []gitSite
	for _, provider := range settings.Providers {
		token := s.ProviderTokens[provider].Token
		if site, ok := siteOf(s, provider); ok && !token.IsZero() {
			out = append(out, gitSite{site, provider, token})
		}
	}
	return out
}

// gitEnvironment adds to env what makes git inside find the gate. Without a
// sandbox there is no proxy either: git goes where it always went.
func gitEnvironment(env map[string]string, s settings.Settings, h hands) map[string]string {
	if h.name == host.Name {
		return env
	}
	var sites []gitgate.Site
	for _, held := range gitSites(s) {
		sites = append(sites, held.Site)
	}
	return gitgate.Environment(env, sites, fmt.Sprintf("http://127.0.0.1:%d", sandbox.ProxyPort))
}

// gitGrants says what git in a sandbox may do with the tokens of whom it belongs
// to. It reads the settings each time, so a token that was taken away opens
// nothing from then on.
func gitGrants(sessions *session.Sessions, all *settings.Service) func(ctx context.Context, id string, site gitgate.Site) (gitgate.Grant, error) {
	return func(ctx context.Context, id string, site gitgate.Site) (gitgate.Grant, error) {
		st, ok := sessions.Peek(session.ID(id))
		if !ok {
			var err error
			if st, err = sessions.Load(ctx, session.ID(id)); err != nil {
				return gitgate.Grant{}, err
			}
		}
		s, err := all.Get(ctx, st.Owner)
		if errors.Is(err, settings.ErrNotFound) || st.Deleted || st.Confined() {
			return gitgate.Grant{}, gitgate.ErrNoToken
		}
		if err != nil {
			return gitgate.Grant{}, err
		}
		return gitGrant(st.Created, s, site)
	}
}

func gitGrant(c session.Created, s settings.Settings, site gitgate.Site) (gitgate.Grant, error) {
	var found *gitSite
	for _, held := range gitSites(s) {
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

// upToDate gives sandboxes whose environment is what the settings say now, for
// everything that is started in them from then on.
type upToDate struct {
	agent.Workspaces
	sessions *session.Sessions
	spec     func(ctx context.Context, st session.State) (sandbox.Spec, error)

	mu   sync.Mutex
	told map[session.ID]told
}

// told is what a sandbox was told of its environment over a connection.
type told struct {
	box *sandbox.Sandbox
	env map[string]string
}

// Use implements agent.Workspaces.
func (u *upToDate) Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error) {
	box, release, err := u.Workspaces.Use(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if err := u.tell(ctx, id, box); err != nil {
		release()
		return nil, nil, err
	}
	return box, release, nil
}

func (u *upToDate) tell(ctx context.Context, id session.ID, box *sandbox.Sandbox) error {
	st, err := u.sessions.Load(ctx, id)
	if err != nil {
		return err
	}
	spec, err := u.spec(ctx, st)
	if err != nil {
		return err
	}
	u.mu.Lock()
	last := u.told[id]
	same := last.box == box && maps.Equal(last.env, spec.Env)
	u.mu.Unlock()
	if same {
		return nil
	}
	if _, err := box.Remember(ctx, spec.Secrets); err != nil {
		return err
	}
	if err := box.SetEnv(ctx, spec.Env); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told == nil {
		u.told = map[session.ID]told{}
	}
	u.told[id] = told{box, spec.Env}
	return nil
}

// forget drops what is known of a session that is gone.
func (u *upToDate) forget(id session.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.told, id)
}
