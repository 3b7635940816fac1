package trigger

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
)

// event is what a delivery tells, whoever sent it.
type event struct {
	// Name is what the provider calls it, for the record.
	Name string
	Kind kind
	Thread
	Title, URL string
	// Text is what was written: the issue's own text, or the comment.
	Text string
	// Labels are those that the issue has, and Label the one it was given just now,
	// if the provider says which.
	Labels []string
	Label  string
	// Actors are the names of who did it. The first is for people; all are unique
	// at the provider, so that nobody can pass for somebody else.
	Actors []string
	// Wrote is true if the actor wrote the text.
	Wrote bool
	// Branch is that of a pull request, if it is known and in the same repository.
	Branch string
	// At is when it happened; zero if that is not said.
	At time.Time
}

// kind is what happened, as far as it matters.
type kind int

const (
	other     kind = iota // nothing that could start anything
	commented             // somebody said something
	opened                // an issue is there
	edited                // an issue reads otherwise
	labelled              // an issue was given a label
)

// reader makes sense of what one provider sends.
type reader struct {
	name func(h http.Header) string
	// ids are the headers that name a delivery, best first.
	ids    []string
	signed func(h http.Header, body []byte, secret string) bool
	read   func(name string, payload []byte) (event, error)
}

var readers = map[string]reader{
	"github": {name: header("X-Github-Event"), ids: []string{"X-Github-Delivery"}, signed: hubSigned("X-Hub-Signature-256"), read: readHub},
	"gitlab": {name: header("X-Gitlab-Event"), ids: []string{"Idempotency-Key", "Webhook-Id", "X-Gitlab-Event-Uuid"}, signed: labSigned, read: readLab},
	// X-Hook-UUID is that of the hook, and the same for every delivery.
	"bitbucket": {name: header("X-Event-Key"), ids: []string{"X-Request-Uuid", "X-Request-Id"}, signed: hubSigned("X-Hub-Signature"), read: readBucket},
	"gitea":     {name: header("X-Gitea-Event"), ids: []string{"X-Gitea-Delivery"}, signed: hubSigned("X-Gitea-Signature", "X-Hub-Signature-256"), read: readHub},
	"forgejo": {name: header("X-Forgejo-Event", "X-Gitea-Event"), ids: []string{"X-Forgejo-Delivery", "X-Gitea-Delivery"},
		signed: hubSigned("X-Forgejo-Signature", "X-Gitea-Signature", "X-Hub-Signature-256"), read: readHub},
}

// Providers are the ones that can be integrated, in order.
func Providers() []string { return []string{"github", "gitlab", "bitbucket", "gitea", "forgejo"} }

// Known is true for one of them.
func Known(provider string) bool { return slices.Contains(Providers(), provider) }

func header(names ...string) func(http.Header) string {
	return func(h http.Header) string {
		for _, n := range names {
			if v := h.Get(n); v != "" {
				return v
			}
		}
		return ""
	}
}

// parse reads a delivery. Who wrote it may have chosen every byte of the texts.
func (r reader) parse(h http.Header, body []byte) (event, error) {
	name := clip(r.name(h), 100)
	payload, err := unwrap(h, body)
	if err != nil {
		return event{Name: name}, err
	}
	e, err := r.read(name, payload)
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

func decode[T any](payload []byte) (v T, err error) {
	err = json.Unmarshal(payload, &v)
	return v, err
}

// clock reads a time in one of the forms that providers write. What it cannot
// read is no time: it is there for one check only.
func clock(text string) time.Time {
	for _, form := range []string{time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05-0700"} {
		if t, err := time.Parse(form, text); err == nil && t.Year() > 1 {
			return t
		}
	}
	return time.Time{}
}

// named leaves out names that are missing.
func named(names ...string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return strings.TrimSpace(n) == "" })
}

// clip shortens a text to so many bytes, at a whole character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
