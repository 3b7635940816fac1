package gitea

import (
	"context"
	"sync"
	"sync/atomic"

	"deckhand/internal/gitprovider"
)

// atOnce is the number of parallel requests: enough to be fast, few enough for a small
// host.
const atOnce = 4

// Tasks checks the newest open pull requests of the user, with up to three requests each,
// and the issues assigned to the user.
func (p *provider) Tasks(ctx context.Context) ([]gitprovider.Task, error) {
	pulls, err := p.mine(ctx, "pulls", "created")
	if err != nil {
		return nil, err
	}
	issues, err := p.mine(ctx, "issues", "assigned")
	if err != nil {
		return nil, err
	}
	all := make([]*seen, len(pulls))
	for i, pr := range pulls {
		all[i] = &seen{name: pr.Repository.FullName, number: pr.Number}
	}
	if err := p.look(ctx, all); err != nil {
		return nil, err
	}
	if err := p.settle(ctx, all); err != nil {
		return nil, err
	}
	types := make([]string, len(pulls))
	err = sideBySide(ctx, len(pulls), func(ctx context.Context, i int) (err error) {
		types[i], err = p.judge(ctx, all[i])
		if gitprovider.ReasonOf(err) == gitprovider.NotFound {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []gitprovider.Task
	for i, pr := range pulls {
		if types[i] != "" {
			out = append(out, pr.task(types[i]))
		}
	}
	for _, one := range issues {
		out = append(out, one.task(gitprovider.OpenIssue))
	}
	return out, nil
}

func (i issue) task(kind string) gitprovider.Task {
	return gitprovider.Task{Type: kind, Repository: i.Repository.FullName, Title: i.Title, Number: i.Number}
}

// mine lists the newest open issues or pull requests that were created by or assigned to
// the user.
func (p *provider) mine(ctx context.Context, kind, how string) ([]issue, error) {
	query := pageQuery(1, maxPage)
	query.Set("type", kind)
	query.Set("state", "open")
	query.Set(how, "true")
	var out []issue
	_, err := p.call.Get(ctx, "/repos/issues/search", query, &out)
	return out, err
}

// judge returns the task of a pull request, or "". A draft is never mergeable, so its
// conflicts are unknown.
func (p *provider) judge(ctx context.Context, pr *seen) (string, error) {
	if pr.gone {
		return "", nil
	}
	if pr.unclear() {
		return gitprovider.MergeConflicts, nil
	}
	ran, err := p.checks(ctx, pr.name, pr.Head.SHA)
	if err != nil {
		return "", err
	}
	if failed(ran.State) {
		return gitprovider.FailingChecks, nil
	}
	reviews, err := p.reviews(ctx, pr.name, pr.number)
	if err != nil {
		return "", err
	}
	for _, r := range reviews {
		if !r.Dismissed && (r.State == "REQUEST_CHANGES" || r.State == "COMMENT") {
			return gitprovider.UnresolvedComments, nil
		}
	}
	return "", nil
}

// sideBySide runs n functions, a few at a time, and waits for all. The first error
// cancels the others.
func sideBySide(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var taken atomic.Int64
	var workers sync.WaitGroup
	for range min(atOnce, n) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(taken.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
