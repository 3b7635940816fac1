package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/workspace"
)

// family is the shape of a route's errors: clients of the conversation routes
// expect another body than the rest.
type family int

const (
	plain family = iota
	conversation
	bare // just the sentence, as a JSON string
)

// fault is an error that knows its answer.
type fault struct {
	status int
	code   string
	msg    string
	// body replaces the family's shape where the contract has another.
	body   any
	header http.Header
}

func (f *fault) Error() string { return f.msg }

func fail(status int, code, msg string) *fault { return &fault{status: status, code: code, msg: msg} }

// notFound is the answer for an unknown conversation and for somebody else's alike.
func notFound() *fault { return translate(session.ErrNotFound) }

// statuses are those of refusals.
var statuses = map[usecase.Kind]int{
	usecase.Invalid: http.StatusUnprocessableEntity, usecase.Unmet: http.StatusBadRequest, usecase.NotFound: http.StatusNotFound,
	usecase.Conflict: http.StatusConflict, usecase.TooMany: http.StatusTooManyRequests,
}

// faultOf is the one place where a refusal of a use case becomes an HTTP answer.
func faultOf(r *usecase.Refusal) *fault {
	if r.Rate != nil {
		return tooMany(*r.Rate, r.Text)
	}
	f := fail(statuses[r.Kind], r.Code, r.Text)
	if r.Kind == usecase.Invalid {
		f.body = &api.ValidationError{Detail: r.Fields}
	}
	return f
}

// translate is the one table from errors to statuses. What it does not know is
// "internal": logged in full where it is caught, told to nobody.
func translate(err error) *fault {
	var f *fault
	var argument *access.InvalidError
	var unavailable *sandbox.Unavailable
	var keys *access.TooManyKeysError
	if errors.As(err, &f) {
		return f
	}
	if r := usecase.RefusalOf(err); r != nil {
		return faultOf(r)
	}
	switch {
	case errors.As(err, &argument):
		return translate(api.Invalid("value_error", sentence(argument.Msg), argument.Field))
	case errors.Is(err, session.ErrCorrupt):
		return fail(http.StatusInternalServerError, api.CodeInternal,
			"The conversation's log is damaged. The operator can check and repair it with deckhand doctor CONVERSATION_ID. You can also delete the conversation.")
	case errors.Is(err, settings.ErrNotFound):
		return fail(http.StatusNotFound, api.CodeSettingsNotFound, "Settings not found")
	case errors.Is(err, access.ErrUnauthorized):
		return unauthorized()
	case errors.Is(err, access.ErrNotFound):
		return fail(http.StatusNotFound, api.CodeNotFound, "Not found")
	case errors.Is(err, access.ErrLastAdmin), errors.Is(err, access.ErrNotAdmin), errors.Is(err, access.ErrUserDisabled), errors.Is(err, access.ErrExists):
		return fail(http.StatusConflict, api.CodeConflict, err.Error())
	case errors.As(err, &keys):
		return fail(http.StatusConflict, api.CodeConflict, sentence(keys.Error()))
	case errors.As(err, &unavailable):
		return fail(http.StatusServiceUnavailable, api.CodeSandbox, unavailable.Reason)
	case errors.Is(err, workspace.ErrNone):
		return fail(http.StatusNotFound, api.CodeNoWorkspace, "Runtime not yet initialized")
	case errors.Is(err, sandbox.ErrUnseen):
		return fail(http.StatusConflict, api.CodeWorkspaceStopped, "The workspace can only be read while the conversation is running. Start the conversation and try again.")
	case errors.Is(err, sandbox.ErrGone), errors.Is(err, sandbox.ErrLost):
		return fail(http.StatusServiceUnavailable, api.CodeSandbox, "The sandbox ended during the request. Try again.")
	case errors.Is(err, context.DeadlineExceeded):
		return fail(http.StatusServiceUnavailable, api.CodeUnavailable, "The request timed out. Try again.")
	case errors.Is(err, context.Canceled):
		return fail(499, api.CodeUnavailable, "The client closed the connection.")
	}
	var w interface{ Unwritable() string }
	if errors.As(err, &w) { // the store says what is wrong with the disk
		return fail(http.StatusInsufficientStorage, api.CodeUnavailable, w.Unwritable())
	}
	return fail(http.StatusInternalServerError, api.CodeInternal, "Internal server error. The operator can find the details in the server log under this request ID.")
}

// sentence is for texts that elsewhere stand after a colon.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func unauthorized() *fault {
	return &fault{status: http.StatusUnauthorized, code: api.CodeUnauthorized, msg: "Unauthorized", body: api.Unauthorized{Detail: "Unauthorized"}}
}

// write sends the fault in the family's shape.
func (f *fault) write(w http.ResponseWriter, fam family) {
	for name, values := range f.header {
		w.Header()[name] = values
	}
	body, msg := f.body, strings.ToValidUTF8(f.msg, "\ufffd") // it may quote what the client sent
	switch {
	case body != nil:
	case fam == conversation:
		body = api.ConversationError{Status: "error", Message: msg, MsgID: f.code}
	case fam == bare:
		body = msg
	default:
		body = api.Problem{Error: msg, MsgID: f.code}
	}
	writeJSON(w, f.status, body)
}
