// Package forge opens any git provider by the name it has in the settings. It
// alone knows all adapters, and finds out what a host speaks of which only the
// address is known.
package forge

import (
	"context"
	"fmt"
	"slices"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/bitbucket"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/gitea"
	"deckhand/internal/gitprovider/github"
	"deckhand/internal/gitprovider/gitlab"
)

// adapters are the git providers, in the order in which they are listed; the first
// is the default. This is where one is added.
var adapters = []call.Adapter{github.Adapter, gitlab.Adapter, bitbucket.Adapter, signOn, gitea.Adapter, gitea.Forgejo}

// signOn is a git host of any kind behind the organisation's sign-on.
var signOn = call.Adapter{Descriptor: gitprovider.Descriptor{
	Name: "enterprise_sso", Title: "Enterprise SSO", Phrase: "the git host", Founding: true, Generic: true,
	Terms: gitprovider.Terms{Request: "pull request", Short: "PR", Checks: "CI jobs", Mark: "#"},
	Tool:  "create_pr",
	Credentials: func(token string, _ bool) []string {
		return []string{"Bearer " + token, gitprovider.Basic("oauth2:" + token)}
	},
}}

func init() {
	for _, a := range adapters {
		gitprovider.Register(a.Descriptor)
	}
}

// Register adds a provider that is made elsewhere. It is called before anything is opened.
func Register(a call.Adapter) {
	gitprovider.Register(a.Descriptor)
	adapters = append(adapters, a)
}

func adapter(name string) (call.Adapter, bool) {
	i := slices.IndexFunc(adapters, func(a call.Adapter) bool { return a.Name == name })
	if i < 0 {
		return call.Adapter{}, false
	}
	return adapters[i], true
}

// Open makes the provider that the settings call so. A host of any kind is asked
// what it is, unless it was within the last hour; nothing else here waits for anybody. It fails
// with a *gitprovider.Error, or with the context's error.
func Open(ctx context.Context, provider string, o call.Options) (gitprovider.Provider, error) {
	return open(ctx, hosts, provider, o)
}

func open(ctx context.Context, m *memory, provider string, o call.Options) (gitprovider.Provider, error) {
	o.Name = provider
	found, ok := adapter(provider)
	if ok && found.Generic {
		flavour, err := m.flavour(ctx, o)
		if err != nil {
			return nil, err
		}
		found, ok = adapter(flavour)
	}
	if !ok {
		return nil, &gitprovider.Error{
			Reason: gitprovider.Unsupported, Provider: provider, Host: o.Host, Message: fmt.Sprintf("%q is not a git provider that is known here.", provider),
		}
	}
	return found.New(o), nil
}
