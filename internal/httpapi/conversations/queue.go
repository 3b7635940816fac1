package conversations

import (
	"context"
	"encoding/json"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const aboutQueue = "The agent reads queued messages at the start of a turn or, during a turn, with the next model call. Stopping the conversation moves queued messages to the history."

const aboutRequeue = "Returns the queue. The messages behind a changed one get new IDs. A message that the agent has read is a 409."

// queuedMessage is one message in the queue of a conversation.
type queuedMessage struct {
	ID      string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	EventID int64  `path:"event_id" minimum:"1" doc:"Event of the message."`
}

func (d *Handlers) changeQueued(ctx context.Context, c *rest.Call, p queuedMessage, b api.ChangeQueuedMessage) (api.MessageQueue, error) {
	return d.requeue(ctx, c, p, usecase.QueueChangeOf(b))
}

func (d *Handlers) deleteQueued(ctx context.Context, c *rest.Call, p queuedMessage, _ rest.None) (api.MessageQueue, error) {
	return d.requeue(ctx, c, p, usecase.QueueChange{Delete: true})
}

func (d *Handlers) requeue(ctx context.Context, c *rest.Call, p queuedMessage, change usecase.QueueChange) (api.MessageQueue, error) {
	st, err := d.Service.ChangeQueue(ctx, c.Who.User, session.ID(p.ID), p.EventID, change)
	if err != nil {
		return api.MessageQueue{}, err
	}
	return d.queueOf(ctx, st)
}

// maxQueued is how many messages are shown.
const maxQueued = 100

// getQueue reads the log only from where a message may wait.
func (d *Handlers) getQueue(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.MessageQueue, error) {
	st, err := d.load(ctx, c, p.ID)
	if err != nil {
		return api.MessageQueue{}, err
	}
	return d.queueOf(ctx, st)
}

func (d *Handlers) queueOf(ctx context.Context, st session.State) (api.MessageQueue, error) {
	out := api.MessageQueue{Messages: []api.QueuedMessage{}}
	waiting, err := d.Service.Queued(ctx, st)
	if err != nil {
		return out, err
	}
	for _, e := range waiting {
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
