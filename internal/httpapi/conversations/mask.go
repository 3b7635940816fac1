package conversations

import "context"

// A log holds what was really said and run, so that a command is run as it was
// meant. What clients see of it is masked on its way out.

// masked returns an event as its owner's clients may see it.
func (d *Handlers) masked(ctx context.Context, owner string, event []byte) ([]byte, error) {
	if d.Mask == nil {
		return event, nil
	}
	return d.Mask(ctx, owner, event)
}
