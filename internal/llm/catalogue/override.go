package catalogue

import (
	"errors"
	"fmt"
	"math"
	"net/url"

	"deckhand/internal/llm"
)

// Override is an operator's entry for a model in the config file. Omitted fields keep the
// known values. Prices are in US dollars per million tokens, and 0 is a price.
type Override struct {
	Window    *int64 `yaml:"window"`
	MaxOutput *int64 `yaml:"max_output"`
	// Tools is native or text.
	Tools  string `yaml:"tools"`
	Images *bool  `yaml:"images"`
	Thinks *bool  `yaml:"thinks"`
	API    API    `yaml:"api"`
	// BaseURL is the base URL for users without a llm_base_url.
	BaseURL string `yaml:"base_url"`

	Input      *float64 `yaml:"input"`
	Output     *float64 `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`
	CacheWrite *float64 `yaml:"cache_write"`
}

// Check returns what is wrong with an override, for its author.
func (o Override) Check() error {
	for name, n := range map[string]*int64{"window": o.Window, "max_output": o.MaxOutput} {
		if n != nil && (*n < 1 || *n > math.MaxInt32) {
			return fmt.Errorf("%s must be a number of tokens, 1 or more", name)
		}
	}
	if o.Tools != "" && o.Tools != "native" && o.Tools != "text" {
		return errors.New("tools must be native or text")
	}
	switch o.API {
	case "", Chat, Responses, Anthropic, Gemini:
	default:
		return errors.New("api must be chat, responses, anthropic or gemini")
	}
	if o.BaseURL != "" {
		if u, err := url.Parse(o.BaseURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("base_url must start with http:// or https://")
		}
	}
	return o.checkPrice()
}

func (o Override) checkPrice() error {
	if (o.Input == nil) != (o.Output == nil) {
		return errors.New("a price needs both input and output (0 is allowed)")
	}
	for _, p := range []*float64{o.Input, o.Output, o.CacheRead, o.CacheWrite} {
		if p != nil && (!(*p >= 0) || math.IsInf(*p, 0)) {
			return errors.New("input, output, cache_read and cache_write must be amounts in dollars, 0 or more")
		}
	}
	if o.Input == nil && (o.CacheRead != nil || o.CacheWrite != nil) {
		return errors.New("a cache price also needs input and output")
	}
	return nil
}

// Price returns the price in the override; false if there is none. Omitted cache prices
// are treated as unknown.
func (o Override) Price(model string) (llm.Price, bool) {
	if o.Input == nil || o.Output == nil {
		return llm.Price{}, false
	}
	p := uncached(model, *o.Input, *o.Output)
	if o.CacheRead != nil {
		p.CacheRead = *o.CacheRead
	}
	if o.CacheWrite != nil {
		p.CacheWrite = *o.CacheWrite
	}
	return p, true
}

func (o Override) apply(model string, i *llm.Info) {
	if o.Window != nil {
		i.Window = *o.Window
	}
	if o.MaxOutput != nil {
		i.MaxOutput = *o.MaxOutput
	}
	if o.Tools != "" {
		i.Tools = o.Tools == "native"
	}
	if o.Images != nil {
		i.Images = *o.Images
	}
	if o.Thinks != nil {
		i.Thinks = *o.Thinks
	}
	if p, ok := o.Price(model); ok {
		i.Price, i.Priced = p, true
	}
}
