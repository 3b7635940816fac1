package conversations

import (
	"context"
	"encoding/json"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const aboutQueue = "The agent reads queued messages at the start of a turn or, during a turn, with the next model call. Stopping the conversation moves queued messages to the history."

// maxQueued is how many messages are shown.
const maxQueued = 100

// getQueue reads the log only from where a message may wait.
func (d *Handlers) getQueue(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.MessageQueue, error) {
	out := api.MessageQueue{Messages: []api.QueuedMessage{}}
	st, err := d.load(ctx, c, p.ID)
	if err != nil {
		return out, err
	}
	q := newQueue(st)
	if !st.Pending() && st.Spoke == 0 {
		return out, nil
	}
	for e, err := range d.Log.Read(ctx, st.ID, q.after) {
		if err != nil {
			return out, err
		}
		if e.Number > st.Last {
			break
		}
		q.add(e)
	}
	for _, e := range q.waiting {
		if out.HasMore = len(out.Messages) == maxQueued; out.HasMore {
			break
		}
		m, err := d.queued(ctx, st.Owner, e)
		if err != nil {
			return out, err
		}
		out.Messages = append(out.Messages, m)
	}
	return out, nil
}

// queued is a message as a client may see it.
func (d *Handlers) queued(ctx context.Context, owner string, e session.Event) (api.QueuedMessage, error) {
	said := e.Payload.(session.UserSaid)
	m := api.QueuedMessage{EventID: e.Number, Content: said.Text, ImageURLs: said.Images, SaidAt: e.At}
	if m.ImageURLs == nil {
		m.ImageURLs = []string{}
	}
	b, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	if b, err = d.Queries.Masked(ctx, owner, b); err != nil {
		return m, err
	}
	var shown api.QueuedMessage
	err = json.Unmarshal(b, &shown)
	return shown, err
}

// queue finds the messages that wait, from the events of a log after some number.
type queue struct {
	after   int64
	waiting []session.Event // each a UserSaid
	// inTurn says that a turn is under way, so that one which begins has taken up
	// what was said before it: one that failed has not. replaying says that what
	// people say waits for the end of a recording.
	inTurn, replaying bool
}

func newQueue(st session.State) *queue {
	q := &queue{after: st.Seen, inTurn: st.InTurn, replaying: st.Spoke > 0}
	if st.InTurn {
		q.after = max(st.Seen, st.Shown)
	}
	if q.replaying {
		q.after = st.Spoke - 1
	}
	return q
}

func (q *queue) add(e session.Event) {
	switch p := e.Payload.(type) {
	case session.UserSaid:
		if !p.Recorded() { // the replay itself answers what it says
			q.waiting = append(q.waiting, e)
		}
	case session.TurnBegan:
		if q.inTurn && !q.replaying {
			q.waiting = nil
		}
	}
}
