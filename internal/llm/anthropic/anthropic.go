// Package anthropic is the adapter for Anthropic's messages API, with prompt caching,
// thinking with signatures, and parallel tool calls.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"deckhand/internal/llm"
)

// Options are the properties of the model.
type Options struct {
	// Thinks lets the model think before its response and between tool calls.
	Thinks bool
	// Effort is how much the model thinks: low, medium or high; "" for the default.
	Effort string
	// Budget is the maximum number of thinking tokens for models with such a limit; 0 is
	// half of the response. It is part of Request.MaxOutput.
	Budget int64
	// Window is the context window in tokens, 0 if unknown.
	Window int64
	// Cloud serves the model at Endpoint, and Client authorizes the requests; "" for the API of Anthropic.
	Cloud    Cloud
	Endpoint string
}

// Cloud is a cloud that serves Anthropic's models, by its version of the API.
type Cloud string

// The clouds.
const (
	Bedrock Cloud = "bedrock-2023-05-31"
	Vertex  Cloud = "vertex-2023-10-16"
)

// address is the default base URL of the API.
const address = "https://api.anthropic.com/"

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
	m.base = strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/v1")
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
		a := answer{model: m.name, window: m.options.Window, calling: req.Calling}
		response, err := m.send(calling, req)
		if response != nil {
			defer response.Body.Close()
		}
		if err == nil {
			for e, broken := range events(response) {
				if err = broken; err != nil {
					break
				}
				for _, part := range a.add(e) {
					if !yield(part, nil) {
						return
					}
				}
				if a.ended {
					break
				}
			}
		}
		if err := m.failure(ctx, err, response, &a, sent()); err != nil {
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

// longestRefusal is the maximum size of an error body in bytes.
const longestRefusal = 1 << 20

// send sends a request. An error response is returned with a *refusal.
func (m *model) send(ctx context.Context, req llm.Request) (*http.Response, error) {
	at, err := m.endpoint()
	if err != nil {
		return nil, err
	}
	body, header := m.request(req)
	response, err := llm.Post(ctx, m.client, at, header, body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		said, _ := io.ReadAll(io.LimitReader(response.Body, longestRefusal)) // a truncated body is good enough
		return response, &refusal{said}
	}
	return response, nil
}

func (m *model) endpoint() (string, error) {
	if m.options.Endpoint != "" {
		return m.options.Endpoint, nil
	}
	at, err := url.Parse(m.base)
	if err != nil {
		return "", err
	}
	at.Path, at.RawPath = strings.TrimRight(at.Path, "/")+"/", ""
	if at, err = at.Parse("v1/messages"); err != nil {
		return "", err
	}
	return at.String(), nil
}

// known are the event types of a response. Others are newer, or keep-alives.
var known = map[string]bool{
	"message_start": true, "message_delta": true, "message_stop": true,
	"content_block_start": true, "content_block_delta": true, "content_block_stop": true,
}

// events returns the events of a response.
func events(response *http.Response) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		for frame, err := range llm.Events(response.Body) {
			var e event
			switch {
			case err != nil:
			case frame.Type == "error":
				err = &refusal{frame.Data}
			case known[frame.Type]:
				err = read(frame.Data, &e)
			default:
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// read decodes an event. Values of an unexpected type are skipped: one odd field is no
// reason to lose a response.
func read(data []byte, e *event) error {
	err := json.Unmarshal(data, e)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return nil
	}
	return err
}
