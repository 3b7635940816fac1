package access

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Shared keeps small values that all servers on one store know.
type Shared interface {
	// Put keeps a value under a name that is used once, for a while.
	Put(ctx context.Context, name, value string, life time.Duration) error
	// Take removes a value and returns it. Only one of several callers gets it.
	Take(ctx context.Context, name string) (value string, found bool, err error)
	// Newer lists the names with a prefix that were put after a number, with their ends, and returns the last number.
	Newer(ctx context.Context, prefix string, after int64) (names map[string]time.Time, last int64, err error)
}

const (
	sharedTicket, sharedLogout = "ticket ", "logout "
	// sharedTime bounds what has no caller to wait for it.
	sharedTime = 5 * time.Second
)

func (g *Gate) share(name, value string, life time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), sharedTime)
	defer cancel()
	return g.Shared.Put(ctx, name, value, life)
}

// shareTicket gives a ticket to all servers, and reports whether that worked.
func (g *Gate) shareTicket(hash [32]byte, t ticket, ttl time.Duration) bool {
	return g.Shared != nil && g.share(sharedTicket+hex.EncodeToString(hash[:]), t.user+"\x1f"+t.keyID, ttl) == nil
}

// sharedTicket takes a ticket that another server may have made.
func (g *Gate) takeShared(ctx context.Context, hash [32]byte) (ticket, error) {
	if g.Shared == nil {
		return ticket{}, ErrUnauthorized
	}
	value, found, err := g.Shared.Take(ctx, sharedTicket+hex.EncodeToString(hash[:]))
	if err != nil {
		return ticket{}, fmt.Errorf("read a login ticket: %w", err)
	}
	user, keyID, ok := strings.Cut(value, "\x1f")
	if !found || !ok {
		return ticket{}, ErrUnauthorized
	}
	return ticket{user: user, keyID: keyID}, nil
}

// endElsewhere ends the logins here that were ended on other servers.
func (g *Gate) endElsewhere(ctx context.Context) error {
	if g.Shared == nil {
		return nil
	}
	names, last, err := g.Shared.Newer(ctx, sharedLogout, g.endedAt)
	if err != nil {
		return fmt.Errorf("read logouts: %w", err)
	}
	for name, until := range names {
		var hash [32]byte
		if n, err := hex.Decode(hash[:], []byte(strings.TrimPrefix(name, sharedLogout))); err != nil || n != len(hash) {
			continue
		}
		g.ended.add(hash, until, g.now())
		g.endLogin(hash)
	}
	g.endedAt = last
	return nil
}
