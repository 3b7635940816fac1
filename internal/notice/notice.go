// Package notice tells people about their conversations when they are not looking: by web push to
// their browsers and by e-mail to their address. The agent waits for an answer or an approval, has
// finished, or has failed; nothing else is announced, and never what was said.
//
// Browsers and addresses are receivers of package notify, whose queue makes sure that each event
// is announced although the server dies. Whether something is announced is decided when it is
// about to be sent: a conversation that has moved on is not, a muted one is not, and quiet hours
// are waited for.
package notice

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
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

// Kind is what a notice says.
type Kind string

// The kinds of notices.
const (
	Approval Kind = "approval"
	Question Kind = "question"
	Finished Kind = "finished"
	Failed   Kind = "failed"
)

// Kinds are all of them.
var Kinds = []Kind{Approval, Question, Finished, Failed}

// maxMuted is how many muted conversations are remembered for a user.
const maxMuted = 1000

// attemptTime is how long a push service may take to respond.
const attemptTime = 10 * time.Second

// RefusedError says why something cannot be done now, and what to do instead.
type RefusedError struct{ Msg string }

func (e *RefusedError) Error() string { return e.Msg }

// Config is what a Service needs.
type Config struct {
	Receivers *notify.Records
	Seal      notify.Sealer
	Settings  *settings.Service
	// Linked is what the identity provider says of a user's address; access.ErrNotFound.
	Linked func(ctx context.Context, user string) (access.Email, error)
	// Load is the state of a conversation; session.ErrNotFound.
	Load func(ctx context.Context, id session.ID) (session.State, error)
	// Mail sends e-mail; nil on a server without.
	Mail *mail.Server
	// Client decides which addresses may be dialled.
	Client *http.Client
	// Key is secret, and the same after a restart.
	Key [32]byte
	// Base is the URL of this server as users see it.
	Base func() string
	// Redact learns secrets that must not reach a log.
	Redact func(values ...string)
}

// Service manages what a user wants to be told, and tells it.
type Service struct {
	Config
	keys   *push.Keys
	events notify.Events
}

var _ notify.Announcer = (*Service)(nil)

// Open makes a Service with the key that is kept in the data folder and the mail server of the flags,
// whose password is given to keep.
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

// New makes a Service.
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

// MailsVerification is true where addresses are confirmed by a mailed link.
func (s *Service) MailsVerification() bool { return s != nil && s.Mail != nil }

// id is the ID of a receiver that has a name: the same for the same name.
func (s *Service) id(kind notify.Kind, name string) string {
	return string(kind) + "_" + hex.EncodeToString(s.mac("receiver", name)[:12])
}

// mac authenticates texts.
func (s *Service) mac(texts ...string) []byte {
	h := hmac.New(sha256.New, s.Key[:])
	h.Write([]byte(idempotency.Digest(texts...)))
	return h.Sum(nil)
}

// Wishes are what a user wants.
type Wishes struct {
	// Events are the kinds of notices.
	Events []Kind
	// Email is true for notices by e-mail.
	Email bool
	Quiet *settings.QuietHours
	Muted []string
}

// Status is everything about a user's notices.
type Status struct {
	Wishes
	// PushKey is the key that browsers subscribe with.
	PushKey string
	Devices []Device
	// Address is the user's e-mail address, Confirmed whether it is theirs for certain, and
	// Pending whether a link was mailed to it that can still be opened.
	Address            string
	Confirmed, Pending bool
	// Mails is true on a server that sends e-mail.
	Mails bool
}

// Get is everything about a user's notices.
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

// settings are the user's, or the defaults.
func (s *Service) settings(ctx context.Context, user string) (settings.Settings, error) {
	set, err := s.Settings.Get(ctx, user)
	if errors.Is(err, settings.ErrNotFound) {
		return settings.Defaults(), nil
	}
	return set, err
}

// address is where a user gets e-mail, and whether it is confirmed.
func (s *Service) address(ctx context.Context, user string, set settings.Settings) (string, bool, error) {
	e, err := s.Linked(ctx, user)
	if err != nil && !errors.Is(err, access.ErrNotFound) {
		return "", false, err
	}
	address, confirmed := set.Address(e.Address, e.Verified)
	return address, confirmed, nil
}

// Change is what a user wants different; nil fields stay.
type Change struct {
	Events *[]Kind
	Email  *bool
	// Quiet is the new quiet hours, which may be nil, if SetQuiet is true.
	Quiet    *settings.QuietHours
	SetQuiet bool
}

// Change changes what a user wants.
func (s *Service) Change(ctx context.Context, user string, c Change) error {
	if c.Quiet != nil {
		if field, msg := c.Quiet.Check(); field != "" {
			return &notify.InvalidError{Field: "quiet_hours." + field, Msg: msg}
		}
	}
	if c.Email != nil {
		if err := s.wantMail(ctx, user, *c.Email); err != nil {
			return err
		}
	}
	if c.Events == nil && !c.SetQuiet {
		return nil
	}
	err := s.changeWishes(ctx, user, func(n *settings.Notifications) {
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
	if err == nil && c.SetQuiet { // what waits is looked at again
		err = s.Receivers.Hasten(ctx, user, queue.Now())
	}
	return err
}

// Mute makes a conversation of a user's send no notices, or send them again.
func (s *Service) Mute(ctx context.Context, user string, id session.ID, muted bool) error {
	st, err := s.Load(ctx, id)
	if err != nil || st.Owner != user || st.Deleted {
		if err == nil || errors.Is(err, session.ErrNotFound) {
			err = notify.ErrNotFound
		}
		return err
	}
	return s.changeWishes(ctx, user, func(n *settings.Notifications) {
		n.Muted = slices.DeleteFunc(n.Muted, func(m string) bool { return m == string(id) })
		if muted {
			n.Muted = append(n.Muted, string(id))
			n.Muted = n.Muted[max(0, len(n.Muted)-maxMuted):]
		}
	})
}

// changeWishes stores a change. Without stored settings there is no conversation that could send
// a notice, and none are made by this: a user without settings is shown the first steps.
func (s *Service) changeWishes(ctx context.Context, user string, change func(*settings.Notifications)) error {
	if err := s.Settings.Read(ctx, user, func(*settings.Settings) {}); err != nil {
		return err
	}
	return s.Settings.Change(ctx, user, func(set *settings.Settings) error {
		change(&set.Notifications)
		return nil
	})
}
