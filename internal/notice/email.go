package notice

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/notify"
	"deckhand/internal/notify/mail"
	"deckhand/internal/queue"
	"deckhand/internal/settings"
)

const (
	// linkTime is the lifetime of a verification link. The texts mention it.
	linkTime = 24 * time.Hour
	// maxLinks is the maximum number of links sent for a user within linkSpan, so that a server cannot
	// be used to send unwanted e-mail.
	maxLinks = 5
	linkSpan = time.Hour
)

// pending is the secret part of a user's mailbox: the last verification link. It is valid
// for one address and works once: Nonce is empty after that.
type pending struct {
	Address string      `json:"address,omitempty"`
	Nonce   string      `json:"nonce,omitempty"`
	Expires time.Time   `json:"expires,omitzero"`
	Sent    []time.Time `json:"sent,omitempty"`
}

// open reports whether the link is still valid for an address.
func (p pending) open(address string, now time.Time) bool {
	return p.Nonce != "" && now.Before(p.Expires) && strings.EqualFold(p.Address, address)
}

// token returns the token in the link. It is not stored.
func (s *Service) token(user string, p pending) string {
	return base64.RawURLEncoding.EncodeToString(s.mac("verify e-mail", user, strings.ToLower(p.Address), p.Nonce, strconv.FormatInt(p.Expires.Unix(), 10)))
}

// mailbox returns the receiver for a user's e-mail; false if there is none yet.
func (s *Service) mailbox(ctx context.Context, user string) (w notify.Webhook, p pending, found bool, err error) {
	all, err := s.Receivers.Webhooks(ctx, user, notify.KindMail)
	if err != nil || len(all) == 0 {
		return w, p, false, err
	}
	return all[0], p, true, s.open(ctx, all[0], &p)
}

// changeMailbox updates the mailbox, and creates it if needed. change is called again after a
// concurrent change.
func (s *Service) changeMailbox(ctx context.Context, user string, change func(*notify.Webhook, *pending) error) error {
	stale := errors.New("the mailbox was changed at the same time")
	for range 10 {
		now := queue.Now()
		w, p, found, err := s.mailbox(ctx, user)
		if err != nil {
			return err
		}
		if !found {
			w = notify.Webhook{ID: s.id(notify.KindMail, user), User: user, Events: s.events, CreatedAt: now, ChangedAt: now}
		}
		if err := change(&w, &p); err != nil {
			return err
		}
		if w.Sealed, err = s.seal(ctx, w, p); err != nil {
			return err
		}
		if !found {
			return s.Receivers.AddWebhook(ctx, w)
		}
		_, err = s.Receivers.ChangeWebhook(ctx, user, w.ID, now, func(is *notify.Webhook) error {
			if !is.ChangedAt.Equal(w.ChangedAt) {
				return stale
			}
			is.Enabled, is.Sealed, is.Health = w.Enabled, w.Sealed, notify.Health{}
			return nil
		})
		if !errors.Is(err, stale) {
			return err
		}
	}
	return stale
}

// errNoMail is returned on a server without e-mail.
var errNoMail = &RefusedError{"This server does not send e-mail. The operator can enable it with --smtp-url."}

// enableMail turns notices by e-mail on or off.
func (s *Service) enableMail(ctx context.Context, user string, on bool) error {
	if on && s.Mail == nil {
		return errNoMail
	}
	if _, _, found, err := s.mailbox(ctx, user); err != nil || !found && !on {
		return err
	}
	return s.changeMailbox(ctx, user, func(w *notify.Webhook, _ *pending) error {
		w.Enabled = on
		return nil
	})
}

// RequestVerification sends a link to the user's address that verifies it.
// Earlier links become invalid.
func (s *Service) RequestVerification(ctx context.Context, user string) error {
	if s.Mail == nil {
		return errNoMail
	}
	set, err := s.settings(ctx, user)
	if err != nil {
		return err
	}
	address, confirmed, err := s.address(ctx, user, set)
	switch {
	case err != nil:
		return err
	case address == "":
		return &RefusedError{"Enter your e-mail address in Settings > Account first."}
	case confirmed:
		return &RefusedError{"Your e-mail address is already verified."}
	}
	var link pending
	err = s.changeMailbox(ctx, user, func(w *notify.Webhook, p *pending) error {
		now := queue.Now()
		p.Sent = slices.DeleteFunc(p.Sent, func(at time.Time) bool { return now.Sub(at) > linkSpan })
		if len(p.Sent) >= maxLinks {
			return &RefusedError{"Too many verification e-mails were sent. Try again in an hour."}
		}
		*p = pending{Address: address, Nonce: rand.Text(), Expires: now.Add(linkTime), Sent: append(p.Sent, now)}
		link = *p
		return nil
	})
	if err != nil {
		return err
	}
	token := s.token(user, link)
	if s.Redact != nil {
		s.Redact(token)
	}
	text := messagesIn(language(set))
	err = s.Mail.Send(ctx, mail.Message{To: address, Subject: text.verify, ID: "verify-" + link.Nonce, Date: time.Now(),
		Text: text.verifyText + "\n\n" + s.Base() + "/settings/notifications#verify=" + token + "\n\n" + text.verifyIgnore + "\n"})
	if refused := (*mail.Error)(nil); errors.As(err, &refused) {
		return &RefusedError{"The e-mail was not sent: " + refused.Msg + ". Check the address, or ask the operator of this server."}
	}
	return err
}

// Verify verifies the user's address with the token of a link. A token works once, and only for
// the address that it was sent to.
func (s *Service) Verify(ctx context.Context, user, token string) (string, error) {
	wrong := &RefusedError{"The link is invalid, has expired or was already used. Request a new one in Settings > Notifications, logged in as the user who requested it."}
	set, err := s.settings(ctx, user)
	if err != nil {
		return "", err
	}
	address, _, err := s.address(ctx, user, set)
	if err != nil {
		return "", err
	}
	var confirmed string
	err = s.changeMailbox(ctx, user, func(_ *notify.Webhook, p *pending) error {
		if !p.open(address, time.Now()) || !hmac.Equal([]byte(s.token(user, *p)), []byte(token)) {
			return wrong
		}
		confirmed = p.Address
		p.Address, p.Nonce, p.Expires = "", "", time.Time{}
		return nil
	})
	if err != nil {
		return "", err
	}
	return confirmed, s.Settings.Change(ctx, user, func(set *settings.Settings) error {
		if has, _ := set.Address(address, false); !strings.EqualFold(has, confirmed) {
			return wrong // the address was changed concurrently
		}
		set.VerifiedEmail = confirmed
		return nil
	})
}

// language returns the code of the user's language.
func language(set settings.Settings) string {
	if set.Language == nil {
		return "en"
	}
	return *set.Language
}
