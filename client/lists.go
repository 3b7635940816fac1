package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"deckhand/api"
)

// ListItem is an item of the list stream; exactly one field is set.
type ListItem struct {
	// Snapshot is the newest conversations, newest first. It is the first item, and is
	// sent again when changes may have been missed.
	Snapshot []api.Conversation
	// Conversation is new or has changed.
	Conversation *api.Conversation
	// Queue is the new position of a conversation in the queue for a free slot.
	Queue *api.QueueMove
	// Deleted is the ID of a deleted conversation.
	Deleted string
}

// FollowList yields the newest conversations, then each one that changes. It reconnects
// when the connection is lost and starts with a snapshot again. It ends when ctx ends, or
// with an error that a retry cannot fix.
func (c *Client) FollowList(ctx context.Context) iter.Seq2[ListItem, error] {
	return func(yield func(ListItem, error) bool) {
		err := again(ctx, func() (done, moved bool, err error) { return c.streamList(ctx, yield) })
		if err != nil {
			yield(ListItem{}, err)
		}
	}
}

// streamList reads one connection. done means that the consumer stopped, and moved that
// an item was received.
func (c *Client) streamList(ctx context.Context, yield func(ListItem, error) bool) (done, moved bool, err error) {
	res, err := c.openStream(ctx, "/api/conversations/stream")
	if err != nil {
		return false, false, err
	}
	defer res.Body.Close()
	r := bufio.NewReader(res.Body)
	for {
		f, err := readFrame(r)
		if err != nil {
			return false, moved, err
		}
		it, known, err := f.listItem()
		if err != nil {
			yield(ListItem{}, err)
			return true, moved, err
		}
		if moved = true; known && !yield(it, nil) {
			return true, moved, nil
		}
	}
}

// listItem decodes a frame. Unknown types come from newer servers.
func (f frame) listItem() (it ListItem, known bool, err error) {
	var body struct {
		Results []api.Conversation `json:"results"`
		ID      string             `json:"conversation_id"`
	}
	known = true
	switch f.event {
	case "snapshot":
		body.Results = []api.Conversation{}
		err = json.Unmarshal(f.data, &body)
		it.Snapshot = body.Results
	case "conversation":
		it.Conversation = &api.Conversation{}
		err = json.Unmarshal(f.data, it.Conversation)
	case "queue":
		it.Queue = &api.QueueMove{}
		err = json.Unmarshal(f.data, it.Queue)
	case "deleted":
		err = json.Unmarshal(f.data, &body)
		it.Deleted = body.ID
	default:
		known = false
	}
	if err != nil {
		err = fmt.Errorf("decode an event of the stream: %w", err)
	}
	return it, known, err
}

// Timeline returns how a conversation spent its time. The query may contain after and
// limit.
func (c *Client) Timeline(ctx context.Context, id string, query url.Values) (api.Timeline, error) {
	return call[api.Timeline](ctx, c, http.MethodGet, item(id)+"/timeline?"+query.Encode(), nil)
}
