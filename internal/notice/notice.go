// Package notice notifies users about their conversations by web push to their browsers and by
// e-mail: when the agent waits for a reply or an approval, has finished, or has failed. Notices
// never contain messages.
//
// Browsers and addresses are receivers of package notify, whose queue makes sure that no event
// is lost when the server dies. Each notice is checked just before it is sent: it is dropped if
// the conversation has moved on or is muted, or if its kind is disabled, and held during quiet
// hours.
package notice

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/datadir"
	"deckhand/internal/idempotency"
	"deckhand/internal/notify"
	"deckhand/internal/notify/mail"
	"deckhand/internal/notify/push"
	"deckhand/internal/queue"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// Kind is the kind of a notice.
type Kind string

// The kinds of notices.
const (
	Approval Kind = "approval"
	Question Kind = "question"
	Finished Kind = "finished"
	Failed   Kind = "failed"
)

// Kinds lists all kinds.
var Kinds = []Kind{Approval, Question, Finished, Failed}

// maxMuted is the maximum number of muted conversations of a user.
const maxMuted = 1000

// attemptTime is the timeout for a push service.
const attemptTime = 10 * time.Second

// RefusedError says why a request cannot be carried out, and what to do instead.
type RefusedError struct{ Msg string }

func (e *RefusedError) Error() string { return e.Msg }

// Config is what a Service needs.
type Config struct {
	Receivers *notify.Records
	Seal      notify.Sealer
	Settings  *settings.Service
	// Linked returns the identity provider's data on a user's address; access.ErrNotFound.
	Linked func(ctx context.Context, user string) (access.Email, error)
	// Load returns the state of a conversation; session.ErrNotFound.
	Load func(ctx context.Context, id session.ID) (session.State, error)
	// Mail sends e-mail; nil on a server without e-mail.
	Mail *mail.Server
	// Client checks the addresses that it dials.
	Client *http.Client
	// CheckURL returns an error for a URL that Client would not dial; nil accepts all URLs.
	CheckURL func(ctx context.Context, u *url.URL) error
	// Key is secret, and the same after a restart.
	Key [32]byte
	// Base is the URL of this server as users see it.
	Base func() string
	// Redact registers secrets that must not appear in a log.
	Redact func(values ...string)
}

// Service manages users' notification settings and sends notices.
type Service struct {
	Config
	keys   *push.Keys
	events notify.Events
}

var _ notify.Announcer = (*Service)(nil)

// Open returns a Service with the key stored in the data folder and the mail server of the flags,
// whose password is passed to keep.
func Open(ctx context.Context, f mail.Flags, db datadir.Meta, keyring *secret.Keyring, keep func(...string), c Config) (*Service, error) {
	var err error
	if c.Mail, err = f.Open(keep); err != nil {
		return nil, err
	}
	c.Seal = keyring
	if c.Key, err = datadir.Key(ctx, db, keyring, "notice_key", "notice key"); err != nil {
		return nil, err
	}
	return New(c)
}

// New returns a Service.
func New(c Config) (*Service, error) {
	own := *c.Client
	own.Timeout = attemptTime
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Client = &own
	keys, err := push.NewKeys(c.Key[:])
	if err != nil {
		return nil, err
	}
	return &Service{Config: c, keys: keys, events: notify.Of(session.NewsFinished) | notify.Of(session.NewsNeedsApproval)}, nil
}

// MailsVerification reports whether addresses are verified by a link sent by e-mail.
func (s *Service) MailsVerification() bool { return s != nil && s.Mail != nil }

// id returns the ID of a receiver, which is always the same for a name.
func (s *Service) id(kind notify.Kind, name string) string {
	return string(kind) + "_" + hex.EncodeToString(s.mac("receiver", name)[:12])
}

// mac authenticates texts.
func (s *Service) mac(texts ...string) []byte {
	h := hmac.New(sha256.New, s.Key[:])
	h.Write([]byte(idempotency.Digest(texts...)))
	return h.Sum(nil)
}

// Preferences are the notification settings of a user.
type Preferences struct {
	// Events are the kinds of notices to send.
	Events []Kind
	// Email is true for notices by e-mail.
	Email bool
	Quiet *settings.QuietHours
	Muted []string
}

// Status is the notification settings and devices of a user.
type Status struct {
	Preferences
	// PushKey is the key that browsers subscribe with.
	PushKey string
	Devices []Device
	// Address is the user's e-mail address, Confirmed whether it is verified, and
	// Pending whether a link was sent to it that is still valid.
	Address            string
	Confirmed, Pending bool
	// Mails is true on a server that sends e-mail.
	Mails bool
}

// Get returns the notification settings and devices of a user.
func (s *Service) Get(ctx context.Context, user string) (Status, error) {
	st := Status{PushKey: s.keys.Public(), Mails: s.Mail != nil}
	var err error
	if st.Devices, err = s.Devices(ctx, user); err != nil {
		return st, err
	}
	set, err := s.settings(ctx, user)
	if err != nil {
		return st, err
	}
	n := set.Notifications
	for _, k := range Kinds {
		if !slices.Contains(n.Off, string(k)) {
			st.Events = append(st.Events, k)
		}
	}
	st.Quiet, st.Muted = n.Quiet, n.Muted
	if st.Address, st.Confirmed, err = s.address(ctx, user, set); err != nil {
		return st, err
	}
	w, pending, found, err := s.mailbox(ctx, user)
	st.Email = found && w.Enabled
	st.Pending = found && pending.open(st.Address, time.Now())
	return st, err
}

// settings returns the user's settings, or the defaults.
func (s *Service) settings(ctx context.Context, user string) (settings.Settings, error) {
	set, err := s.Settings.Get(ctx, user)
	if errors.Is(err, settings.ErrNotFound) {
		return settings.Defaults(), nil
	}
	return set, err
}

// address returns the user's e-mail address, and whether it is verified.
func (s *Service) address(ctx context.Context, user string, set settings.Settings) (string, bool, error) {
	e, err := s.Linked(ctx, user)
	if err != nil && !errors.Is(err, access.ErrNotFound) {
		return "", false, err
	}
	address, confirmed := set.Address(e.Address, e.Verified)
	return address, confirmed, nil
}

// Change is a change of notification settings; nil fields stay unchanged.
type Change struct {
	Events *[]Kind
	Email  *bool
	// Quiet is the new quiet hours, which may be nil, if SetQuiet is true.
	Quiet    *settings.QuietHours
	SetQuiet bool
}

// Change changes the notification settings of a user.
func (s *Service) Change(ctx context.Context, user string, c Change) error {
	if c.Quiet != nil {
		if field, msg := c.Quiet.Check(); field != "" {
			return &notify.InvalidError{Field: "quiet_hours." + field, Msg: msg}
		}
	}
	if c.Email != nil {
		if err := s.enableMail(ctx, user, *c.Email); err != nil {
			return err
		}
	}
	if c.Events == nil && !c.SetQuiet {
		return nil
	}
	err := s.changePreferences(ctx, user, func(n *settings.Notifications) {
		if c.Events != nil {
			n.Off = nil
			for _, k := range Kinds {
				if !slices.Contains(*c.Events, k) {
					n.Off = append(n.Off, string(k))
				}
			}
		}
		if c.SetQuiet {
			n.Quiet = c.Quiet
		}
	})
	if err == nil && c.SetQuiet { // check held notices again
		err = s.Receivers.Hasten(ctx, user, queue.Now())
	}
	return err
}

// Mute mutes or unmutes a user's conversation.
func (s *Service) Mute(ctx context.Context, user string, id session.ID, muted bool) error {
	st, err := s.Load(ctx, id)
	if err != nil || st.Owner != user || st.Deleted {
		if err == nil || errors.Is(err, session.ErrNotFound) {
			err = notify.ErrNotFound
		}
		return err
	}
	return s.changePreferences(ctx, user, func(n *settings.Notifications) {
		n.Muted = slices.DeleteFunc(n.Muted, func(m string) bool { return m == string(id) })
		if muted {
			n.Muted = append(n.Muted, string(id))
			n.Muted = n.Muted[max(0, len(n.Muted)-maxMuted):]
		}
	})
}

// changePreferences stores a change. It does not create settings: a user without settings has no
// conversation that could send a notice, and must still see the first steps.
func (s *Service) changePreferences(ctx context.Context, user string, change func(*settings.Notifications)) error {
	if err := s.Settings.Read(ctx, user, func(*settings.Settings) {}); err != nil {
		return err
	}
	return s.Settings.Change(ctx, user, func(set *settings.Settings) error {
		change(&set.Notifications)
		return nil
	})
}
