package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a Gate. The zero value has sensible defaults.
type Options struct {
	Now           func() time.Time // time.Now
	RatePerSecond float64          // 50
	Burst         int              // 100
	// UserRatePerSecond and UserBurst are for all keys of a user together: 4 times those of a key.
	UserRatePerSecond float64
	UserBurst         int
	// MaxKeys is how many usable keys a user may have at once; 0 is 1000.
	MaxKeys int
	// CookieKey signs browser logins. Zero: a random one, so that logins end with the process.
	CookieKey [32]byte
}

// Gate knows who may use the API. Its methods may be called concurrently.
type Gate struct {
	// OnChange is called by Refresh after users or keys changed, and by the first one; again after an error. It is set before
	// the Gate is used; nil for nothing.
	OnChange func(context.Context) error
	// Shared keeps what other servers on the same store must know of logins; nil if there are none. It is set before the Gate
	// is used.
	Shared Shared

	store     Store
	now       func() time.Time
	cookieKey [32]byte
	cache     atomic.Pointer[cache]
	cacheSize int

	requests  *buckets[string]
	users     *buckets[string]
	conflicts *buckets[string]
	failures  *buckets[netip.Addr]
	maxKeys   int
	tickets   tickets
	ended     endedLogins
	endedAt   int64 // the last logout of another server that is known; guarded by refreshing

	changing   sync.Mutex // one administrative change at a time, so that two cannot each remove the other's last admin key
	refreshing sync.Mutex // one Refresh at a time: who waited for it finds its work done
	generation int64      // last one acted on; guarded by refreshing

	streamsMu sync.Mutex
	streams   map[*stream]struct{}
}

// NewGate makes a Gate over a store. The server calls Refresh every second.
func NewGate(store Store, o Options) *Gate {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RatePerSecond <= 0 {
		o.RatePerSecond = 50
	}
	if o.Burst <= 0 {
		o.Burst = 100
	}
	if o.UserRatePerSecond <= 0 {
		o.UserRatePerSecond = 4 * o.RatePerSecond
	}
	if o.UserBurst <= 0 {
		o.UserBurst = 4 * o.Burst
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = defaultMaxKeys
	}
	if o.CookieKey == [32]byte{} {
		rand.Read(o.CookieKey[:])
	}
	g := &Gate{
		store:      store,
		now:        o.Now,
		cookieKey:  o.CookieKey,
		cacheSize:  maxCached,
		requests:   newBuckets[string](o.RatePerSecond, o.Burst),
		users:      newBuckets[string](o.UserRatePerSecond, o.UserBurst),
		conflicts:  newBuckets[string](conflictsPerSecond, conflictsBurst),
		maxKeys:    o.MaxKeys,
		failures:   newBuckets[netip.Addr](failuresPerSecond, failuresBurst),
		generation: -1,
		streams:    map[*stream]struct{}{},
	}
	g.cache.Store(newCache(g.cacheSize))
	return g
}

// Authenticate says who presents this key. Whatever is not right with it, the error is ErrUnauthorized; any other
// error means that the store could not be read.
func (g *Gate) Authenticate(ctx context.Context, presented string) (Identity, error) {
	if strings.HasPrefix(presented, pagePrefix) {
		return g.page(ctx, presented)
	}
	if len(presented) != keyLength || !strings.HasPrefix(presented, keyPrefix) {
		return Identity{}, ErrUnauthorized
	}
	hash := hashOf(presented)
	known := g.cache.Load()
	if id, ok := known.get(hash); ok {
		return g.unexpired(id)
	}
	key, err := g.store.KeyByHash(ctx, hash)
	if errors.Is(err, ErrNotFound) {
		return Identity{}, ErrUnauthorized
	}
	if err != nil {
		return Identity{}, fmt.Errorf("look up a key: %w", err)
	}
	// The store found it by an index, whose comparison we do not know. What was found is compared here, whole and
	// in constant time.
	if subtle.ConstantTimeCompare(key.Hash[:], hash[:]) != 1 {
		return Identity{}, ErrUnauthorized
	}
	id, err := g.identify(ctx, key)
	if err != nil {
		return Identity{}, err
	}
	known.put(hash, id)
	return id, nil
}

// byID says who the holder of a key is, without the key: for browser logins and open streams.
func (g *Gate) byID(ctx context.Context, user, keyID string) (Identity, error) {
	// Neither a key nor a cookie starts like this, so the three share one cache.
	hash := hashOf("id:" + user + "|" + keyID)
	known := g.cache.Load()
	if id, ok := known.get(hash); ok {
		return g.unexpired(id)
	}
	keys, err := g.store.Keys(ctx, user)
	if err != nil {
		return Identity{}, fmt.Errorf("look up a key: %w", err)
	}
	for _, key := range keys {
		if key.ID != keyID || key.User != user {
			continue
		}
		id, err := g.identify(ctx, key)
		if err != nil {
			return Identity{}, err
		}
		known.put(hash, id)
		return id, nil
	}
	return Identity{}, ErrUnauthorized
}

// identify turns a stored key into an identity, if the key and its user are good.
func (g *Gate) identify(ctx context.Context, key Key) (Identity, error) {
	if !key.Usable(g.now()) {
		return Identity{}, ErrUnauthorized
	}
	user, err := g.store.User(ctx, key.User)
	if errors.Is(err, ErrNotFound) {
		return Identity{}, ErrUnauthorized
	}
	if err != nil {
		return Identity{}, fmt.Errorf("look up a user: %w", err)
	}
	if user.Disabled {
		return Identity{}, ErrUnauthorized
	}
	return Identity{User: key.User, KeyID: key.ID, Admin: key.Admin && user.Admin, ExpiresAt: key.ExpiresAt}, nil
}

func (g *Gate) unexpired(id Identity) (Identity, error) {
	if id.ExpiresAt != nil && past(id.ExpiresAt, g.now()) {
		return Identity{}, ErrUnauthorized
	}
	return id, nil
}

// Watch refreshes the keys every second until ctx ends, in case another process revoked a key without notifying this one.
func (g *Gate) Watch(ctx context.Context, log *slog.Logger) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-second.C:
			if err := g.Refresh(ctx); err != nil && ctx.Err() == nil {
				log.Error("cannot reload keys", "error", err)
			}
		}
	}
}

// Refresh asks the store whether users or keys changed, here or in another process. If they did, it forgets what it
// knew and closes the held streams whose key is no longer good: they are closed when it returns. It is cheap when
// nothing changed. After an error the next Refresh does the whole work again.
func (g *Gate) Refresh(ctx context.Context) error {
	g.refreshing.Lock()
	defer g.refreshing.Unlock()
	g.endExpired()
	if err := g.endElsewhere(ctx); err != nil {
		return err
	}
	generation, err := g.store.AccessGeneration(ctx)
	if err != nil {
		return fmt.Errorf("read the access generation: %w", err)
	}
	if generation == g.generation {
		return nil
	}
	// First forget, then read: a stream that joins from now on looks for itself and finds the new state.
	g.cache.Store(newCache(g.cacheSize))
	if err := g.recheckStreams(ctx); err != nil {
		return err
	}
	if g.OnChange != nil {
		if err := g.OnChange(ctx); err != nil {
			return err
		}
	}
	g.generation = generation
	return nil
}
