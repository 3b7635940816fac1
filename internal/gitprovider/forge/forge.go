// Package forge opens any git provider by its name in the settings. It is the only
// package that knows all adapters, and it detects the kind of an unknown host.
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

// adapters are the git providers in display order; the first is the default. Add new ones
// here.
var adapters = []call.Adapter{github.Adapter, gitlab.Adapter, bitbucket.Adapter, signOn, gitea.Adapter, gitea.Forgejo}

// signOn is a git host of any kind behind the organisation's single sign-on.
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

// Register adds a provider from another package. It must be called before any provider is
// opened.
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

// Open returns the provider with this name. It blocks only to detect the kind of a host, at
// most once an hour. The error is a *gitprovider.Error, or the context's error.
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
