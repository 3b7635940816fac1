package rest

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/logline"
)

// NeedsAdmin refuses a request without an admin key.
func NeedsAdmin() *Fault {
	return Fail(http.StatusForbidden, api.CodeForbidden, "This operation requires an admin key.")
}

// NoPath answers for a path that is not in the table.
func NoPath() *Fault {
	return Fail(http.StatusNotFound, api.CodeNotFound, "Path not found. See /docs for all paths.")
}

// NoMethod answers for a path that takes other methods.
func NoMethod(method string, takes []string) *Fault {
	all := strings.Join(takes, ", ")
	f := Fail(http.StatusMethodNotAllowed, api.CodeBadRequest, "Method "+method+" is not allowed. Allowed: "+all+".")
	f.Header = http.Header{"Allow": {all}}
	return f
}

// NoMetrics answers where metrics have an address of their own.
func NoMetrics() *Fault {
	return Fail(http.StatusNotFound, api.CodeNotFound, "Metrics are served on another address. See --metrics-addr.")
}

// BadRequest is the body of an answer to bytes that are no request.
func BadRequest(msg string) []byte {
	body, _ := json.Marshal(api.Problem{Error: msg, MsgID: api.CodeBadRequest}) // strings always encode
	return body
}

// ErrorSchemas describe the errors that all routes have: of a request that is not valid, of one without a key, and of
// each family.
func (s *Schemas) ErrorSchemas() (invalid, unauthorized *huma.Schema, families map[Family]*huma.Schema) {
	of := func(t reflect.Type) *huma.Schema { return s.Registry.Schema(t, true, "") }
	invalid, unauthorized = of(reflect.TypeFor[api.ValidationError]()), of(reflect.TypeFor[api.Unauthorized]())
	return invalid, unauthorized, map[Family]*huma.Schema{Plain: of(reflect.TypeFor[api.Problem]()), Conversation: of(reflect.TypeFor[api.ConversationError]()),
		Bare: {Type: huma.TypeString, Description: "Error message."}}
}

// ForLog returns a request whose log lines have its ID and its conversation.
func ForLog(r *http.Request, id string) *http.Request {
	return r.WithContext(logline.With(r.Context(), logline.About{Request: id, Session: r.PathValue("conversation_id")}))
}
