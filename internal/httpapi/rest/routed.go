package rest

import (
	"context"
	"net/http"
)

// routed is the context key that marks requests that another server forwarded.
type routed struct{}

// Routed marks a request that another server forwarded: it is not forwarded again, and the rate limits have counted it.
func Routed(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), routed{}, true))
}

// IsRouted reports whether another server forwarded the request.
func IsRouted(r *http.Request) bool { return r.Context().Value(routed{}) != nil }
