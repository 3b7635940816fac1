package gitea

import (
	"context"
	"sync"
	"sync/atomic"

	"deckhand/internal/gitprovider"
)

// atOnce is how many pull requests are looked at side by side: enough not to
// wait for each, few enough not to burden a small host.
const atOnce = 4

// Tasks are found in the newest of the user's open pull requests, each of which
// takes up to three calls to judge, and the issues assigned to the user.
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

// mine lists the newest open issues or pull requests, wherever they are, that
// are the user's by having been created by or assigned to them.
func (p *provider) mine(ctx context.Context, kind, how string) ([]issue, error) {
	query := pageQuery(1, maxPage)
	query.Set("type", kind)
	query.Set("state", "open")
	query.Set(how, "true")
	var out []issue
	_, err := p.call.Get(ctx, "/repos/issues/search", query, &out)
	return out, err
}

// judge says what is to be done about a pull request; "" if nothing is. A draft
// is never mergeable, so nothing is said about its conflicts.
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

// sideBySide does n things, a few at a time, and returns when none is under way.
// The first failure ends all.
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
