package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"deckhand/internal/sandbox/checkpoint/record"
)

func (s *Store) read(n int) (*record.Record, error) {
	b, err := os.ReadFile(s.meta(n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %d", ErrNone, n)
	}
	if err != nil {
		return nil, err
	}
	r, err := record.Decode(b)
	if err == nil && r.Number != n {
		err = ErrCorrupt
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %d", ErrCorrupt, n)
	}
	return r, nil
}

// load returns the state of a checkpoint, and the number of records it was read from.
func (s *Store) load(n int) (record.State, int, error) {
	var chain []*record.Record
	for at := n; at != 0; {
		r, err := s.read(at)
		if err != nil {
			return nil, 0, err
		}
		if r.Parent >= at || len(chain) > 2*maxChain {
			return nil, 0, fmt.Errorf("%w: %d", ErrCorrupt, n)
		}
		chain = append(chain, r)
		at = r.Parent
	}
	if len(chain) == 0 {
		return record.State{}, 0, nil
	}
	out := make(record.State, len(chain[len(chain)-1].Changed))
	for _, r := range slices.Backward(chain) {
		for _, p := range r.Removed {
			delete(out, p)
		}
		for _, e := range r.Changed {
			out[e.Path] = e
		}
	}
	return out, len(chain), nil
}
