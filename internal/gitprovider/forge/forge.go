// Package forge opens any git provider by the name it has in the settings. It
// alone knows all adapters, and finds out what a host speaks of which only the
// address is known.
package forge

import (
	"context"
	"fmt"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/bitbucket"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/gitea"
	"deckhand/internal/gitprovider/github"
	"deckhand/internal/gitprovider/gitlab"
)

// adapters by the name of a provider. Forgejo speaks what Gitea speaks.
var adapters = map[string]func(call.Options) gitprovider.Provider{
	"github": github.New, "gitlab": gitlab.New, "bitbucket": bitbucket.New, "gitea": gitea.New, "forgejo": gitea.New,
}

// Open makes the provider that the settings call so. For enterprise_sso, a git
// host behind the organisation's sign-on, the host is asked what it is, unless
// it was within the last hour; nothing else here waits for anybody. It fails
// with a *gitprovider.Error, or with the context's error.
func Open(ctx context.Context, provider string, o call.Options) (gitprovider.Provider, error) {
	return open(ctx, hosts, provider, o)
}

func open(ctx context.Context, m *memory, provider string, o call.Options) (gitprovider.Provider, error) {
	o.Name = provider
	adapter := provider
	if provider == "enterprise_sso" {
		flavour, err := m.flavour(ctx, o)
		if err != nil {
			return nil, err
		}
		adapter = flavour
	}
	open, ok := adapters[adapter]
	if !ok {
		return nil, &gitprovider.Error{
			Reason: gitprovider.Unsupported, Provider: provider, Host: o.Host, Message: fmt.Sprintf("%q is not a git provider that is known here.", provider),
		}
	}
	return open(o), nil
}
