package httpapi

import "context"

// A log holds what was really said and run, so that a command is run as it was
// meant. What clients see of it is masked on its way out.

// masked is an event as a client may see it.
func (d *Door) masked(event []byte) []byte {
	if d.Mask == nil {
		return event
	}
	return d.Mask(event)
}

// learn makes the secrets of a user known to whoever masks them. They are when
// settings are read, which nobody may have done since the server was started.
// Without settings there are none.
func (d *Door) learn(ctx context.Context, user string) { _, _ = d.Settings.Get(ctx, user) }
