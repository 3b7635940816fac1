package gitlab

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// mostTasks is the maximum number of merge requests, and of issues, that are checked.
const mostTasks = "50"

// authored requests all details of the user's open merge requests at once. REST would
// need two more requests for each of them.
const authored = `query { currentUser { authoredMergeRequests(state: opened, sort: CREATED_DESC, first: ` + mostTasks + `) { nodes {
	iid title project { fullPath } conflicts detailedMergeStatus headPipeline { status } resolvableDiscussionsCount resolvedDiscussionsCount
} } } }`

// open is an open merge request of the user.
type open struct {
	IID        string
	Title      string
	Project    struct{ FullPath string }
	Conflicts  bool
	Status     string                  `json:"detailedMergeStatus"`
	Pipeline   struct{ Status string } `json:"headPipeline"`
	Resolvable int                     `json:"resolvableDiscussionsCount"`
	Resolved   int                     `json:"resolvedDiscussionsCount"`
}

// kind returns the most urgent task of a merge request, or "".
func (o open) kind() string {
	switch {
	case o.Conflicts, o.Status == "CONFLICT":
		return gitprovider.MergeConflicts
	case o.Pipeline.Status == "FAILED":
		return gitprovider.FailingChecks
	case o.Resolvable > o.Resolved, o.Status == "DISCUSSIONS_NOT_RESOLVED", o.Status == "REQUESTED_CHANGES":
		return gitprovider.UnresolvedComments
	}
	return ""
}

// Tasks returns the user's merge requests that need work, then the issues assigned to the
// user.
func (h *host) Tasks(ctx context.Context) ([]gitprovider.Task, error) {
	merges, err := h.merges(ctx)
	if err != nil {
		return nil, err
	}
	var tasks []gitprovider.Task
	for _, m := range merges {
		number, err := strconv.Atoi(m.IID)
		if kind := m.kind(); kind != "" && err == nil {
			tasks = append(tasks, gitprovider.Task{Type: kind, Repository: m.Project.FullPath, Title: m.Title, Number: number})
		}
	}
	issues, err := h.assigned(ctx)
	if err != nil {
		return nil, err
	}
	return append(tasks, issues...), nil
}

func (h *host) merges(ctx context.Context) ([]open, error) {
	var answer struct {
		Errors []struct{ Message string }
		Data   struct {
			CurrentUser *struct {
				Authored struct{ Nodes []open } `json:"authoredMergeRequests"`
			}
		}
	}
	r := call.Request{Method: http.MethodPost, Path: "/graphql", Body: map[string]string{"query": authored}}
	if h.Site != nil {
		r.Elsewhere = h.Site.JoinPath("api")
	}
	if _, err := h.Do(ctx, r, &answer); err != nil {
		return nil, err
	}
	switch {
	case len(answer.Errors) > 0:
		return nil, h.Fail(gitprovider.Unavailable, answer.Errors[0].Message)
	case answer.Data.CurrentUser == nil: // no token
		return nil, h.Fail(gitprovider.BadToken, "")
	}
	return answer.Data.CurrentUser.Authored.Nodes, nil
}

func (h *host) assigned(ctx context.Context) ([]gitprovider.Task, error) {
	var issues []struct {
		IID        int
		Title      string
		References struct{ Full string } // group/project#12
	}
	query := url.Values{
		"scope": {"assigned_to_me"}, "state": {"opened"}, "order_by": {"created_at"}, "sort": {"desc"}, "per_page": {mostTasks},
	}
	if _, err := h.Get(ctx, "/issues", query, &issues); err != nil {
		return nil, err
	}
	var tasks []gitprovider.Task
	for _, i := range issues {
		if name, _, ok := strings.Cut(i.References.Full, "#"); ok {
			tasks = append(tasks, gitprovider.Task{Type: gitprovider.OpenIssue, Repository: name, Title: i.Title, Number: i.IID})
		}
	}
	return tasks, nil
}
