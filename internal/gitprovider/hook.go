package gitprovider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Thread is an issue or a pull request.
type Thread struct {
	Repository string
	Pull       bool
	Number     int
}

// HookEvent is the content of a webhook request.
type HookEvent struct {
	// Name is the provider's name for it, for the record.
	Name string
	Kind HookKind
	Thread
	Title, URL string
	// Text is the text of the issue or the comment.
	Text string
	// Labels are all labels of the issue, and Label the new one, if the provider sends
	// it.
	Labels []string
	Label  string
	// Actors are the names of the user who caused the event. The first is for display;
	// all are unique at the provider, so that no one can impersonate another user.
	Actors []string
	// Wrote is true if the actor wrote the text.
	Wrote bool
	// Branch is the branch of a pull request, if it is known and in the same repository.
	Branch string
	// At is when it happened, or zero if unknown.
	At time.Time
}

// HookKind is the kind of event.
type HookKind int

// The kinds.
const (
	Other     HookKind = iota // ignored
	Commented                 // new comment
	Opened                    // new issue
	Edited                    // changed issue
	Labelled                  // new label
)

// HookTime parses a time in one of the providers' formats. It returns the zero time if it
// cannot.
func HookTime(text string) time.Time {
	for _, form := range []string{time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05-0700"} {
		if t, err := time.Parse(form, text); err == nil && t.Year() > 1 {
			return t
		}
	}
	return time.Time{}
}

// Present removes empty names.
func Present(names ...string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return strings.TrimSpace(n) == "" })
}

// HubSigned checks the signature of the body in one of the headers: hexadecimal, with or
// without the name of the hash. SHA-1 is not accepted.
func HubSigned(names ...string) func(http.Header, []byte, string) bool {
	return func(h http.Header, body []byte, secret string) bool {
		for _, name := range names {
			given, err := hex.DecodeString(strings.TrimPrefix(h.Get(name), "sha256="))
			if err != nil || len(given) != sha256.Size {
				continue
			}
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write(body)
			return hmac.Equal(given, mac.Sum(nil))
		}
		return false
	}
}
