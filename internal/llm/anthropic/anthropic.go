// Package anthropic speaks Anthropic's messages API: prompt caching, thinking
// with its signatures, and parallel tool calls.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"deckhand/internal/llm"
)

// Options are what is known of the model.
type Options struct {
	// Thinks lets the model think before it answers and between tool calls.
	Thinks bool
	// Budget is how many tokens it may think at most, where the model takes such a
	// number; 0 is half of the answer. It is part of Request.MaxOutput.
	Budget int64
	// Window is its context window in tokens, 0 if it is not known.
	Window int64
}

// address is where the API is, unless the configuration says otherwise.
const address = "https://api.anthropic.com/"

type model struct {
	name     string
	options  Options
	key      string
	messages sdk.MessageService
}

// New makes a model. name is what the provider calls it.
func New(c llm.Config, name string, o Options) llm.Model {
	base := strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/v1")
	if base == "" {
		base = address
	}
	// Not the SDK's own client: that one would take keys and addresses from the
	// server's environment and send them to where a user points.
	opts := []option.RequestOption{option.WithBaseURL(base), option.WithMaxRetries(0)}
	if c.Client != nil {
		opts = append(opts, option.WithHTTPClient(c.Client))
	}
	if c.APIKey != "" {
		opts = append(opts, option.WithAPIKey(c.APIKey))
	}
	return &model{name: name, options: o, key: c.APIKey, messages: sdk.NewMessageService(opts...)}
}

// Stream implements llm.Model.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		calling, cancel := context.WithCancel(ctx)
		defer cancel()
		calling, sent := llm.Sending(calling)
		params, opts := m.request(req)
		var response *http.Response
		stream := m.messages.NewStreaming(calling, params, append(opts, option.WithResponseInto(&response))...)
		defer stream.Close()

		a := answer{model: m.name, window: m.options.Window}
		for !a.ended && stream.Next() {
			for _, part := range a.add(stream.Current()) {
				if !yield(part, nil) {
					return
				}
			}
		}
		if err := m.failure(ctx, stream.Err(), response, &a, sent()); err != nil {
			yield(llm.Part{}, err)
			return
		}
		for _, part := range a.rest() {
			if !yield(part, nil) {
				return
			}
		}
		yield(llm.Part{Done: a.done()}, nil)
	}
}
