// Package gemini speaks Google's Gemini API: thoughts with their signatures,
// parallel function calls, and errors in Google's shape.
package gemini

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"deckhand/internal/llm"
)

// Options are what is known of the model.
type Options struct {
	// Thinks says that the model thinks before it answers, and that its thoughts are wanted.
	Thinks bool
	// Window is its context window in tokens, 0 if it is not known.
	Window int64
}

// address is where the API is, unless the configuration says otherwise.
const address = "https://generativelanguage.googleapis.com"

// version is the version of the API, the only one that has all we use.
const version = "v1beta"

// noKey is sent where no key is needed: without one the SDK would take a key
// from the server's environment and send it to where a user points.
const noKey = "none"

type model struct {
	name    string
	options Options
	key     string
	base    string
	client  *http.Client
}

// New makes a model. name is what the provider calls it.
func New(c llm.Config, name string, o Options) llm.Model {
	m := &model{name: name, options: o, key: c.APIKey, client: c.Client}
	m.base = strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/"+version)
	if m.base == "" {
		m.base = address
	}
	if m.client == nil {
		m.client = http.DefaultClient
	}
	return m
}

// Stream implements llm.Model.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		calling, cancel := context.WithCancel(ctx)
		defer cancel()
		calling, sent := llm.Sending(calling)
		line := &tap{next: m.client.Transport}
		a := &answer{model: m.name, window: m.options.Window}
		err := m.receive(calling, line, req, a, func(p llm.Part) bool { return yield(p, nil) })
		if errors.Is(err, errLeft) {
			return
		}
		if err := m.failure(ctx, err, line, a, sent()); err != nil {
			yield(llm.Part{}, err)
			return
		}
		yield(llm.Part{Done: a.done()}, nil)
	}
}

var (
	// errLeft says that nobody listens any more.
	errLeft = errors.New("the listener left")
	// errUnreadable says that an answer is not of the shape that the SDK takes for granted.
	errUnreadable = errors.New("the response is not in Gemini's format")
)

// receive makes the call and passes on what comes.
func (m *model) receive(ctx context.Context, line *tap, req llm.Request, a *answer, say func(llm.Part) bool) (err error) {
	listening := false // whose panic it is
	defer func() {
		// The SDK panics where a server writes a value of another type than it
		// expects. Users choose servers, so that must not end the process.
		if r := recover(); r != nil {
			if listening {
				panic(r)
			}
			err = errUnreadable
		}
	}()
	client, err := m.connect(ctx, line)
	if err != nil {
		return err
	}
	for chunk, err := range client.Models.GenerateContentStream(ctx, m.name, contents(m.name, req.Messages), m.config(req)) {
		if err != nil {
			return err
		}
		for _, part := range a.add(chunk) {
			listening = true
			wanted := say(part)
			listening = false
			if !wanted {
				return errLeft
			}
		}
	}
	return nil
}

// connect makes the SDK's client for one call. All that it would otherwise take
// from the environment is set. It tries nothing again unless told to.
func (m *model) connect(ctx context.Context, line *tap) (*genai.Client, error) {
	key := m.key
	if key == "" {
		key = noKey
	}
	client := *m.client
	client.Transport = line
	return genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: &client,
		HTTPOptions: genai.HTTPOptions{BaseURL: m.base, APIVersion: version},
	})
}
