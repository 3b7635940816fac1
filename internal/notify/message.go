package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"deckhand/internal/session"
)

// Events is a set of kinds of news. It is stored as a number, so the order of kinds must never
// change.
type Events uint8

var kinds = []session.NewsKind{session.NewsCreated, session.NewsStateChanged, session.NewsFinished, session.NewsNeedsApproval}

// AllEvents is every kind there is.
var AllEvents = Events(1<<len(kinds) - 1)

// EventsOf is the set with these names; the error says which are known.
func EventsOf(names []string) (Events, error) {
	var set Events
	for _, name := range names {
		one := Of(session.NewsKind(name))
		if one == 0 {
			return 0, &InvalidError{Field: "events", Msg: fmt.Sprintf("must be any of %s", kinds)}
		}
		set |= one
	}
	if set == 0 {
		return 0, &InvalidError{Field: "events", Msg: "must contain at least one event"}
	}
	return set, nil
}

// Of is the set with one kind; empty if it is not known.
func Of(kind session.NewsKind) Events {
	if i := slices.Index(kinds, kind); i >= 0 {
		return 1 << i
	}
	return 0
}

// Names lists the set.
func (e Events) Names() []string {
	names := []string{}
	for _, k := range kinds {
		if e&Of(k) != 0 {
			names = append(names, string(k))
		}
	}
	return names
}

// TypeTest is the type of a delivery that the user asked for.
const TypeTest = "webhook.test"

// message is the body of a delivery: its type, when it happened, and where to
// look. It holds nothing that was said, so that a receiver who should not see a
// conversation learns little from it.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// About is the data of a message about a conversation.
type About struct {
	ConversationID session.ID         `json:"conversation_id"`
	Event          int64              `json:"event"`
	Status         session.Status     `json:"status"`
	AgentState     session.AgentState `json:"agent_state"`
	Previous       session.AgentState `json:"previous_agent_state,omitempty"`
	ErrorID        string             `json:"error_id,omitempty"`
	ParentID       session.ID         `json:"parent_id,omitempty"`
}

// Compose makes the delivery for a piece of news, for any webhook. Its ID is derived from the
// news, so composing it again gives the same ID.
func Compose(id session.ID, n session.News) Delivery {
	typ := "conversation." + string(n.Kind)
	data := About{ConversationID: id, Event: n.Number, Status: n.Status, AgentState: n.Agent, ErrorID: n.ErrorID, ParentID: n.Parent}
	if n.Kind == session.NewsStateChanged {
		data.Previous = n.Before
	}
	return Delivery{
		ID: fmt.Sprintf("msg_%s_%d_%s", id, n.Number, n.Kind), Type: typ, Session: id, Event: n.Number,
		Body: encode(message{typ, n.At, data}), CreatedAt: n.At, State: Waiting, NextAt: n.At,
	}
}

// ComposeTest makes one that only shows that deliveries arrive.
func ComposeTest(webhook, id string, at time.Time) Delivery {
	data := struct {
		WebhookID string `json:"webhook_id"`
	}{webhook}
	return Delivery{
		ID: "msg_test_" + id, Webhook: webhook, Type: TypeTest,
		Body: encode(message{TypeTest, at, data}), CreatedAt: at, State: Waiting, NextAt: at,
	}
}

// Read is what a delivery says about its conversation; false for a test.
func (d Delivery) Read() (About, bool) {
	var m struct {
		Data About `json:"data"`
	}
	err := json.Unmarshal(d.Body, &m)
	return m.Data, err == nil && d.Type != TypeTest
}

func encode(m message) []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // it is made of texts, numbers and a time of our own
	}
	return b
}
