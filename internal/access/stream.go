package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// stream is one held context. Its fields are guarded by Gate.streamsMu.
type stream struct {
	id     Identity
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// Hold gives a long-lived stream a context that ends, with cause ErrRevoked, as soon as its key is revoked or expires,
// its user is disabled, or the browser login it came by ends; at once if that has happened already. The caller calls release when the stream is over.
func (g *Gate) Hold(ctx context.Context, id Identity) (held context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{id: id, cancel: cancel}
	g.streamsMu.Lock()
	g.streams[s] = struct{}{}
	g.streamsMu.Unlock()

	// Looked up after joining the list: a revocation either finds the stream in the list, or is found here.
	current, err := g.byID(ctx, id.User, id.KeyID)
	until := earlier(id.ExpiresAt, current.ExpiresAt)
	switch {
	case errors.Is(err, ErrUnauthorized) || past(until, g.now()) || g.ended.has(id.Login):
		g.end(s, ErrRevoked)
	case err != nil:
		g.end(s, err) // who cannot be checked does not stay; the client comes back
	case until != nil:
		g.endAt(s, *until)
	}
	return ctx, func() { g.end(s, context.Canceled) }
}

// end cancels a stream, once. It cancels under the lock, so that a stream which is not in the list any more is
// certainly closed.
func (g *Gate) end(s *stream, cause error) {
	g.streamsMu.Lock()
	defer g.streamsMu.Unlock()
	g.endLocked(s, cause)
}

func (g *Gate) endLocked(s *stream, cause error) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.cancel(cause)
	delete(g.streams, s)
}

func (g *Gate) endAt(s *stream, at time.Time) {
	g.streamsMu.Lock()
	defer g.streamsMu.Unlock()
	if _, open := g.streams[s]; !open {
		return
	}
	s.id.ExpiresAt = &at
	s.timer = time.AfterFunc(at.Sub(g.now()), func() { g.end(s, ErrRevoked) })
}

// endLogin closes the streams of a browser login.
func (g *Gate) endLogin(login [32]byte) {
	g.streamsMu.Lock()
	defer g.streamsMu.Unlock()
	for s := range g.streams {
		if s.id.Login == login {
			g.endLocked(s, ErrRevoked)
		}
	}
}

// endExpired is the backstop for timers, which stand still while a laptop sleeps and ignore a corrected clock.
func (g *Gate) endExpired() {
	now := g.now()
	g.streamsMu.Lock()
	defer g.streamsMu.Unlock()
	for s := range g.streams {
		if past(s.id.ExpiresAt, now) {
			g.endLocked(s, ErrRevoked)
		}
	}
}

// recheckStreams closes the streams whose key is no longer good. It looks only at those that were open before it read
// the store: a later one may belong to a key that is newer than what was read, and has looked for itself.
func (g *Gate) recheckStreams(ctx context.Context) error {
	g.streamsMu.Lock()
	open := slices.Collect(maps.Keys(g.streams))
	g.streamsMu.Unlock()
	if len(open) == 0 {
		return nil
	}
	good, err := g.goodKeys(ctx)
	if err != nil {
		return err
	}
	g.streamsMu.Lock()
	defer g.streamsMu.Unlock()
	for _, s := range open {
		key, ok := good[s.id.KeyID]
		if !ok || key.User != s.id.User || (s.id.Admin && !key.Admin) {
			g.endLocked(s, ErrRevoked)
		}
	}
	return nil
}

// goodKeys are the keys that are accepted now, by id. Admin is what it amounts to together with the user's right.
func (g *Gate) goodKeys(ctx context.Context) (map[string]Key, error) {
	users, err := g.store.Users(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	keys, err := g.store.Keys(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	byName := make(map[string]User, len(users))
	for _, u := range users {
		byName[u.Name] = u
	}
	good := make(map[string]Key, len(keys))
	now := g.now()
	for _, k := range keys {
		u, ok := byName[k.User]
		if !ok || u.Disabled || !k.Usable(now) {
			continue
		}
		k.Admin = k.Admin && u.Admin
		good[k.ID] = k
	}
	return good, nil
}
