package bitbucket

import (
	"context"
	"net/url"
	"strconv"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// Tasks returns the user's pull requests that need work. There are no issues.
func (d *dataCenter) Tasks(ctx context.Context) ([]gitprovider.Task, error) {
	query := url.Values{"role": {"AUTHOR"}, "state": {"OPEN"}, "order": {"NEWEST"}}
	requests, _, err := centerList[centerRequest](ctx, d, "/dashboard/pull-requests", query, mostRequests)
	if err != nil {
		return nil, err
	}
	requests = window(requests, 1, mostRequests)
	kinds := make([]string, len(requests))
	err = together(ctx, len(requests), func(ctx context.Context, i int) (err error) {
		kinds[i], err = d.amiss(ctx, requests[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var tasks []gitprovider.Task
	for i, r := range requests {
		if kinds[i] != "" {
			tasks = append(tasks, gitprovider.Task{Type: kinds[i], Repository: r.To.Repository.name(), Title: r.Title, Number: r.ID})
		}
	}
	return tasks, nil
}

// amiss returns the most urgent task of a pull request, or "". Anything that the token
// cannot see counts as fine.
func (d *dataCenter) amiss(ctx context.Context, r centerRequest) (string, error) {
	at, err := d.below(r.To.Repository.name(), "pull-requests", strconv.Itoa(r.ID))
	if err != nil {
		return "", err
	}
	clean, err := d.mergeable(ctx, at)
	if err := ifSeen(err); err != nil {
		return "", err
	}
	if clean != nil && !*clean {
		return gitprovider.MergeConflicts, nil
	}
	var builds struct{ Failed int }
	_, err = d.Do(ctx, call.Request{Path: call.Path("commits", "stats", r.From.LatestCommit), Elsewhere: d.builds()}, &builds)
	if err := ifSeen(err); err != nil {
		return "", err
	}
	if builds.Failed > 0 {
		return gitprovider.FailingChecks, nil
	}
	unanswered, err := d.unanswered(ctx, at, r)
	if unanswered {
		return gitprovider.UnresolvedComments, nil
	}
	return "", ifSeen(err)
}

// unanswered reports whether a reviewer requests changes, a task is open, or a thread by
// someone else is unresolved.
func (d *dataCenter) unanswered(ctx context.Context, at string, r centerRequest) (bool, error) {
	for _, reviewer := range r.Reviewers {
		if reviewer.Status == "NEEDS_WORK" {
			return true, nil
		}
	}
	if tasks := r.Properties.OpenTasks; tasks != nil && *tasks > 0 {
		return true, nil
	}
	if comments := r.Properties.Comments; comments != nil && *comments == 0 {
		return false, nil
	}
	threads, err := d.threads(ctx, at, 100)
	for _, thread := range threads {
		if k := thread.Comment; !k.Resolved && k.State != "RESOLVED" && k.Author.Name != r.Author.User.Name {
			return true, nil
		}
	}
	return false, err
}
