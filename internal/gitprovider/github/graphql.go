package github

import (
	"context"
	"encoding/json"
	"net/http"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// ask sends a GraphQL query. GitHub responds with status 200 and a list of errors next to
// partial results. Errors are ignored if enough was found: one organisation that requires
// another sign-on must not hide all others.
func (g *github) ask(ctx context.Context, query string, variables map[string]any, data any, enough func() bool) error {
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	body := map[string]any{"query": query, "variables": variables}
	if _, err := g.Do(ctx, call.Request{Method: http.MethodPost, Path: "/graphql", Body: body, Elsewhere: g.graphql}, &answer); err != nil {
		return err
	}
	if len(answer.Data) > 0 && json.Unmarshal(answer.Data, data) != nil {
		return g.Fail(gitprovider.Unavailable, "")
	}
	if enough() {
		return nil
	}
	if len(answer.Errors) == 0 {
		return g.Fail(gitprovider.Unavailable, "")
	}
	switch first := answer.Errors[0]; first.Type {
	case "NOT_FOUND":
		return g.Fail(gitprovider.NotFound, "")
	case "RATE_LIMITED", "RATE_LIMIT":
		return g.Fail(gitprovider.RateLimited, "")
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return g.Fail(gitprovider.Scope, first.Message)
	default:
		return g.Fail(gitprovider.Refused, first.Message)
	}
}
