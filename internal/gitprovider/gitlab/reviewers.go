package gitlab

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// AskReview implements gitprovider.Reviewing. GitLab knows reviewers by their ids.
func (h *host) AskReview(ctx context.Context, repository string, number int, logins []string) error {
	var ids []int
	for _, login := range logins {
		var found []struct{ ID int }
		if _, err := h.Get(ctx, "/users", url.Values{"username": {login}}, &found); err != nil {
			return err
		}
		if len(found) == 0 {
			return h.Fail(gitprovider.Refused, "User "+login+" not found.")
		}
		ids = append(ids, found[0].ID)
	}
	_, err := h.Do(ctx, call.Request{Method: http.MethodPut, Path: project(repository, "merge_requests", strconv.Itoa(number)), Body: map[string]any{"reviewer_ids": ids}}, nil)
	return err
}
