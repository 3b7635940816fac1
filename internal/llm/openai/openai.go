// Package openai is the adapter for OpenAI's two APIs: chat completions, which many other
// servers support (Azure, vLLM, Ollama, LiteLLM, OpenRouter), and responses, which keep a
// model's reasoning between requests.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"deckhand/internal/llm"
)

// home is OpenAI's base URL.
const home = "https://api.openai.com/v1"

// azureVersion is the default API version of Azure deployments.
const azureVersion = "2024-10-21"

// Options are the differences of a provider from OpenAI.
type Options struct {
	// Thinks is set if the model reasons before its response.
	Thinks bool
	// Effort is the reasoning effort ("low", "high"); "" for the provider's default.
	Effort string
	// Compatible is set for OpenAI-compatible servers of others: the limit is sent as
	// max_tokens, and fields that only OpenAI supports are omitted.
	Compatible bool
	// Azure is set for Azure: the key is sent in another header, and chat has the model
	// in the path unless the URL ends with /openai/v1.
	Azure      bool
	APIVersion string
	// Headers are sent with each request.
	Headers map[string]string
	// Window is the model's context window, for Usage.
	Window int64
}

// wire is shared by both APIs.
type wire struct {
	name    string
	opts    Options
	own     bool // it is OpenAI itself
	client  *http.Client
	base    string // the folder of the API
	query   string // of every request, with its question mark
	header  http.Header
	secrets []string // must not appear in messages
	err     error    // why no request can be made
}

func newWire(c llm.Config, name string, o Options, azurePath string) wire {
	w := wire{name: name, opts: o, client: c.Client, own: !o.Compatible && !o.Azure}
	if c.APIKey != "" {
		w.secrets = append(w.secrets, c.APIKey)
	}
	for _, v := range o.Headers {
		if len(v) >= 8 {
			w.secrets = append(w.secrets, v)
		}
	}
	base, query, err := address(c.BaseURL, o, azurePath)
	if err != nil {
		w.err = err
		return w
	}
	w.base, w.header = base.String(), http.Header{}
	if len(query) > 0 {
		w.query = "?" + query.Encode()
	}
	switch {
	case c.APIKey != "" && o.Azure:
		w.header.Set("Api-Key", c.APIKey)
	case c.APIKey != "":
		w.header.Set("Authorization", "Bearer "+c.APIKey)
	}
	for k, v := range o.Headers {
		w.header.Set(k, v)
	}
	return w
}

// address returns the base URL and the query of requests.
func address(base string, o Options, azurePath string) (*url.URL, url.Values, error) {
	if base == "" {
		if o.Azure {
			return nil, nil, errors.New("an Azure model needs the URL of its resource as base URL")
		}
		base = home
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, nil, errors.New("the base URL must be an http or https URL")
	}
	query := u.Query()
	u.RawQuery, u.Fragment = "", ""
	u.Path = strings.TrimSuffix(u.Path, "/")
	if o.Azure && !strings.HasSuffix(u.Path, "/openai/v1") && !strings.Contains(u.Path, "/openai/deployments/") {
		u.Path = strings.TrimSuffix(u.Path, "/openai") + azurePath
	}
	if o.Azure && !query.Has("api-version") {
		switch {
		case o.APIVersion != "":
			query.Set("api-version", o.APIVersion)
		case !strings.HasSuffix(u.Path, "/openai/v1"):
			query.Set("api-version", azureVersion)
		}
	}
	for name, values := range query {
		query[name] = values[:1]
	}
	return u, query, nil
}

// refusal is a response that is not a stream.
type refusal struct {
	status int
	header http.Header
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("HTTP %d", r.status) }

// maxRefusal is the maximum size of an error body.
const maxRefusal = 64 << 10

// onlyStreams returns a response that is a stream, and a *refusal for any other.
func onlyStreams(res *http.Response) (*http.Response, error) {
	var err error
	var body []byte
	kind := strings.ToLower(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode < 300 && strings.HasPrefix(kind, "application/json"):
		var stream *http.Response
		if stream, body, err = unrolled(res); stream != nil {
			return stream, nil
		}
	case res.StatusCode < 300 && !strings.HasPrefix(kind, "text/html"):
		return res, nil
	default:
		body, err = readSome(res)
	}
	if err != nil && len(body) == 0 {
		return nil, err
	}
	return nil, &refusal{status: res.StatusCode, header: res.Header, body: body}
}

// answer is one call in progress.
type answer struct {
	wire
	ctx   context.Context
	sent  func() bool // whether the request can have left
	yield func(llm.Part, error) bool
	began bool
	// calling is the request's.
	calling func(tool string)
	// stopped is set when the consumer has stopped.
	stopped bool
}

// say yields a part and reports whether to continue.
func (a *answer) say(p llm.Part) bool {
	a.began = true
	a.stopped = a.stopped || !a.yield(p, nil)
	return !a.stopped
}

// call says that a call of a tool begins.
func (a *answer) call(tool string) {
	if a.calling != nil && tool != "" {
		a.calling(tool)
	}
}

// fail ends the response with an error.
func (a *answer) fail(err error) {
	if a.stopped {
		return
	}
	a.stopped = true
	var e *llm.Error
	if errors.As(err, &e) {
		e.Unsent = !a.sent()
	}
	if cause := a.ctx.Err(); cause != nil {
		err = cause
	}
	a.yield(llm.Part{}, err)
}

// whole returns arguments in the form that the port promises.
func whole(args string) json.RawMessage {
	if strings.TrimSpace(args) == "" {
		return json.RawMessage("{}")
	}
	if isObject([]byte(args)) {
		return json.RawMessage(args)
	}
	text, _ := json.Marshal(args)
	return text
}
