package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/gitprovider"
	"deckhand/internal/idempotency"
	"deckhand/internal/queue"
)

// Receiver takes what providers send.
type Receiver struct {
	inbox  Inbox
	seal   Sealer
	logger *slog.Logger
	// wake tells who does the work that there is some.
	wake func()
	// turn lets one check of signatures happen at a time: strangers choose how much
	// there is to hash, and shall not keep more than one core busy with it.
	turn chan struct{}
}

// NewReceiver makes one. wake is called after something to do was recorded, and
// must not block.
func NewReceiver(inbox Inbox, seal Sealer, wake func(), logger *slog.Logger) *Receiver {
	return &Receiver{inbox: inbox, seal: seal, wake: wake, logger: logger, turn: make(chan struct{}, 1)}
}

// Receipt says what became of a delivery, to who sent it.
type Receipt struct {
	State State
	// Known is true if it was recorded before; nothing was done then.
	Known bool
	// Reason is why it is ignored.
	Reason string
}

// task is what is recorded of an event that something is to be done about.
type task struct {
	Title   string   `json:"title,omitempty"`
	URL     string   `json:"url,omitempty"`
	Text    string   `json:"text,omitempty"`
	Actors  []string `json:"actors"`
	Branch  string   `json:"branch,omitempty"`
	Comment bool     `json:"comment,omitempty"`
	// Label is the one that the issue has, if it is not known that the actors gave it.
	Label string `json:"label,omitempty"`
}

// maxText is how much of a text is kept: a comment of that length says nothing
// that a shorter one does not.
const maxText = 64 << 10

// Receive checks a delivery and records it, durably when it returns. id names
// the integration that it is for, or is empty. ErrNotFound for a provider that
// there is not, ErrUnsigned, ErrUnreadable.
func (r *Receiver) Receive(ctx context.Context, provider, id string, h http.Header, body []byte) (Receipt, error) {
	from, ok := readerOf(provider)
	if !ok {
		return Receipt{}, ErrNotFound
	}
	in, err := r.whose(ctx, from, provider, id, h, body)
	if err != nil {
		return Receipt{}, err
	}
	print := idempotency.Digest(string(body))
	d := Delivery{Integration: in.ID, ID: deliveryID(from, h, print), Print: print, CreatedAt: queue.Now(), State: Ignored}
	e, unreadable := from.parse(h, body)
	d.Event, d.Thread = e.Name, e.Thread
	if len(e.Actors) > 0 {
		d.Actor = clip.Start(e.Actors[0], 200)
	}
	switch reason := decide(in, e, d.CreatedAt); {
	case unreadable != nil:
		d.Reason = "The delivery cannot be read."
	case reason != "":
		d.Reason = reason
	default:
		d.State, d.NextAt = Waiting, d.CreatedAt
		if d.Task, err = json.Marshal(taskOf(in, e)); err != nil {
			return Receipt{}, err
		}
	}
	if d.State == Ignored {
		d.DoneAt = d.CreatedAt
	}
	fresh, err := r.inbox.Record(ctx, d)
	switch {
	case err != nil:
		return Receipt{}, err
	case unreadable != nil:
		return Receipt{}, ErrUnreadable
	case fresh && d.State == Waiting:
		r.wake()
	}
	r.logger.Debug("delivery received", "integration", in.ID, "event", d.Event, "state", d.State, "known", !fresh, "reason", d.Reason)
	return Receipt{State: d.State, Known: !fresh, Reason: d.Reason}, nil
}

func taskOf(in Integration, e event) task {
	t := task{Title: clip.Bytes(e.Title, 1000), URL: clip.Start(e.URL, 1000), Text: clip.Bytes(e.Text, maxText), Actors: e.Actors, Branch: e.Branch, Comment: e.Kind == commented}
	if e.Kind == labelled && e.Label == "" {
		t.Label = in.Label
	}
	return t
}

// whose finds the integration whose secret fits.
func (r *Receiver) whose(ctx context.Context, from reader, provider, id string, h http.Header, body []byte) (Integration, error) {
	found, err := r.inbox.Listening(ctx, provider, id)
	if err != nil {
		return Integration{}, err
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return Integration{}, ctx.Err()
	}
	defer func() { <-r.turn }()
	now := time.Now()
	for _, in := range found {
		s, err := openSecrets(ctx, r.seal, in)
		if err != nil { // others must not suffer for it
			r.logger.Error("cannot decrypt an integration secret", "integration", in.ID, "error", err)
			continue
		}
		if slices.ContainsFunc(s.Good(now), func(secret string) bool { return from.Signed(h, body, secret) }) {
			return in, nil
		}
	}
	return Integration{}, ErrUnsigned
}

// decide says why nothing is to be done about an event, or nothing.
func decide(in Integration, e event, now time.Time) (reason string) {
	marked := in.Label != "" && slices.ContainsFunc(e.Labels, func(l string) bool { return strings.EqualFold(l, in.Label) })
	called := e.Wrote && mentions(e.Text, in.Mention)
	switch {
	case e.Kind == other:
		return "This event type is ignored."
	case gitprovider.Signed(e.Text):
		return "Written by Deckhand itself."
	case (e.Kind == commented || e.Kind == edited) && !called: // whoever gave it the label was asked then
		return "The text does not mention " + in.Mention + "."
	case e.Kind == labelled && (!marked || e.Label != "" && !strings.EqualFold(e.Label, in.Label)):
		return "The label does not match."
	case e.Kind == opened && !marked && !called:
		return "The issue does not have the label, and the text does not mention " + in.Mention + "."
	case !in.listed(e.Repository):
		return "The repository is not in the integration's list of repositories."
	case !in.admits(e.Actors):
		return "The user is not in allowed_users."
	case !e.At.IsZero() && now.Sub(e.At) > KeptFor:
		return fmt.Sprintf("The event is more than %d days old.", int(KeptFor.Hours()/24))
	}
	return ""
}

// deliveryID is the provider's name for the delivery. One that has none is known
// by its content.
func deliveryID(from reader, h http.Header, print string) string {
	for _, name := range from.IDs {
		if v := h.Get(name); v != "" && len(v) <= 200 {
			return v
		}
	}
	return print
}
