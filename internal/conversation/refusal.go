package conversation

import (
	"errors"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Kind groups refusals by what the caller can do about them.
type Kind int

// The kinds.
const (
	Invalid  Kind = iota + 1 // the command itself is wrong: Fields say where
	Unmet                    // settings, a key, a price, a model or a repository is missing
	NotFound                 // there is no such conversation for this user
	Conflict                 // the conversation does not allow it now, or its id is taken
	TooMany                  // asked too often, or the queue is full: Rate or RetryAfter says when to ask again
)

// Refusal says why a command is not carried out. Nothing was stored. Code is one of the codes in package api, and Text a
// sentence for people.
type Refusal struct {
	Kind Kind
	Code string
	Text string
	// Fields are the wrong fields of an Invalid command, as the HTTP API names them.
	Fields []api.FieldError
	// Rate or RetryAfter is set for TooMany.
	Rate       *access.Decision
	RetryAfter time.Duration
	// Own are the files that the user changed too, for a restore that was refused because of them.
	Own *workspace.OwnFiles
}

func (r *Refusal) Error() string { return r.Text }

// Sentence makes a sentence of a text that elsewhere stands after a colon.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func refuse(k Kind, code, text string) *Refusal { return &Refusal{Kind: k, Code: code, Text: text} }

// RefusalOf is the one table from errors to refusals. It returns nil for an error that is not a refusal but a fault of the
// server.
func RefusalOf(err error) *Refusal {
	var refused *Refusal
	var invalid *api.ValidationError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &invalid):
		return &Refusal{Kind: Invalid, Code: api.CodeBadRequest, Text: invalid.Error(), Fields: invalid.Detail}
	case errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrDeleted):
		return refuse(NotFound, api.CodeConversationNotFound, "Conversation not found")
	case errors.Is(err, session.ErrRefused):
		return refuse(Conflict, api.CodeConversationRefused,
			"Not possible in the current state: "+strings.TrimPrefix(err.Error(), session.ErrRefused.Error()+": ")+".")
	}
	return nil
}
