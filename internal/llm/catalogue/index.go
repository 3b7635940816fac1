package catalogue

import (
	"regexp"
	"strings"

	"charm.land/catwalk/pkg/catwalk"

	"deckhand/internal/llm"
)

// index is the compiled-in data, reduced to what is asked for: the library's own
// form of it takes several times the memory.
type index struct {
	entries   []entry
	providers map[string]Provider
	exact     map[string]int32 // by provider/name in lower case
	// families find a model by its name without a date. Of several the dearest
	// counts, so that a limit on money holds whichever is meant.
	families map[string]int32
}

// entry is one model of one provider.
type entry struct {
	name          string // provider/name, as the provider spells it
	price         llm.Price
	window, limit int32
	priced        bool
	images        bool
	thinks        bool
}

func (e entry) info() llm.Info {
	return llm.Info{Window: int64(e.window), MaxOutput: int64(e.limit), Price: e.price, Priced: e.priced, Tools: true, Images: e.images, Thinks: e.thinks}
}

// makeIndex reads the embedded lists. Nothing of them is kept but what entries hold.
func makeIndex() *index {
	lists := readLists()
	n := 0
	for _, p := range lists {
		n += len(p.Models)
	}
	idx := &index{entries: make([]entry, 0, n), providers: make(map[string]Provider, len(lists)), exact: make(map[string]int32, n), families: map[string]int32{}}
	for _, p := range lists {
		idx.add(p)
	}
	return idx
}

func (x *index) add(p catwalk.Provider) {
	provider := canonicalProvider(string(p.ID))
	x.providers[provider] = providerOf(p)
	for _, m := range p.Models {
		e := entry{name: provider + "/" + m.ID, window: int32(m.ContextWindow), limit: int32(m.DefaultMaxTokens), images: m.SupportsImages, thinks: m.CanReason}
		e.price, e.priced = priceOf(provider, m)
		x.entries = append(x.entries, e)
		at := int32(len(x.entries) - 1)
		x.exact[strings.ToLower(e.name)] = at
		key := provider + "/" + family(strings.ToLower(m.ID))
		if other, ok := x.families[key]; !ok || dearer(e, x.entries[other]) {
			x.families[key] = at
		}
	}
}

// providerOf says how to reach a provider. Those that want a login of their own have
// no API here.
func providerOf(p catwalk.Provider) Provider {
	address := p.APIEndpoint
	if strings.HasPrefix(address, "$") { // the adapter's own
		address = ""
	}
	if p.ID == catwalk.InferenceProviderCopilot {
		return Provider{}
	}
	switch p.Type {
	case catwalk.TypeAnthropic:
		return Provider{Anthropic, address}
	case catwalk.TypeGoogle:
		return Provider{Gemini, address}
	case catwalk.TypeBedrock:
		return Provider{Bedrock, ""}
	case catwalk.TypeVertexAI:
		return Provider{Vertex, "https://aiplatform.googleapis.com"}
	}
	return Provider{Chat, address}
}

// priceOf reads a model's price. The lists write 0 for what they do not know, so
// 0 is a price only where the name says so. Their two cache fields are not used
// alike by all of them: what costs less than the input is for reading, what
// costs more for writing. What is missing costs as much as it can.
func priceOf(provider string, m catwalk.Model) (llm.Price, bool) {
	if m.CostPer1MIn <= 0 || m.CostPer1MOut <= 0 {
		return llm.Price{}, strings.HasSuffix(m.ID, ":free")
	}
	p := uncached(provider+"/"+m.ID, m.CostPer1MIn, m.CostPer1MOut)
	for _, cached := range []float64{m.CostPer1MInCached, m.CostPer1MOutCached} {
		switch {
		case cached > p.Input:
			p.CacheWrite = cached
		case cached > 0:
			p.CacheRead = cached
		}
	}
	return p, true
}

// uncached is a price of which the cache's part is not known: reading is not taken
// to be cheaper, and writing costs what it costs with the vendor that asks extra.
func uncached(model string, input, output float64) llm.Price {
	p := llm.Price{Input: input, Output: output, CacheRead: input, CacheWrite: input}
	if model = strings.ToLower(model); strings.HasPrefix(model, "anthropic/") || strings.Contains(model, "claude") {
		p.CacheWrite = input * 1.25
	}
	return p
}

func dearer(a, b entry) bool {
	if a.priced != b.priced {
		return b.priced && !a.priced // not knowing is dearer than any price
	}
	return a.price.Input+a.price.Output > b.price.Input+b.price.Output
}

var (
	// regional are what a cloud puts before a vendor's name.
	regional = regexp.MustCompile(`^(?:(?:us|eu|apac|jp|au|ca|global|us-gov)\.)?(anthropic|openai|deepseek|moonshot|minimax)\.`)
	// version is what a cloud puts behind it, and dated what vendors do.
	version = regexp.MustCompile(`-v\d+(?::\d+)?$`)
	dated   = regexp.MustCompile(`[-@](?:20\d{6}|20\d\d-\d\d-\d\d|latest)$`)
	dotted  = regexp.MustCompile(`(\d)\.(\d)`)
)

// family is a name without what tells two issues of one model apart.
func family(name string) string {
	// Most names have none of these, and looking for a few bytes is cheaper than an expression.
	if strings.Contains(name, "-v") {
		name = version.ReplaceAllString(name, "")
	}
	if strings.Contains(name, "20") || strings.HasSuffix(name, "latest") {
		name = dated.ReplaceAllString(name, "")
	}
	if strings.Contains(name, ".") {
		name = dotted.ReplaceAllString(name, "$1-$2")
	}
	return name
}

// find looks for a model. The name is in lower case.
func (x *index) find(provider, name string) (entry, bool) {
	if e, ok := x.listed(provider, name); ok {
		return e, true
	}
	e, ok := x.routed(name)
	if !resellers[provider] {
		e.price, e.priced = llm.Price{}, false
	}
	return e, ok
}

// listed looks in the provider's own list, and then in the market's.
func (x *index) listed(provider, name string) (entry, bool) {
	if at, ok := x.exact[provider+"/"+name]; ok {
		return x.entries[at], true
	}
	at, own := x.families[provider+"/"+family(name)]
	seller := provider
	if n, ok := marketNames[provider]; ok {
		seller = n
	}
	if !own {
		at, ok := x.families[market+"/"+seller+"/"+family(name)]
		if !ok || provider == market {
			return entry{}, false
		}
		e := x.entries[at]
		e.price, e.priced = llm.Price{}, false // the market's, not the provider's
		return e, true
	}
	e := x.entries[at]
	// Issues of one model may differ in price, and the market may know this one.
	if there, ok := x.exact[market+"/"+seller+"/"+name]; ok && e.priced && dearer(x.entries[there], e) && x.entries[there].priced {
		e.price = x.entries[there].price
	}
	return e, true
}

// routed looks for a vendor's model behind the name of another provider: vendor/model,
// vendor.model as clouds write it, or the model alone.
func (x *index) routed(name string) (entry, bool) {
	for rest := name; rest != ""; _, rest, _ = strings.Cut(rest, "/") {
		vendor, model, ok := strings.Cut(rest, "/")
		if !ok {
			break
		}
		if e, ok := x.listed(canonicalProvider(vendor), model); ok {
			return e, true
		}
	}
	last := name[strings.LastIndex(name, "/")+1:]
	if m := regional.FindStringSubmatch(last); m != nil {
		return x.listed(m[1], strings.TrimPrefix(last, m[0]))
	}
	for _, vendor := range vendors {
		if at, ok := x.families[vendor+"/"+family(last)]; ok {
			if exact, ok := x.exact[vendor+"/"+last]; ok {
				at = exact
			}
			return x.entries[at], true
		}
	}
	return entry{}, false
}
