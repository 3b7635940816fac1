// Package catalogue knows models before they are called: their window, what they
// can do, what they cost and where their provider answers. The data is compiled
// in; the operator's config file wins over it. What nobody said stays unknown: a
// price is never guessed, because money limits rest on it.
package catalogue

import (
	"slices"
	"strings"
	"sync"

	"deckhand/internal/llm"
)

// builtIn are the models of the script that comes with Deckhand, first in every menu.
var builtIn = []string{"scripted/demo", "scripted/slow"}

// Catalogue answers questions about models. It may be used by many goroutines.
type Catalogue struct {
	overrides map[string]Override // by model in lower case
	index     func() *index       // made at the first question
}

// New makes a catalogue. Overrides are by model, in any case.
func New(overrides map[string]Override) *Catalogue {
	c := &Catalogue{overrides: map[string]Override{}, index: embeddedIndex}
	for model, o := range overrides {
		c.overrides[strings.ToLower(model)] = o
	}
	return c
}

// embeddedIndex is the same for all catalogues, and made once. Until somebody
// asks, it costs nothing.
var embeddedIndex = sync.OnceValue(makeIndex)

// Info is what is known of a model, named as in the settings and in any case. Of
// a model that nobody knows it says that it has tools, and nothing else.
func (c *Catalogue) Info(model string) llm.Info {
	info := c.known(model)
	if o, ok := c.Override(model); ok {
		o.apply(model, &info)
	}
	return info
}

// Override is what the operator said of the model.
func (c *Catalogue) Override(model string) (Override, bool) {
	o, ok := c.overrides[strings.ToLower(strings.TrimSpace(model))]
	return o, ok
}

// known is Info without the operator.
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

// Names lists the models that can be chosen by name: the built-in ones first,
// then the others in order, those that only the operator named among them.
func (c *Catalogue) Names() []string {
	idx := c.index()
	names := make([]string, 0, len(idx.entries)+len(c.overrides))
	for _, e := range idx.entries {
		provider, _, _ := strings.Cut(e.name, "/")
		if p := idx.providers[provider]; p.API != "" {
			names = append(names, e.name)
		}
	}
	for model := range c.overrides {
		provider, name := Split(model)
		if _, listed := idx.exact[provider+"/"+name]; !listed && !slices.Contains(builtIn, model) {
			names = append(names, model)
		}
	}
	slices.Sort(names)
	return slices.Insert(names, 0, builtIn...)
}

// Provider is where and how the provider of this name answers. One that is not
// known, or that no adapter speaks to, is false.
func (c *Catalogue) Provider(name string) (Provider, bool) {
	name = canonicalProvider(name)
	if p, ok := more[name]; ok {
		return p, true
	}
	p, ok := c.index().providers[name]
	return p, ok && p.API != ""
}
