package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// GitRange says what changes are compared with. Range is upstream if empty; Branch is for the range branch.
type GitRange struct{ Range, Branch string }

func (r GitRange) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"range": r.Range, "branch": r.Branch} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// Review lists the changed files of a range.
func (c *Client) Review(ctx context.Context, id string, r GitRange) (api.GitReview, error) {
	return call[api.GitReview](ctx, c, http.MethodGet, item(id)+"/git/review?"+r.values().Encode(), nil)
}

// CompareInRange returns both versions of a file of a range; from is its old path if it was renamed.
func (c *Client) CompareInRange(ctx context.Context, id string, r GitRange, file, from string) (api.GitComparison, error) {
	v := r.values()
	v.Set("path", file)
	if from != "" {
		v.Set("from", from)
	}
	return call[api.GitComparison](ctx, c, http.MethodGet, item(id)+"/git/compare?"+v.Encode(), nil)
}

// Revert reverts files or a hunk.
func (c *Client) Revert(ctx context.Context, id string, in api.GitRevert) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, item(id)+"/git/revert", in)
	return err
}

// Stage stages or unstages files.
func (c *Client) Stage(ctx context.Context, id string, in api.GitStage) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, item(id)+"/git/stage", in)
	return err
}

// DraftMessage drafts a commit message.
func (c *Client) DraftMessage(ctx context.Context, id string, in api.GitDraft) (api.GitMessage, error) {
	return call[api.GitMessage](ctx, c, http.MethodPost, item(id)+"/git/commit-message", in)
}

// Commit commits changes.
func (c *Client) Commit(ctx context.Context, id string, in api.GitCommit) (api.GitCommitted, error) {
	return call[api.GitCommitted](ctx, c, http.MethodPost, item(id)+"/git/commit", in)
}

// Push pushes the current commit.
func (c *Client) Push(ctx context.Context, id string, in api.GitPush) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, item(id)+"/git/push", in)
	return err
}

// OpenPullRequest opens a pull request.
func (c *Client) OpenPullRequest(ctx context.Context, id string, in api.OpenPullRequest) (api.OpenedPullRequest, error) {
	return call[api.OpenedPullRequest](ctx, c, http.MethodPost, item(id)+"/git/pull-request", in)
}

// PullRequests lists the newest pull requests of a conversation with their checks and comments.
func (c *Client) PullRequests(ctx context.Context, id string) ([]api.ReviewedPullRequest, error) {
	return call[[]api.ReviewedPullRequest](ctx, c, http.MethodGet, item(id)+"/git/pull-requests", nil)
}
