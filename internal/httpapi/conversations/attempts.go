package conversations

import (
	"context"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const (
	aboutAttempts = "Each attempt is a fork of the conversation with its own model, reasoning effort or instructions. " +
		"After each turn of an attempt, the size of its changes is measured and the test command runs in its sandbox."
	aboutStartAttempts = aboutAttempts + " Returns 409 while the agent of the conversation is working, for a delegated conversation, and if the workspace cannot be copied. Repeating a request with the same Idempotency-Key starts no new attempts."
	aboutKeepAttempt   = "Permanently deletes the conversations of the other attempts in the set. The kept attempt becomes an ordinary conversation, and its test command no longer runs."
	aboutTestAttempt   = "Returns 409 while the agent of the attempt is working or the tests are running."
)

// Attempts are the use cases for attempts.
type Attempts interface {
	List(ctx context.Context, user string, from session.ID) (api.Attempts, error)
	Start(ctx context.Context, c usecase.StartAttempts) error
	// Keep returns the IDs of the deleted conversations.
	Keep(ctx context.Context, user string, from, id session.ID) (deleted []session.ID, err error)
	Retest(ctx context.Context, user string, from, id session.ID) error
}

func (d *Handlers) attemptRoutes() []rest.Route {
	route := func(method, path, id, summary, about string) rest.Route {
		return rest.Route{Method: method, Path: "/api/conversations/{conversation_id}/attempts" + path, ID: id, Stream: method == "POST", Tag: rest.TagConversations, Family: rest.Conversation, Summary: summary, About: about}
	}
	return []rest.Route{
		rest.Op(route("GET", "", "listAttempts", "List the attempts of a conversation with their results", aboutAttempts), d.listAttempts),
		rest.Op(route("POST", "", "startAttempts", "Start several attempts at a task", aboutStartAttempts), d.startAttempts),
		rest.Op(route("POST", "/{attempt_id}/keep", "keepAttempt", "Keep one attempt and delete the others", aboutKeepAttempt), d.keepAttempt),
		rest.Op(route("POST", "/{attempt_id}/test", "testAttempt", "Run the test command of an attempt again", aboutTestAttempt), d.testAttempt),
	}
}

// oneAttempt identifies an attempt of a conversation.
type oneAttempt struct {
	ID      string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Attempt string `path:"attempt_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$" doc:"Conversation of the attempt."`
}

func (d *Handlers) listAttempts(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.Attempts, error) {
	return d.Attempts.List(ctx, c.Who.User, session.ID(p.ID))
}

func (d *Handlers) startAttempts(ctx context.Context, c *rest.Call, p rest.InConversation, b api.StartAttempts) (api.Attempts, error) {
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	err := d.Attempts.Start(ctx, usecase.StartAttempts{User: c.Who.User, From: session.ID(p.ID), Trigger: triggerOf(c), RetryKey: c.RetryKey, Request: b})
	if err != nil {
		if usecase.RefusalOf(err) == nil {
			err = rest.WhyEnded(ctx, err)
		}
		return api.Attempts{}, err
	}
	return d.Attempts.List(ctx, c.Who.User, session.ID(p.ID))
}

func (d *Handlers) keepAttempt(ctx context.Context, c *rest.Call, p oneAttempt, _ rest.None) (api.KeptAttempt, error) {
	ctx, release := d.Life.Hold(ctx, c.Who)
	defer release()
	deleted, err := d.Attempts.Keep(ctx, c.Who.User, session.ID(p.ID), session.ID(p.Attempt))
	out := api.KeptAttempt{ConversationID: p.Attempt, Deleted: []string{}}
	for _, id := range deleted {
		out.Deleted = append(out.Deleted, string(id))
	}
	return out, err
}

func (d *Handlers) testAttempt(ctx context.Context, c *rest.Call, p oneAttempt, _ rest.None) (api.Attempts, error) {
	if err := d.Attempts.Retest(ctx, c.Who.User, session.ID(p.ID), session.ID(p.Attempt)); err != nil {
		return api.Attempts{}, err
	}
	return d.Attempts.List(ctx, c.Who.User, session.ID(p.ID))
}
