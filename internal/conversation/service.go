package conversation

import (
	"context"
	"errors"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/gitprovider"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// Config is what the use cases need.
type Config struct {
	Sessions *session.Sessions
	Log      session.Log
	Index    session.Index
	Settings *settings.Service
	Seal     Sealer
	// NewID makes ids; nil means session.NewID.
	NewID  func() session.ID
	Models Models
	// UserLimit is what each user may spend in a month; 0 is no limit.
	UserLimit session.Money
	// SandboxImages is true when the sandbox driver can run container images.
	SandboxImages bool
	// VerifyRepository returns the provider at which the repository can be read with the tokens in the settings. A missing
	// branch is a *gitprovider.BranchError.
	VerifyRepository func(ctx context.Context, s settings.Settings, provider, repository, branch string) (string, error)
	// Conflicts limits how often a user may name an id that could belong to another user; nil sets no limit.
	Conflicts Conflicts
	// Workspaces copies and removes workspaces; nil if there are none.
	Workspaces Workspaces
	// Feedback is deleted with its conversation; nil if none is kept.
	Feedback Feedback
	// Attempts removes the attempts of a deleted conversation; nil if there are none.
	Attempts Attempts
	// Admission is the queue of conversations that wait for a free slot; nil means no limits.
	Admission Admission
	// Redact keeps values out of the server's log; nil keeps nothing out.
	Redact func(values ...string)
}

// Sealer encrypts what is stored for a user.
type Sealer interface {
	Seal(ctx context.Context, user, field string, plaintext []byte) ([]byte, error)
	Open(ctx context.Context, user, field string, sealed []byte) ([]byte, error)
}

// Conflicts counts the requests of a user that named an id of another user.
type Conflicts interface {
	MayConflict(user string) access.Decision
	Conflict(user string)
}

// Workspaces is what the use cases need of the workspace keeper.
type Workspaces interface {
	// Wake makes the keeper look at a conversation: the workspace of a deleted one is removed.
	Wake(id session.ID)
	// CopyAt copies a workspace, with the files of a checkpoint or (0) as they are now, and calls store before the copy can
	// be seen. It returns workspace.ErrNoCopy where a workspace cannot be copied.
	CopyAt(ctx context.Context, from, to session.ID, checkpoint int, store func(context.Context) error) error
	Checkpoints
}

// Feedback removes data about a conversation that is stored outside its log.
type Feedback interface {
	Forget(ctx context.Context, conversation string) error
}

// Attempts are what the use cases need of attempts.
type Attempts interface {
	Feedback
	// Testing reports whether the tests of an attempt are running.
	Testing(id session.ID) bool
}

// Service carries out the use cases. It has no state of its own.
type Service struct{ Config }

// New makes a Service.
func New(c Config) *Service {
	if c.NewID == nil {
		c.NewID = session.NewID
	}
	if c.Admission == nil {
		c.Admission = unlimited{}
	}
	if c.VerifyRepository == nil {
		c.VerifyRepository = func(_ context.Context, _ settings.Settings, provider, repository, _ string) (string, error) {
			return "", &gitprovider.UnreachableError{Repository: repository, Why: []string{"no git provider is configured"}}
		}
	}
	return &Service{c}
}

// Row finds a conversation of the user; one that is deleted or of another user is session.ErrNotFound.
func (s *Service) Row(ctx context.Context, user string, id session.ID) (session.Row, error) {
	r, err := s.Index.Row(ctx, id)
	if err != nil {
		return r, err
	}
	if r.Owner != user || r.Deleted {
		return r, session.ErrNotFound
	}
	return r, nil
}

// change applies a rule to a conversation of the user.
func (s *Service) change(ctx context.Context, user string, id session.ID, rule func(session.State) ([]session.Payload, error)) (session.State, error) {
	return s.Sessions.Update(ctx, id, func(st session.State) ([]session.Payload, error) {
		if !st.Exists() || st.Owner != user {
			return nil, session.ErrNotFound
		}
		return rule(st)
	})
}

// stored reads the settings of a user, without which no conversation works.
func (s *Service) stored(ctx context.Context, user string) (settings.Settings, error) {
	found, err := s.Settings.Get(ctx, user)
	return found, SettingsMissing(err)
}

// SettingsMissing turns settings.ErrNotFound into its refusal.
func SettingsMissing(err error) error {
	if errors.Is(err, settings.ErrNotFound) {
		return NoSettings()
	}
	return err
}

// NoSettings is the refusal for a user without settings.
func NoSettings() *Refusal { return refuse(Unmet, api.CodeSettingsNotFound, "Settings not found") }

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
