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

// HookEvent is what a delivery tells, whoever sent it.
type HookEvent struct {
	// Name is what the provider calls it, for the record.
	Name string
	Kind HookKind
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

// HookKind is what happened, as far as it matters.
type HookKind int

// The kinds.
const (
	Other     HookKind = iota // nothing that could start anything
	Commented                 // somebody said something
	Opened                    // an issue is there
	Edited                    // an issue reads otherwise
	Labelled                  // an issue was given a label
)

// HookTime reads a time in one of the forms that providers write. What it cannot
// read is no time: it is there for one check only.
func HookTime(text string) time.Time {
	for _, form := range []string{time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05-0700"} {
		if t, err := time.Parse(form, text); err == nil && t.Year() > 1 {
			return t
		}
	}
	return time.Time{}
}

// Present leaves out names that are missing.
func Present(names ...string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return strings.TrimSpace(n) == "" })
}

// HubSigned checks a signature of the body in one of the headers: hexadecimal,
// with the name of the hash before it or without. SHA-1 is not good enough.
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
