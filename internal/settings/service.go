package settings

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/internal/secret"
)

var (
	// ErrNotFound says that the user has stored no settings yet.
	ErrNotFound = errors.New("settings not found")
	// ErrConflict says that the settings were changed since they were read.
	ErrConflict = errors.New("the settings were changed at the same time")
)

// Record is a user's settings as they are stored. Body is for Decode.
type Record struct {
	User      string
	Version   int64 // 1 for the first, then one more each time
	Body      []byte
	UpdatedAt time.Time
}

// Store keeps one Record per user. Implementations pass settingstest.
type Store interface {
	// LoadSettings returns the user's record, or ErrNotFound.
	LoadSettings(ctx context.Context, user string) (Record, error)
	// SaveSettings stores rec if the stored version is rec.Version-1 (0: none stored); else ErrConflict.
	SaveSettings(ctx context.Context, rec Record) error
}

const (
	maxCached = 2000 // users whose opened settings stay in memory
	maxTries  = 20   // of an update that others get ahead of
)

// Service reads and changes settings. It may be used by many goroutines and, unless
// SingleProcess is set, beside other processes on the same store.
type Service struct {
	// SingleProcess says that no other process changes settings: what was read once need not be
	// read again. Set it before the first use.
	SingleProcess bool

	store Store
	keys  *secret.Keyring
	red   *secret.Redactor
	masks *secret.Maskers

	mu    sync.Mutex
	cache map[string]cached
	// turns makes updates of one user wait for each other instead of colliding in the
	// store. Users share turns; that costs a wait, never more.
	turns [64]sync.Mutex
}

// cached saves unsealing what was unsealed before. It is recognised by its content, so
// it does not matter who wrote it.
type cached struct {
	sum      [sha256.Size]byte
	version  int64
	settings *Settings // never changed
}

// New returns a Service. Every secret it loads or stores is made known to red, which
// is for our own logs; what users see is masked by Masker.
func New(store Store, keys *secret.Keyring, red *secret.Redactor) *Service {
	return &Service{store: store, keys: keys, red: red, masks: secret.NewMaskers(red), cache: map[string]cached{}}
}

// Masker returns a masker for the secrets of this user only. It follows the settings: values
// stored later are masked too, and removed values are dropped unless they are held.
func (s *Service) Masker(ctx context.Context, user string) (*secret.Masker, error) {
	m, fresh := s.masks.Of(user)
	if fresh && s.SingleProcess {
		return m, nil
	}
	_, _, err := s.load(ctx, user)
	if errors.Is(err, ErrNotFound) {
		s.masks.Set(user, 0, nil)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Hold keeps values masked for the user until Release is called with the same holder,
// whatever becomes of the settings. A sandbox holds what is in its environment.
func (s *Service) Hold(user, holder string, values ...string) { s.masks.Hold(user, holder, values...) }

// Release ends what a holder holds.
func (s *Service) Release(holder string) { s.masks.Release(holder) }

// Get returns the user's settings, or ErrNotFound. The caller may change the result.
func (s *Service) Get(ctx context.Context, user string) (Settings, error) {
	got, _, err := s.load(ctx, user)
	return got, err
}

// Read lends the user's settings to look at them: look changes nothing and keeps
// nothing. It is Get without the copy, for what every request does.
func (s *Service) Read(ctx context.Context, user string, look func(*Settings)) error {
	if s.SingleProcess {
		s.mu.Lock()
		have, ok := s.cache[user]
		s.mu.Unlock()
		if ok {
			look(have.settings)
			return nil
		}
	}
	got, _, err := s.load(ctx, user)
	if err == nil {
		look(&got)
	}
	return err
}

// Update applies in to the user's settings and returns when they are stored. A bad
// update gives a *api.ValidationError and stores nothing, and so does an error of a
// check, which sees the settings before (nil if none are stored) and after the update.
func (s *Service) Update(ctx context.Context, user string, in api.SettingsInput, checks ...func(old, next *Settings) error) (Changes, error) {
	var changes Changes
	err := s.replace(ctx, user, func(old *Settings) (next Settings, err error) {
		next, changes, err = Merge(old, in)
		for _, check := range checks {
			if err == nil {
				err = check(old, &next)
			}
		}
		return next, err
	})
	if err != nil {
		return Changes{}, err
	}
	return changes, nil
}

// Change lets rule change the user's settings, or the defaults if nothing is
// stored, and returns when they are stored. An error of rule's is returned and
// stores nothing. rule is called again if others get ahead of it.
func (s *Service) Change(ctx context.Context, user string, rule func(*Settings) error) error {
	return s.replace(ctx, user, func(old *Settings) (Settings, error) {
		next := Defaults()
		if old != nil {
			next = old.Clone()
		}
		err := rule(&next)
		return next, err
	})
}

// replace stores what renew makes of what is stored, which is nil if nothing is.
func (s *Service) replace(ctx context.Context, user string, renew func(old *Settings) (Settings, error)) error {
	turn := &s.turns[maphash.String(turnSeed, user)%uint64(len(s.turns))]
	turn.Lock()
	defer turn.Unlock()
	for range maxTries {
		err := s.tryReplace(ctx, user, renew)
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return ErrConflict
}

var turnSeed = maphash.MakeSeed()

func (s *Service) tryReplace(ctx context.Context, user string, renew func(old *Settings) (Settings, error)) error {
	var old *Settings
	have, version, err := s.load(ctx, user)
	if err == nil {
		old = &have
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	next, err := renew(old)
	if err != nil {
		return err
	}
	// Known before they are stored: whatever fails from here on may be logged.
	s.red.Add(next.SecretValues()...)
	body, err := Encode(ctx, s.keys, user, next)
	if err != nil {
		return err
	}
	err = s.store.SaveSettings(ctx, Record{User: user, Version: version + 1, Body: body, UpdatedAt: time.Now().UTC()})
	if err != nil {
		s.forget(user) // it may have been stored all the same
		return fmt.Errorf("storing settings: %w", err)
	}
	s.remember(user, body, version+1, next)
	return nil
}

func (s *Service) load(ctx context.Context, user string) (Settings, int64, error) {
	s.mu.Lock()
	have, ok := s.cache[user]
	s.mu.Unlock()
	if ok && s.SingleProcess {
		return have.settings.Clone(), have.version, nil
	}
	rec, err := s.store.LoadSettings(ctx, user)
	if err != nil {
		return Settings{}, 0, fmt.Errorf("loading settings: %w", err)
	}
	if !ok || have.sum != sha256.Sum256(rec.Body) {
		got, err := Decode(ctx, s.keys, user, rec.Body)
		if err != nil {
			return Settings{}, 0, err
		}
		have = s.remember(user, rec.Body, rec.Version, got)
	}
	s.masks.Set(user, rec.Version, have.settings.SecretValues())
	return have.settings.Clone(), rec.Version, nil
}

// Forget makes a Service with SingleProcess read the user's settings again: a command
// beside it has changed them.
func (s *Service) Forget(user string) { s.forget(user) }

func (s *Service) forget(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cache, user)
	s.masks.Expire(user)
}

func (s *Service) remember(user string, body []byte, version int64, got Settings) cached {
	c := cached{sum: sha256.Sum256(body), version: version, settings: &got}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache[user].version > version {
		return c // older than the stored version
	}
	s.masks.Set(user, version, got.SecretValues())
	if len(s.cache) >= maxCached {
		for other := range s.cache { // any one: a wrong guess costs one decoding
			delete(s.cache, other)
			break
		}
	}
	s.cache[user] = c
	return c
}
