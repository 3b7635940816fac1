// Package status is the one table from the errors of the product to HTTP answers.
package status

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/workspace"
)

// statuses are those of refusals.
var statuses = map[usecase.Kind]int{
	usecase.Invalid: http.StatusUnprocessableEntity, usecase.Unmet: http.StatusBadRequest, usecase.NotFound: http.StatusNotFound,
	usecase.Conflict: http.StatusConflict, usecase.TooMany: http.StatusTooManyRequests,
}

// OfRefusal is the one place where a refusal of a use case becomes an HTTP answer.
func OfRefusal(r *usecase.Refusal) *rest.Fault {
	if r.Rate != nil {
		return rest.TooMany(*r.Rate, r.Text)
	}
	if r.RetryAfter > 0 {
		return rest.Later(r.Code, r.Text, r.RetryAfter)
	}
	f := rest.Fail(statuses[r.Kind], r.Code, r.Text)
	if r.Kind == usecase.Invalid {
		f.Body = &api.ValidationError{Detail: r.Fields, MsgID: r.Code}
	}
	if r.Own != nil {
		f.Body = &api.RestoreConflict{Status: "error", Message: valid(r.Text), MsgID: r.Code, Files: validAll(r.Own.Files), Repositories: validAll(r.Own.Repositories), Count: r.Own.Count}
	}
	return f
}

// valid makes a text that may have names of files fit for JSON.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func validAll(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, valid(s))
	}
	return out
}

// clientClosed is the status of a request whose client has left. Only logs show it.
const clientClosed = 499

// For is Of for the response to a request with this context. If something else than this context was
// cancelled, the client is still waiting and is told to try again.
func For(ctx context.Context, err error) *rest.Fault {
	f := Of(err)
	if f.Status == clientClosed && ctx.Err() == nil {
		return rest.Unavailable("The request was interrupted. Try again.")
	}
	return f
}

// Of is the one table from errors to statuses. What it does not know is
// "internal": logged in full where it is caught, and not shown to clients.
func Of(err error) *rest.Fault {
	var f *rest.Fault
	var argument *access.InvalidError
	var unavailable *sandbox.Unavailable
	var keys *access.TooManyKeysError
	var down interface{ Unavailable() string }
	if errors.As(err, &f) {
		return f
	}
	if r := usecase.RefusalOf(err); r != nil {
		return OfRefusal(r)
	}
	switch {
	case errors.As(err, &argument):
		return Of(api.Invalid("value_error", usecase.Sentence(argument.Msg), argument.Field))
	case errors.Is(err, session.ErrCorrupt):
		return rest.Fail(http.StatusInternalServerError, api.CodeInternal,
			"The conversation's log is damaged. The operator can check and repair it with deckhand doctor CONVERSATION_ID. You can also delete the conversation.")
	case errors.Is(err, session.ErrNewer):
		return rest.Fail(http.StatusInternalServerError, api.CodeInternal,
			"A newer version of Deckhand has written to this conversation, and this server cannot read it. The operator must upgrade this server.")
	case errors.Is(err, settings.ErrNotFound):
		f := OfRefusal(usecase.NoSettings())
		f.Status = http.StatusNotFound // they are what was asked for; a use case that only needs them refuses with Unmet
		return f
	case errors.Is(err, access.ErrUnauthorized):
		return rest.Unauthorized()
	case errors.Is(err, access.ErrNotFound):
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "Not found")
	case errors.Is(err, access.ErrLastAdmin), errors.Is(err, access.ErrNotAdmin), errors.Is(err, access.ErrUserDisabled), errors.Is(err, access.ErrExists):
		return rest.Fail(http.StatusConflict, api.CodeConflict, err.Error())
	case errors.As(err, &keys):
		return rest.Fail(http.StatusConflict, api.CodeConflict, usecase.Sentence(keys.Error()))
	case errors.As(err, &unavailable):
		return rest.Fail(http.StatusServiceUnavailable, api.CodeSandbox, unavailable.Reason)
	case errors.Is(err, workspace.ErrNone):
		return rest.Fail(http.StatusNotFound, api.CodeNoWorkspace, "Runtime not yet initialized")
	case errors.Is(err, sandbox.ErrUnseen):
		return rest.Fail(http.StatusConflict, api.CodeWorkspaceStopped, "The workspace can only be read while the conversation is running. Start the conversation and try again.")
	case errors.Is(err, sandbox.ErrGone), errors.Is(err, sandbox.ErrLost):
		return rest.Fail(http.StatusServiceUnavailable, api.CodeSandbox, "The sandbox ended during the request. Try again.")
	case errors.As(err, &down): // the store cannot reach its database
		return rest.Unavailable(down.Unavailable())
	case errors.Is(err, context.DeadlineExceeded):
		return rest.Unavailable("The request timed out. Try again.")
	case errors.Is(err, context.Canceled):
		return rest.Fail(clientClosed, api.CodeUnavailable, "The client closed the connection.")
	}
	var w interface{ Unwritable() string }
	if errors.As(err, &w) { // the store says what is wrong with the disk
		return rest.Fail(http.StatusInsufficientStorage, api.CodeUnavailable, w.Unwritable())
	}
	return rest.Fail(http.StatusInternalServerError, api.CodeInternal, "Internal server error. The operator can find the details in the server log under this request ID.")
}
