package profile

import (
	"context"
	"slices"
	"sync"

	"deckhand/internal/live"
	"deckhand/internal/native"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/v0"
)

// eventShape says what of an event clients go by, in either format: no path means
// something in both.
var eventShape = sync.OnceValue(func() *secret.Shape {
	return secret.NewShape(slices.Concat(v0.Protocol(), native.Protocol()), slices.Concat(v0.FreeForm(), native.FreeForm()), slices.Concat(v0.Coded(), native.Coded()))
})

// Masks hides the secrets of users in what they see, each user's in their own.
type Masks struct {
	Settings *settings.Service
	Index    session.Index

	mu     sync.Mutex
	owners map[session.ID]string
}

// Event implements conversations.Config.Mask.
func (m *Masks) Event(ctx context.Context, owner string, event []byte) ([]byte, error) {
	masker, err := m.Settings.Masker(ctx, owner)
	if err != nil {
		return nil, err
	}
	return masker.JSON(event, eventShape()), nil
}

// maxOwners is how many sessions' owners are remembered.
const maxOwners = 10_000

// ownerOf finds out whose a session is, which never changes.
func (m *Masks) ownerOf(ctx context.Context, id session.ID) (string, error) {
	m.mu.Lock()
	owner, ok := m.owners[id]
	m.mu.Unlock()
	if ok {
		return owner, nil
	}
	row, err := m.Index.Row(ctx, id)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owners == nil || len(m.owners) >= maxOwners {
		m.owners = map[session.ID]string{}
	}
	m.owners[id] = row.Owner
	return row.Owner, nil
}

// Native is an event in the native format for live readers, the owner's secrets masked.
func (m *Masks) Native(id session.ID, e session.Event) (live.Frame, bool, error) {
	line, shown, err := native.Encode(e)
	if err != nil || !shown {
		return live.Frame{}, false, err
	}
	ctx := context.Background() // the hub encodes for all readers, not for one of them
	owner, err := m.ownerOf(ctx, id)
	if err != nil {
		return live.Frame{}, false, err
	}
	line, err = m.Event(ctx, owner, line)
	return live.Frame{Number: e.Number, Data: line}, err == nil, err
}

// Frame is an event in the legacy format for live readers, the owner's secrets masked.
func (m *Masks) Frame(id session.ID, e session.Event) (live.Frame, bool, error) {
	f, err := v0.Encode(id, e)
	if err != nil || f.Kind == v0.None {
		return live.Frame{}, false, err
	}
	ctx := context.Background() // the hub encodes for all readers, not for one of them
	owner, err := m.ownerOf(ctx, id)
	if err != nil {
		return live.Frame{}, false, err
	}
	out := live.Frame{Number: e.Number}
	if f.Kind == v0.Status {
		out.Event = live.EventStatus
	}
	out.Data, err = m.Event(ctx, owner, f.JSON)
	return out, err == nil, err
}
