// Package connect opens the model in a user's settings: it chooses the API, the URL and
// the provider's name for the model, and works around missing features. It is the only
// package that knows all adapters.
package connect

import (
	"net/url"
	"strings"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/anthropic"
	"deckhand/internal/llm/cassette"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/cloud"
	"deckhand/internal/llm/gemini"
	"deckhand/internal/llm/openai"
	"deckhand/internal/llm/scripted"
	"deckhand/internal/llm/texttools"
)

// Connector opens models.
type Connector struct {
	Catalogue *catalogue.Catalogue
	// Cassettes are the cassettes for cassette/NAME; "" for none.
	Cassettes cassette.Dir
	// Redact hides secrets before requests are compared with a cassette; nil hides
	// nothing.
	Redact func(string) string
	// Silence is how long a server may send nothing before a call is aborted; 0 for no
	// limit.
	Silence time.Duration
	// Tokens keeps the access tokens of Google Cloud; nil asks for one with each call.
	Tokens *Tokens
}

// Tokens keeps access tokens of Google Cloud.
type Tokens = cloud.Tokens

// Open opens a model without cassettes.
func Open(c llm.Config, cat *catalogue.Catalogue) (llm.Model, error) {
	return Connector{Catalogue: cat}.Open(c)
}

// Open returns the model without sending anything. If it cannot be reached, the error is
// an *llm.UnavailableError.
func (o Connector) Open(c llm.Config) (llm.Model, error) {
	switch c.Provider() {
	case "scripted":
		if m := scripted.New(c.Model); m != nil {
			return m, nil
		}
		return nil, &llm.UnavailableError{Model: c.Model, Reason: "the built-in ones are " + strings.Join(scripted.Models, " and ") + "."}
	case "cassette":
		_, name, _ := strings.Cut(c.Model, "/")
		return o.Cassettes.Open(name, o.Redact)
	}
	r, err := route(c, o.Catalogue)
	if err != nil {
		return nil, err
	}
	info := o.Catalogue.Info(c.Model)
	c.Client = attentive(c.Client, o.Silence)
	m, err := r.open(c, info, o.Tokens)
	if err != nil {
		return nil, err
	}
	if !info.Tools {
		m = texttools.Wrap(m)
	}
	return fit(m, info, r.strict()), nil
}

// Address returns the URL to which the key would be sent, or "". Providers whose URL is
// inside an adapter are returned by name.
func Address(c llm.Config, cat *catalogue.Catalogue) string {
	switch c.Provider() {
	case "", "scripted", "cassette":
		return ""
	}
	r, err := route(c, cat)
	if err != nil {
		return ""
	}
	u, err := url.Parse(r.address)
	if err != nil || u.Host == "" {
		return r.provider
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// BaseURL returns the URL below which the model's API is; "" if the adapter knows it or there is none. chat reports
// whether it is OpenAI-compatible.
func BaseURL(c llm.Config, cat *catalogue.Catalogue) (address string, chat bool) {
	r, err := route(c, cat)
	if err != nil {
		return "", false
	}
	return r.address, r.api == catalogue.Chat || r.api == catalogue.Responses
}

// way is how to reach a model.
type way struct {
	provider string // as the catalogue calls it
	name     string // as the provider calls the model
	api      catalogue.API
	address  string // "" for the adapter's own
}

// route finds the way. The user's URL takes precedence over the operator's, and that over
// the provider's default.
func route(c llm.Config, cat *catalogue.Catalogue) (way, error) {
	_, asked, _ := strings.Cut(strings.TrimSpace(c.Model), "/")
	w := way{address: c.BaseURL}
	w.provider, w.name = catalogue.Split(c.Model)
	if !strings.Contains(c.Model, "/") && c.BaseURL != "" { // a self-hosted server has its own names
		w.name, asked = c.Model, c.Model
	}
	if w.provider == "" || w.name == "" {
		return w, &llm.UnavailableError{Model: c.Model}
	}
	override, _ := cat.Override(c.Model)
	if w.address == "" {
		w.address = override.BaseURL
	}
	known, ok := cat.Provider(w.provider)
	switch {
	case w.address == "" && (!ok || needsAddress[w.provider] != ""):
		return w, &llm.UnavailableError{Model: c.Model, Reason: needsAddress[w.provider]}
	case w.address == "":
		w.address = known.Address
	}
	w.address = w.spelled()
	switch {
	case override.API != "":
		w.api = override.API
	case asked != w.name, w.provider == "openai" && w.own() && reasons(w.name):
		w.api = catalogue.Responses
	case ok:
		w.api = known.API
	default:
		w.api = catalogue.Chat
	}
	return w, nil
}

// needsAddress says why a provider needs a base URL.
var needsAddress = map[string]string{
	"azure":         "set the base URL to that of your Azure resource, such as https://NAME.openai.azure.com; the model is azure/ and the deployment name.",
	"litellm_proxy": "set the base URL to that of your LiteLLM proxy.",
	"openhands":     "set the base URL to that of the proxy that your OpenHands key belongs to.",
	"bedrock":       "set the base URL to that of your region, such as https://bedrock-runtime.us-east-1.amazonaws.com.",
}

// NeedsBaseURL says why a provider needs a base URL, "" if it has one.
func NeedsBaseURL(provider string) string { return needsAddress[provider] }

// spelled completes the URL: Ollama's tools omit the path of its OpenAI-compatible API.
func (w way) spelled() string {
	u, err := url.Parse(w.address)
	if w.provider == "ollama" && err == nil && strings.Trim(u.Path, "/") == "" {
		return u.JoinPath("v1").String()
	}
	return w.address
}

// own reports whether the server is OpenAI itself.
func (w way) own() bool {
	u, err := url.Parse(w.address)
	return w.address == "" || err == nil && strings.EqualFold(u.Hostname(), "api.openai.com")
}

// reasons reports whether a model of OpenAI loses its reasoning between chat completions.
func reasons(name string) bool {
	name = strings.ToLower(name)
	for _, family := range []string{"o1", "o3", "o4", "gpt-5", "codex"} {
		if strings.HasPrefix(name, family) {
			return true
		}
	}
	return false
}

// compatible reports whether the server is OpenAI-compatible, but not OpenAI.
func (w way) compatible() bool {
	return w.provider != "azure" && (w.provider != "openai" || !w.own())
}

// strict reports whether the provider accepts only call IDs in its own format. Others
// accept any ID.
func (w way) strict() bool {
	switch w.api {
	case catalogue.Anthropic, catalogue.Bedrock:
		return true
	case catalogue.Vertex:
		return w.claude()
	}
	return w.api != catalogue.Gemini && !w.compatible()
}

// open returns the adapter.
func (w way) open(c llm.Config, info llm.Info, tokens *cloud.Tokens) (llm.Model, error) {
	c.BaseURL = w.address
	if !info.Thinks { // models that do not reason refuse it
		c.Effort = ""
	}
	o := openai.Options{Effort: c.Effort, Thinks: info.Thinks, Window: info.Window, Azure: w.provider == "azure", Compatible: w.compatible()}
	switch w.api {
	case catalogue.Anthropic:
		return anthropic.New(c, w.name, anthropic.Options{Thinks: info.Thinks, Effort: c.Effort, Window: info.Window}), nil
	case catalogue.Gemini:
		return gemini.New(c, w.name, gemini.Options{Thinks: info.Thinks, Effort: c.Effort, Window: info.Window}), nil
	case catalogue.Bedrock:
		return w.bedrock(c, info, o)
	case catalogue.Vertex:
		return w.vertex(c, info, o, tokens)
	case catalogue.Responses:
		return openai.Responses(c, w.name, o), nil
	}
	return openai.Chat(c, w.name, o), nil
}
