package gitea

import (
	"context"
	"time"

	"deckhand/internal/gitprovider"
)

// looksAgain are the delays before a pull request that is not mergeable is requested
// again.
var looksAgain = []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond}

// seen is a pull request that was requested.
type seen struct {
	pull
	name   string // of the repository
	number int
	gone   bool // since it was listed
}

// unclear reports whether a pull request may have conflicts. Gitea reports "not
// mergeable" also until it has checked: after every push to either branch and, after days
// without activity, until the pull request is requested.
func (s *seen) unclear() bool {
	return !s.gone && s.State == "open" && !s.draft() && !s.Mergeable
}

// look requests pull requests.
func (p *provider) look(ctx context.Context, all []*seen) error {
	return sideBySide(ctx, len(all), func(ctx context.Context, i int) (err error) {
		one := all[i]
		one.pull, err = p.pull(ctx, one.name, one.number)
		if gitprovider.ReasonOf(err) == gitprovider.NotFound {
			one.gone = true
			return nil
		}
		return err
	})
}

// settle gives the host time to check for conflicts, which takes a moment. It waits only
// if a result is unclear, and for all such pull requests together.
func (p *provider) settle(ctx context.Context, all []*seen) error {
	for _, pause := range p.pauses {
		var unclear []*seen
		for _, one := range all {
			if one.unclear() {
				unclear = append(unclear, one)
			}
		}
		if len(unclear) == 0 {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := p.look(ctx, unclear); err != nil {
			return err
		}
	}
	return nil
}
