package access

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"
)

const (
	maxTickets       = 1024
	maxTicketsPerKey = 16
	ticketLength     = 22 // base64url of 16 bytes
)

// tickets are one-time invitations, for links that open the web page logged in: a key must not stand in a URL, where
// histories and proxy logs keep it. They live in memory, or where all servers
// on the same store see them, and are few.
type tickets struct {
	mu sync.Mutex
	m  map[[32]byte]ticket // by hash, so that looking one up tells nothing about another
}

type ticket struct {
	user, keyID string
	expiry      time.Time
}

// NewTicket makes a ticket for one Redeem within ttl, for any holder, while id's key is valid. If the key has too
// many, or there are too many in total, the one that expires first is dropped.
func (g *Gate) NewTicket(id Identity, ttl time.Duration) string {
	var b [16]byte
	rand.Read(b[:])
	text := base64.RawURLEncoding.EncodeToString(b[:])
	now := g.now()
	t := ticket{user: id.User, keyID: id.KeyID, expiry: now.Add(ttl)}
	if !g.shareTicket(hashOf(text), t, ttl) {
		g.tickets.add(hashOf(text), t, now)
	}
	return text
}

// Redeem exchanges a ticket for a cookie, once.
func (g *Gate) Redeem(ctx context.Context, text string) (cookie string, id Identity, err error) {
	if len(text) != ticketLength {
		return "", Identity{}, ErrUnauthorized
	}
	t, ok := g.tickets.take(hashOf(text))
	if ok && !g.now().Before(t.expiry) {
		return "", Identity{}, ErrUnauthorized
	}
	if !ok {
		if t, err = g.takeShared(ctx, hashOf(text)); err != nil {
			return "", Identity{}, err
		}
	}
	if id, err = g.byID(ctx, t.user, t.keyID); err != nil {
		return "", Identity{}, err
	}
	return g.loggedIn(ctx, id, CookieLife)
}

func (ts *tickets) take(hash [32]byte) (ticket, bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t, ok := ts.m[hash]
	delete(ts.m, hash)
	return t, ok
}

func (ts *tickets) add(hash [32]byte, t ticket, now time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.m == nil {
		ts.m = map[[32]byte]ticket{}
	}
	for h, old := range ts.m {
		if !now.Before(old.expiry) {
			delete(ts.m, h)
		}
	}
	ts.makeRoom(maxTicketsPerKey, func(old ticket) bool { return old.keyID == t.keyID })
	ts.makeRoom(maxTickets, func(ticket) bool { return true })
	ts.m[hash] = t
}

// makeRoom leaves fewer than max of those that count, by dropping the one that ends first.
func (ts *tickets) makeRoom(max int, counts func(ticket) bool) {
	var first [32]byte
	var at time.Time
	n := 0
	for h, t := range ts.m {
		if !counts(t) {
			continue
		}
		if n++; n == 1 || t.expiry.Before(at) {
			first, at = h, t.expiry
		}
	}
	if n >= max {
		delete(ts.m, first)
	}
}
