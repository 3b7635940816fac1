// Package catalogue knows the properties of models: context window, features, price and
// the URL of their provider. The data is compiled in, and the operator's config file
// overrides it. Missing values stay unknown: a price is never guessed, because budgets
// depend on it.
package catalogue

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"deckhand/internal/llm"
)

// builtIn are the built-in scripted models, first in every list.
var builtIn = []string{"scripted/demo", "scripted/slow"}

// Catalogue looks up models. It is safe for concurrent use.
type Catalogue struct {
	overrides atomic.Pointer[map[string]Override] // by model in lower case
	index     func() *index                       // built on first use
}

// New returns a catalogue. Overrides are by model, ignoring case.
func New(overrides map[string]Override) *Catalogue {
	c := &Catalogue{index: embeddedIndex}
	c.Replace(overrides)
	return c
}

// Replace replaces the overrides.
func (c *Catalogue) Replace(overrides map[string]Override) {
	lower := make(map[string]Override, len(overrides))
	for model, o := range overrides {
		lower[strings.ToLower(model)] = o
	}
	c.overrides.Store(&lower)
}

// embeddedIndex is shared by all catalogues and created on first use.
var embeddedIndex = sync.OnceValue(makeIndex)

// Info returns what is known about a model, named as in the settings, ignoring case. An
// unknown model is assumed to have tools, and nothing else.
func (c *Catalogue) Info(model string) llm.Info {
	info := c.known(model)
	if o, ok := c.Override(model); ok {
		o.apply(model, &info)
	}
	return info
}

// Override returns the operator's override of a model.
func (c *Catalogue) Override(model string) (Override, bool) {
	o, ok := (*c.overrides.Load())[strings.ToLower(strings.TrimSpace(model))]
	return o, ok
}

// known is Info without overrides.
func (c *Catalogue) known(model string) llm.Info {
	provider, name := Split(model)
	switch provider {
	case "scripted", "cassette": // a script and a recording cost nothing
		return llm.Info{Window: 1_000_000, Priced: true, Tools: true, Images: true}
	}
	e, ok := c.index().find(provider, strings.ToLower(name))
	if !ok {
		return llm.Info{Tools: true}
	}
	return e.info()
}

// Names lists the models: the built-in ones first, then all others sorted, including
// those of the operator.
func (c *Catalogue) Names() []string {
	idx := c.index()
	names := make([]string, 0, len(idx.entries)+len(*c.overrides.Load()))
	for _, e := range idx.entries {
		provider, _, _ := strings.Cut(e.name, "/")
		if p := idx.providers[provider]; p.API != "" {
			names = append(names, e.name)
		}
	}
	for model := range *c.overrides.Load() {
		provider, name := Split(model)
		if _, listed := idx.exact[provider+"/"+name]; !listed && !slices.Contains(builtIn, model) {
			names = append(names, model)
		}
	}
	slices.Sort(names)
	return slices.Insert(names, 0, builtIn...)
}

// ProviderName returns the provider of a model, or "other" if it is unknown, so that the number of names is
// bounded whatever users type.
func (c *Catalogue) ProviderName(model string) string {
	provider, _ := Split(model)
	if _, known := c.Provider(provider); known || provider == "scripted" || provider == "cassette" {
		return provider
	}
	return "other"
}

// Provider returns how to reach a provider; false if it is unknown or has no adapter.
func (c *Catalogue) Provider(name string) (Provider, bool) {
	name = canonicalProvider(name)
	if p, ok := more[name]; ok {
		return p, true
	}
	p, ok := c.index().providers[name]
	return p, ok && p.API != ""
}
