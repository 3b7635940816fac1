package agent

import (
	"context"
	"slices"
	"strings"

	"deckhand/internal/clip"
	"deckhand/internal/session"
)

// recall finds what the agent should know about the messages it is about to be shown.
func (l *Loop) recall(ctx context.Context, w *worker, st session.State, t *transcript) (out []session.Payload) {
	if l.Recall == nil {
		return nil
	}
	known := t.known
	for _, m := range t.news(st.Shown) {
		if t.recalled[m.number] {
			continue
		}
		t.recalled[m.number] = true
		r, err := l.Recall(ctx, st, session.UserSaid{Text: m.Text}, Occasion{First: m.number == t.first, Known: known})
		if err != nil {
			// What could be known is not known; that is no reason not to answer.
			l.Logger.Warn("cannot recall knowledge for a message", "session", w.id, "error", err)
			continue
		}
		if r.Text == "" {
			continue
		}
		r.Of = m.number
		about := session.RecallAsked{Of: m.number, Type: "knowledge", Query: clip.Start(m.Text, maxQuery)}
		if m.number == t.first {
			about.Type = "workspace_context"
		}
		for _, item := range r.Items {
			known = append(known, item.Name)
		}
		out = append(out, about, r)
	}
	return out
}

// recalling returns a rule that records what was recalled.
func recalling(found []session.Payload) func(session.State) ([]session.Payload, error) {
	return func(s session.State) ([]session.Payload, error) {
		if len(found) > 0 && (!s.InTurn || s.Paused) {
			return nil, session.ErrRefused
		}
		return numbered(found, s.Last), nil
	}
}

// forget makes the next step recall for these messages again, because what was found was not recorded.
func (t *transcript) forget(found []session.Payload) {
	for _, p := range found {
		if r, ok := p.(session.Recalled); ok {
			delete(t.recalled, r.Of)
		}
	}
}

// recalledWeight is what the texts add to the next request.
func recalledWeight(found []session.Payload) (n int64) {
	for _, p := range found {
		if r, ok := p.(session.Recalled); ok {
			n += weight(recalledEntry(r))
		}
	}
	return n
}

// numbered gives each Recalled the number of the RecallAsked before it; last is
// the number of the event before them all.
func numbered(out []session.Payload, last int64) []session.Payload {
	out = slices.Clone(out)
	for i, p := range out {
		if r, ok := p.(session.Recalled); ok {
			r.Asked = last + int64(i)
			out[i] = r
		}
	}
	return out
}

// maxQuery is how much of a message a RecallAsked repeats, in bytes.
const maxQuery = 1024

// picture replaces the addresses of images by the images, once each.
func (l *Loop) picture(ctx context.Context, t *transcript) {
	if l.Picture == nil {
		return
	}
	for ; t.pictured < len(t.shown); t.pictured++ {
		m := &t.shown[t.pictured]
		if len(m.Images) == 0 {
			continue
		}
		var got []string
		for _, url := range m.Images {
			image, err := l.Picture(ctx, url)
			if err != nil {
				m.Text = strings.TrimSpace(m.Text + "\n\n[An image could not be loaded: " + err.Error() + "]")
				continue
			}
			got = append(got, image)
		}
		m.Images = got
		t.messages[t.pictured].Message = *m // when the rest is summarised, this one stays as it is
	}
}
