package bitbucket

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// mostTrackers is the maximum number of repositories that are searched for issues. There
// is no list of a user's issues.
const mostTrackers = 20

// Tasks returns the user's pull requests that need work, then the issues assigned to the
// user.
func (c *cloud) Tasks(ctx context.Context) ([]gitprovider.Task, error) {
	me, err := c.user(ctx)
	if err != nil {
		return nil, err
	}
	requests, _, err := everywhere(ctx, c, func(ctx context.Context, workspace string) ([]cloudRequest, bool, error) {
		query := url.Values{"state": {"OPEN"}, "sort": {"-created_on"}, "fields": {"+values.participants"}}
		return cloudList[cloudRequest](ctx, c, call.Path("workspaces", workspace, "pullrequests", me.UUID), query, mostRequests)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(requests, func(a, b cloudRequest) int { return b.CreatedOn.Compare(a.CreatedOn) })
	requests = requests[:min(mostRequests, len(requests))]
	kinds := make([]string, len(requests))
	err = together(ctx, len(requests), func(ctx context.Context, i int) (err error) {
		kinds[i], err = c.amiss(ctx, requests[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var tasks []gitprovider.Task
	for i, r := range requests {
		if kinds[i] != "" {
			tasks = append(tasks, gitprovider.Task{Type: kinds[i], Repository: r.Destination.Repository.FullName, Title: r.Title, Number: r.ID})
		}
	}
	issues, err := c.assigned(ctx, me)
	if err != nil {
		return nil, err
	}
	return append(tasks, issues...), nil
}

// amiss returns the most urgent task of a pull request, or "". Anything that the token
// cannot see counts as fine.
func (c *cloud) amiss(ctx context.Context, r cloudRequest) (string, error) {
	at, err := c.below(r.Destination.Repository.FullName, "pullrequests", strconv.Itoa(r.ID))
	if err != nil {
		return "", err
	}
	conflict, err := c.conflicts(ctx, at)
	if err := ifSeen(err); err != nil {
		return "", err
	}
	if conflict {
		return gitprovider.MergeConflicts, nil
	}
	builds, err := c.builds(ctx, at)
	if err := ifSeen(err); err != nil {
		return "", err
	}
	if slices.ContainsFunc(builds, func(b cloudBuild) bool { return b.State == "FAILED" }) {
		return gitprovider.FailingChecks, nil
	}
	unanswered, err := c.unanswered(ctx, at, r)
	if unanswered {
		return gitprovider.UnresolvedComments, nil
	}
	return "", ifSeen(err)
}

// unanswered reports whether a reviewer requests changes, a task is open, or a thread on
// the code by someone else is unresolved.
func (c *cloud) unanswered(ctx context.Context, at string, r cloudRequest) (bool, error) {
	for _, p := range r.Participants {
		if p.State == "changes_requested" {
			return true, nil
		}
	}
	if r.TaskCount > 0 || r.CommentCount == 0 {
		return r.TaskCount > 0, nil
	}
	comments, _, err := cloudList[cloudComment](ctx, c, at+"/comments", nil, 100)
	return slices.ContainsFunc(comments, func(k cloudComment) bool {
		return k.Inline != nil && k.Parent == nil && k.Resolution == nil && !k.Deleted && k.User.UUID != r.Author.UUID
	}), err
}

// assigned returns the open issues assigned to the user, in the most recently changed
// repositories with a tracker.
func (c *cloud) assigned(ctx context.Context, me cloudUser) ([]gitprovider.Task, error) {
	trackers, _, err := everywhere(ctx, c, func(ctx context.Context, workspace string) ([]cloudRepository, bool, error) {
		query := url.Values{"role": {"member"}, "q": {"has_issues = true"}, "sort": {"-updated_on"}}
		return cloudList[cloudRepository](ctx, c, call.Path("repositories", workspace), query, mostTrackers)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(trackers, orderOf("").compare)
	trackers = trackers[:min(mostTrackers, len(trackers))]
	type found struct {
		ID    int
		Title string
	}
	issues := make([][]found, len(trackers))
	err = together(ctx, len(trackers), func(ctx context.Context, i int) error {
		at, err := c.below(trackers[i].FullName, "issues")
		if err != nil {
			return err
		}
		query := url.Values{"q": {`(state = "new" OR state = "open") AND assignee.uuid = ` + quoted(me.UUID)}, "sort": {"-created_on"}}
		issues[i], _, err = cloudList[found](ctx, c, at, query, mostIssues)
		return ifSeen(err)
	})
	if err != nil {
		return nil, err
	}
	var tasks []gitprovider.Task
	for i, some := range issues {
		for _, one := range some {
			tasks = append(tasks, gitprovider.Task{Type: gitprovider.OpenIssue, Repository: trackers[i].FullName, Title: one.Title, Number: one.ID})
		}
	}
	return tasks[:min(mostIssues, len(tasks))], nil
}
