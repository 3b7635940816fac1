package chat

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// maxQueued is the maximum number of queued messages that are shown above the prompt.
const maxQueued = 3

// queueLines shows the queued messages.
func (d *drawn) queueLines() []string {
	if len(d.queue.Messages) == 0 {
		return nil
	}
	out := []string{d.paint(faint, d.fit("Queued (↑ edits the last one, /queue lists all)"))}
	hidden := max(0, len(d.queue.Messages)-maxQueued)
	if hidden > 0 {
		out = append(out, d.paint(faint, d.fit(fmt.Sprintf("  … %d more", hidden))))
	}
	for i, m := range d.queue.Messages[hidden:] {
		out = append(out, d.paint(faint, d.fit(fmt.Sprintf("  %d  %s", hidden+i+1, queuedText(m)))))
	}
	return out
}

// queuedText returns a queued message as one line.
func queuedText(m session.Event) string {
	return terminal.Inline(strings.TrimSpace(m.Payload.(session.UserSaid).Text))
}

// queued lists the queued messages.
func (s *conversation) queued() string {
	if len(s.queue.Messages) == 0 {
		return "no queued messages"
	}
	var b strings.Builder
	for i, m := range s.queue.Messages {
		fmt.Fprintf(&b, "%d  %s\n", i+1, queuedText(m))
	}
	return b.String() + prompt.QueueHelp
}

// queueCommand handles /queue.
func (d *drawn) queueCommand(arguments string) tea.Cmd {
	action, at, err := prompt.Queue(arguments, len(d.queue.Messages))
	switch {
	case err != nil:
		d.Problem(err.Error())
		return nil
	case action == "":
		d.Notice(d.queued())
		return nil
	}
	m := d.queue.Messages[at]
	switch action {
	case "edit":
		d.editQueued(m)
	case "delete":
		return d.changeQueued(func(ctx context.Context, id string) error {
			_, err := d.Client.DeleteQueued(ctx, id, m.Number)
			return err
		}, "")
	case "send":
		return d.changeQueued(func(ctx context.Context, id string) error {
			_, err := d.Client.ChangeQueued(ctx, id, m.Number, api.ChangeQueuedMessage{Position: api.Some(0), SendNow: api.Some(true)})
			return err
		}, "")
	}
	return nil
}

// editQueued puts a queued message into the prompt.
func (d *drawn) editQueued(m session.Event) {
	d.draft, d.entry, d.menu, d.editing = d.typed(), aQueued, menu{}, m.Number
	d.set(m.Payload.(session.UserSaid).Text)
}

// saveQueued stores the edited message; an empty one is deleted.
func (d *drawn) saveQueued(text string) tea.Cmd {
	number := d.editing
	d.back()
	return d.changeQueued(func(ctx context.Context, id string) error {
		if text == "" {
			_, err := d.Client.DeleteQueued(ctx, id, number)
			return err
		}
		_, err := d.Client.ChangeQueued(ctx, id, number, api.ChangeQueuedMessage{Content: api.Some(text)})
		return err
	}, text)
}

// changeQueued changes the queue. If that fails, an edited text is put back into the prompt.
func (d *drawn) changeQueued(change func(context.Context, string) error, text string) tea.Cmd {
	return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := cli.Plainly(change(ctx, id))
		return func(d *drawn) {
			if err != nil && d.entry == aMessage && d.typed() == "" {
				d.set(text)
			}
		}, err
	})
}

// back leaves an entry that is not a message, and restores the draft.
func (d *drawn) back() {
	d.entry = aMessage
	d.set(d.draft)
	d.draft = ""
}
