package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"deckhand/internal/clip"
	"deckhand/internal/notify"
	"deckhand/internal/notify/mail"
	"deckhand/internal/notify/push"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

const (
	// pushKeep is the time for which a push service keeps a notice for a browser that is not running.
	pushKeep = 12 * time.Hour
	// maxTitle is the maximum length of a title in bytes.
	maxTitle = 200
	// maxAnswer is the number of bytes of a response that are read and discarded, so that the connection can be
	// reused.
	maxAnswer = 64 << 10
)

// kindOf returns the kind of notice for a delivery; false if there is none to send.
func kindOf(d notify.Delivery, a notify.About) (Kind, bool) {
	if d.Type == "conversation."+string(session.NewsNeedsApproval) {
		return Approval, true
	}
	if a.ParentID != "" {
		return "", false // a parent agent asked for it and is notified
	}
	switch {
	case a.AgentState == session.AgentError || a.Status == session.Halted && a.ErrorID != "":
		return Failed, true
	case a.AgentState == session.AgentFinished:
		return Finished, true
	case a.AgentState == session.AgentAwaitingUser:
		return Question, true
	}
	return "", false // the user stopped or rejected it
}

// current reports whether a notice still applies.
func current(k Kind, event int64, st session.State) bool {
	if k == Approval {
		return slices.ContainsFunc(st.Open, session.OpenCall.Awaits)
	}
	return !st.Busy() && st.LastSaid <= event
}

// Announce implements notify.Announcer.
func (s *Service) Announce(ctx context.Context, w notify.Webhook, d notify.Delivery) notify.Result {
	set, err := s.settings(ctx, w.User)
	if err != nil {
		return notify.Result{Problem: "cannot read the settings of the user"}
	}
	text := messagesIn(language(set))
	about, real := d.Read()
	if !real {
		return s.push(ctx, w, pushPayload{Title: text.test, Body: text.testText, Path: "settings/notifications", Tag: d.ID}, false)
	}
	kind, tell := kindOf(d, about)
	if !tell {
		return notify.Result{Skipped: "not announced"}
	}
	st, r := s.decide(ctx, w, kind, about, set.Notifications)
	if r != (notify.Result{}) {
		return r
	}
	title := clip.Bytes(plainTitle(st.Title), maxTitle)
	if notify.KindOf(w.ID) == notify.KindMail {
		return s.mail(ctx, w, d, set, text.of(kind)+": "+title)
	}
	return s.push(ctx, w, pushPayload{Title: title, Body: text.of(kind), Path: "conversations/" + string(st.ID), Tag: string(st.ID), Event: about.Event}, kind == Approval || kind == Question)
}

// plainTitle returns a title without line breaks and invisible characters, so that it cannot imitate another part of a
// message.
func plainTitle(title string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(title, ""))
	return clip.Line(visible)
}

// decide reports whether a notice is sent now.
func (s *Service) decide(ctx context.Context, w notify.Webhook, kind Kind, about notify.About, n settings.Notifications) (session.State, notify.Result) {
	if slices.Contains(n.Off, string(kind)) || slices.Contains(n.Muted, string(about.ConversationID)) {
		return session.State{}, notify.Result{Skipped: "turned off"}
	}
	st, err := s.Load(ctx, about.ConversationID)
	switch {
	case errors.Is(err, session.ErrNotFound), err == nil && (st.Deleted || st.Owner != w.User):
		return st, notify.Result{Skipped: "the conversation was deleted"}
	case err != nil:
		return st, notify.Result{Problem: "cannot read the conversation"}
	case !current(kind, about.Event, st):
		return st, notify.Result{Skipped: "the conversation has moved on"}
	}
	if n.Quiet != nil {
		if until, quiet := n.Quiet.Until(time.Now()); quiet {
			return st, notify.Result{NotBefore: until}
		}
	}
	return st, notify.Result{}
}

// pushPayload is the payload for the page's service worker. A notice replaces an earlier one with the
// same tag, so that one that arrives twice is shown once.
type pushPayload struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Path  string `json:"path"`
	Tag   string `json:"tag"`
	// Event distinguishes a new event under the same tag from a repeated one.
	Event int64 `json:"event"`
}

// push sends a notice to a browser.
func (s *Service) push(ctx context.Context, w notify.Webhook, m pushPayload, urgent bool) notify.Result {
	var sub push.Subscription
	if err := s.open(ctx, w, &sub); err != nil {
		return notify.Result{Problem: "cannot decrypt the subscription"}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return notify.Result{Problem: "the message cannot be created", Final: true}
	}
	req, err := s.keys.Request(ctx, sub, push.Message{Text: text, Topic: m.Tag, Keep: pushKeep, Urgent: urgent, Subject: s.contact()}, time.Now())
	if err != nil {
		return notify.Result{Problem: "the message cannot be created", Final: true}
	}
	res, err := s.Client.Do(req)
	if err != nil {
		return notify.Result{Problem: notify.Explain(err)}
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	r := notify.Result{Status: res.StatusCode}
	switch code := res.StatusCode; {
	case code >= 200 && code < 300:
	case code == http.StatusNotFound || code == http.StatusGone:
		r.Gone = true
	default:
		r.Problem = fmt.Sprintf("the push service responded with %d %s", code, http.StatusText(code))
		r.Final = code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
		r.Later = notify.RetryAfter(res.Header.Get("Retry-After"), time.Now())
	}
	return r
}

// contact is the contact address of this server for the operators of push services.
func (s *Service) contact() string {
	if base := s.Base(); strings.HasPrefix(base, "https://") {
		return base
	}
	if s.Mail != nil {
		return "mailto:" + s.Mail.From()
	}
	return ""
}

// mail sends a notice by e-mail, if the user's address is verified.
func (s *Service) mail(ctx context.Context, w notify.Webhook, d notify.Delivery, set settings.Settings, subject string) notify.Result {
	if s.Mail == nil {
		return notify.Result{Skipped: "this server does not send e-mail"}
	}
	address, confirmed, err := s.address(ctx, w.User, set)
	if err != nil {
		return notify.Result{Problem: "cannot read the address of the user"}
	}
	if !confirmed {
		return notify.Result{Skipped: "the address is not verified"}
	}
	text := messagesIn(language(set))
	err = s.Mail.Send(ctx, mail.Message{To: address, Subject: subject, ID: d.ID, Date: d.CreatedAt,
		Text: subject + "\n\n" + text.open + "\n" + s.Base() + "/conversations/" + string(d.Session) +
			"\n\n" + text.change + "\n" + s.Base() + "/settings/notifications\n"})
	if refused := (*mail.Error)(nil); errors.As(err, &refused) {
		return notify.Result{Problem: refused.Msg, Final: refused.Permanent}
	}
	if err != nil {
		return notify.Result{Problem: "the e-mail was not sent"}
	}
	return notify.Result{}
}
