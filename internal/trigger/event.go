package trigger

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"deckhand/internal/clip"
	"deckhand/internal/gitprovider"
)

// What webhooks tell, as gitprovider reads it.
type event = gitprovider.HookEvent

const (
	other     = gitprovider.Other
	commented = gitprovider.Commented
	opened    = gitprovider.Opened
	edited    = gitprovider.Edited
	labelled  = gitprovider.Labelled
)

// reader makes sense of what one provider sends.
type reader struct{ *gitprovider.Webhook }

// readerOf finds the reader of a provider.
func readerOf(provider string) (reader, bool) {
	d, _ := gitprovider.Find(provider)
	return reader{d.Webhook}, d.Webhook != nil
}

// Providers are the ones that can be integrated, in order.
func Providers() []string { return gitprovider.TriggerNames() }

// Known is true for one of them.
func Known(provider string) bool { return slices.Contains(Providers(), provider) }

// name is what the provider calls the event.
func (r reader) name(h http.Header) string {
	for _, n := range r.Events {
		if v := h.Get(n); v != "" {
			return v
		}
	}
	return ""
}

// parse reads a delivery. Who wrote it may have chosen every byte of the texts.
func (r reader) parse(h http.Header, body []byte) (event, error) {
	name := clip.Start(r.name(h), 100)
	payload, err := unwrap(h, body)
	if err != nil {
		return event{Name: name}, err
	}
	e, err := r.Read(name, payload)
	if e.Name == "" {
		e.Name = name
	}
	if err != nil || e.Kind == other {
		return event{Name: e.Name}, err
	}
	if !gitprovider.ValidRepository(e.Repository) || e.Number < 1 || len(e.Actors) == 0 {
		return event{Name: e.Name}, errors.New("repository, issue or user is missing")
	}
	return e, nil
}

// unwrap takes the JSON out of a form, which is what some providers send unless
// told otherwise.
func unwrap(h http.Header, body []byte) ([]byte, error) {
	if !strings.HasPrefix(h.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return body, nil
	}
	form, err := url.ParseQuery(string(body))
	return []byte(form.Get("payload")), err
}
