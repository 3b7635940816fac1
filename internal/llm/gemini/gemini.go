// Package gemini is the adapter for Google's Gemini API, with signed thoughts, parallel
// function calls, and errors in Google's format.
package gemini

import (
	"context"
	"iter"
	"net/http"
	"strings"

	"deckhand/internal/llm"
)

// Options are the properties of the model.
type Options struct {
	// Thinks is set if the model thinks before its response and its thoughts are wanted.
	Thinks bool
	// Effort is how much the model thinks: low, medium or high; "" for the default.
	Effort string
	// Window is the context window in tokens, 0 if unknown.
	Window int64
	// Vertex is the URL of the publisher's models at Vertex AI, where Client authorizes the requests; "" for the Gemini API.
	Vertex string
}

// address is the default base URL of the API.
const address = "https://generativelanguage.googleapis.com"

// version is the version of the API, the only one with all features that we use.
const version = "v1beta"

type model struct {
	name    string
	options Options
	key     string
	base    string
	client  *http.Client
}

// New returns a model. name is the provider's name for it.
func New(c llm.Config, name string, o Options) llm.Model {
	m := &model{name: name, options: o, key: c.APIKey, client: c.Client}
	m.base = strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/"+version)
	if m.base == "" {
		m.base = address
	}
	return m
}

// Stream implements llm.Model.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		calling, cancel := context.WithCancel(ctx)
		defer cancel()
		calling, sent := llm.Sending(calling)
		a := &answer{model: m.name, window: m.options.Window}
		response, err := m.send(calling, req)
		if response != nil {
			defer response.Body.Close()
		}
		if err == nil {
			for c, broken := range chunks(response.Body) {
				if err = broken; err != nil {
					break
				}
				for _, part := range a.add(c) {
					if !yield(part, nil) {
						return
					}
				}
			}
		}
		if err := m.failure(ctx, err, response, a, sent()); err != nil {
			yield(llm.Part{}, err)
			return
		}
		yield(llm.Part{Done: a.done()}, nil)
	}
}
