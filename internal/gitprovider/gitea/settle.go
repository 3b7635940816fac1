package gitea

import (
	"context"
	"time"

	"deckhand/internal/gitprovider"
)

// looksAgain are the pauses before a pull request that is said not to be
// mergeable is asked for again.
var looksAgain = []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond}

// seen is a pull request that was asked for.
type seen struct {
	pull
	name   string // of the repository
	number int
	gone   bool // since it was listed
}

// unclear says that a pull request may have conflicts. Gitea says of one that it
// is not mergeable also before it has looked: after every push to either branch,
// and, if nothing was done about it for days, until somebody asks.
func (s *seen) unclear() bool {
	return !s.gone && s.State == "open" && !s.draft() && !s.Mergeable
}

// look asks for pull requests.
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

// settle gives the host the time to look whether there are conflicts, which it
// needs no more than moments for. Nobody waits unless something is unclear, and
// all that are wait together.
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
