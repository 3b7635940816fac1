package trigger

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"deckhand/internal/gitprovider"
	"deckhand/internal/queue"
	"deckhand/internal/secret"
)

// What an integration has if its user does not say otherwise.
const (
	DefaultMention = "@deckhand"
	DefaultLabel   = "deckhand"
)

// Integrations manages the users' integrations. A user sees nothing of another's.
type Integrations struct {
	Store Store
	Seal  Sealer
	// Redact learns secrets that must not reach a log.
	Redact func(values ...string)
	// Whoami says at which host a user has stored a token for a provider, and by
	// which name the provider knows its owner in what it sends. It fails with words
	// for people.
	Whoami func(ctx context.Context, user, provider string) (host, name string, err error)
	// Base is the address of this server as providers know it.
	Base func() string
}

// Change is what a user wants different; nil fields stay.
type Change struct {
	Host, Mention, Label       *string
	Repositories, AllowedUsers []string
	Enabled                    *bool
	RotateSecret               bool
}

// Address is the URL that the user enters at the provider. It names the integration, so that
// only its secret is tried.
func (s *Integrations) Address(in Integration) string {
	return s.Base() + "/integrations/" + in.Provider + "/webhook?integration=" + in.ID
}

// Create makes an integration. The secret is not shown again.
func (s *Integrations) Create(ctx context.Context, user, provider string, c Change) (Integration, secret.Secret, error) {
	if !Known(provider) {
		return Integration{}, secret.Secret{}, &InvalidError{"provider", "must be one of " + strings.Join(Providers(), ", ")}
	}
	now := queue.Now()
	in := Integration{ID: queue.NewID("int_"), User: user, Provider: provider, Mention: DefaultMention, Label: DefaultLabel, Enabled: true, CreatedAt: now, ChangedAt: now}
	if err := c.check(); err != nil {
		return Integration{}, secret.Secret{}, err
	}
	if err := s.settle(ctx, user, provider, &c); err != nil {
		return Integration{}, secret.Secret{}, err
	}
	c.apply(&in)
	fresh := secret.NewRotating()
	var err error
	if in.Sealed, err = s.seal(ctx, in, fresh); err != nil {
		return Integration{}, secret.Secret{}, err
	}
	if err := s.Store.AddIntegration(ctx, in); err != nil {
		return Integration{}, secret.Secret{}, err
	}
	return in, secret.New(fresh.Secret), nil
}

// settle finds the host and the user's own name, where these were not given.
func (s *Integrations) settle(ctx context.Context, user, provider string, c *Change) error {
	if c.Host != nil && len(c.AllowedUsers) > 0 {
		return nil
	}
	host, name, err := s.Whoami(ctx, user, provider)
	if err != nil {
		return &InvalidError{"provider", "a valid stored token of the provider is required: " + strings.TrimSuffix(err.Error(), ".")}
	}
	if c.Host == nil {
		c.Host = &host
	}
	if len(c.AllowedUsers) == 0 {
		c.AllowedUsers = []string{name}
	}
	return nil
}

// List gives all of a user's, the oldest first.
func (s *Integrations) List(ctx context.Context, user string) ([]Integration, error) {
	return s.Store.Integrations(ctx, user)
}

// Get is one of a user's; ErrNotFound.
func (s *Integrations) Get(ctx context.Context, user, id string) (Integration, error) {
	found, err := s.Store.Integrations(ctx, user)
	if err != nil {
		return Integration{}, err
	}
	i := slices.IndexFunc(found, func(in Integration) bool { return in.ID == id })
	if i < 0 {
		return Integration{}, ErrNotFound
	}
	return found[i], nil
}

// errStale says that an integration was changed since it was read.
var errStale = errors.New("the integration was changed at the same time")

// Change changes one. The secret is zero unless a new one was asked for.
func (s *Integrations) Change(ctx context.Context, user, id string, c Change) (Integration, secret.Secret, error) {
	if err := c.check(); err != nil {
		return Integration{}, secret.Secret{}, err
	}
	for {
		in, shown, err := s.tryChange(ctx, user, id, c)
		if !errors.Is(err, errStale) {
			return in, shown, err
		}
	}
}

func (s *Integrations) tryChange(ctx context.Context, user, id string, c Change) (Integration, secret.Secret, error) {
	read, err := s.Get(ctx, user, id)
	if err != nil {
		return Integration{}, secret.Secret{}, err
	}
	if c.AllowedUsers != nil && len(c.AllowedUsers) == 0 {
		if err := s.settle(ctx, user, read.Provider, &c); err != nil {
			return Integration{}, secret.Secret{}, err
		}
	}
	now, sealed := queue.Now(), read.Sealed
	var shown secret.Secret
	if c.RotateSecret {
		kept, err := openSecrets(ctx, s.Seal, read)
		if err != nil {
			return Integration{}, secret.Secret{}, err
		}
		kept.Rotate(now)
		shown = secret.New(kept.Secret)
		if sealed, err = s.seal(ctx, read, kept); err != nil {
			return Integration{}, secret.Secret{}, err
		}
	}
	in, err := s.Store.ChangeIntegration(ctx, user, id, now, func(in *Integration) error {
		if !in.ChangedAt.Equal(read.ChangedAt) {
			return errStale
		}
		in.Sealed = sealed
		c.apply(in)
		return nil
	})
	return in, shown, err
}

// Remove removes one with the record of what came in.
func (s *Integrations) Remove(ctx context.Context, user, id string) error {
	return s.Store.RemoveIntegration(ctx, user, id)
}

// Page lists what came in, newest first, below a Seq.
func (s *Integrations) Page(ctx context.Context, user, id string, before int64, limit int) ([]Delivery, error) {
	return s.Store.Deliveries(ctx, user, id, before, limit)
}

func (s *Integrations) seal(ctx context.Context, in Integration, v secret.Rotating) ([]byte, error) {
	if s.Redact != nil {
		s.Redact(v.Secret)
	}
	return sealSecrets(ctx, s.Seal, in, v)
}

const maxListed = 200

var mentionForm = regexp.MustCompile(`^@?[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

func (c Change) check() error {
	switch {
	case c.Mention != nil && !mentionForm.MatchString(*c.Mention):
		return &InvalidError{"mention", "must be a name such as @deckhand: letters, digits, - and _"}
	case c.Label != nil && !tidy(*c.Label, 0):
		return &InvalidError{"label", "must be a label name, or empty"}
	case c.Host != nil && !tidy(*c.Host, 0):
		return &InvalidError{"host", "must be a host such as git.example.org"}
	case len(c.Repositories) > maxListed:
		return &InvalidError{"repositories", fmt.Sprintf("must have at most %d entries", maxListed)}
	case len(c.AllowedUsers) > maxListed:
		return &InvalidError{"allowed_users", fmt.Sprintf("must have at most %d entries", maxListed)}
	case slices.ContainsFunc(c.Repositories, func(r string) bool { return !gitprovider.ValidRepository(r) }):
		return &InvalidError{"repositories", "must be repository names such as owner/name"}
	case slices.ContainsFunc(c.AllowedUsers, func(u string) bool { return !tidy(u, 1) }):
		return &InvalidError{"allowed_users", "must be user names as the provider writes them, or *"}
	}
	return nil
}

// tidy is a short text in one line.
func tidy(s string, least int) bool {
	return len(s) >= least && len(s) <= 200 && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, unicode.IsControl)
}

// apply sets what was given. The change was checked.
func (c Change) apply(in *Integration) {
	if c.Host != nil {
		in.Host = *c.Host
	}
	if c.Mention != nil {
		in.Mention = "@" + strings.TrimPrefix(*c.Mention, "@")
	}
	if c.Label != nil {
		in.Label = *c.Label
	}
	if c.Repositories != nil {
		in.Repositories = c.Repositories
	}
	if c.AllowedUsers != nil {
		in.AllowedUsers = c.AllowedUsers
	}
	if c.Enabled != nil {
		in.Enabled = *c.Enabled
	}
}
