package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/idempotency"
	"deckhand/internal/session"
)

// The tools of our own tool server call the use cases and the same queries as the routes. What they are given is checked
// against the routes' schemas.

func (v *visit) create(a createArgs) (json.RawMessage, error) {
	b := api.CreateConversation{InitialUserMsg: api.Some(a.Message)}
	for text, to := range map[*string]*api.Opt[string]{&a.Repository: &b.Repository, &a.Branch: &b.SelectedBranch, &a.Instructions: &b.ConversationInstructions} {
		if *text != "" {
			*to = api.Some(*text)
		}
	}
	if err := v.api.Schemas.CheckBody("createConversation", b); err != nil {
		return nil, err
	}
	return v.once(a.RequestID, "create_conversation", a, func(retryKey string) (any, error) {
		made, err := v.api.Conversations.Create(v.ctx, usecase.Create{User: v.call.Who.User, Trigger: usecase.TriggerAPI, RetryKey: retryKey, Request: b})
		return v.api.Queries.Created(v.call, made), err
	})
}

func (v *visit) send(a sendArgs) (json.RawMessage, error) {
	err := errors.Join(v.api.Schemas.CheckParams(rest.InConversation{ID: a.ConversationID}), v.api.Schemas.CheckBody("postMessage", api.PostMessage{Message: a.Message}))
	if err != nil {
		return nil, err
	}
	return v.once(a.RequestID, "send_message", a, func(retryKey string) (any, error) {
		_, err := v.api.Conversations.Say(v.ctx, v.call.Who.User, session.ID(a.ConversationID), session.UserSaid{Text: a.Message, Key: retryKey})
		return api.Accepted{Success: err == nil}, err
	})
}

// asker is the call of a query: a tool is called by a program.
func (v *visit) asker() *rest.Call {
	return &rest.Call{Who: v.call.Who, HTTP: v.call.HTTP, Bearer: true}
}

// once does something once for each request id, as rest.Retries does for an Idempotency-Key.
func (v *visit) once(requestID, tool string, args any, do func(retryKey string) (any, error)) (json.RawMessage, error) {
	if requestID == "" {
		return toolResult(do(""))
	}
	d, user := v.api, v.call.Who.User
	key, err := rest.OneKey([]string{requestID})
	if err != nil {
		return nil, err
	}
	leave, err := d.Retries.Enter(v.ctx, v.call, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	sent, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	request := idempotency.Digest("mcp", tool, string(sent))
	stored, err := d.Retries.Store.Answer(v.ctx, user, key)
	switch {
	case err == nil && stored.Request != request:
		return nil, rest.OtherRequest()
	case err == nil:
		return d.Retries.Seal.Open(v.ctx, user, "answer."+key, stored.Body)
	case !errors.Is(err, idempotency.ErrNotFound):
		return nil, err
	}
	out, err := toolResult(do(idempotency.Digest(user, key)))
	if err != nil {
		return nil, err
	}
	held := rest.NewHeldAnswer(http.Header{"Content-Type": {"application/json"}})
	held.Status = http.StatusOK
	held.Body.Write(out)
	return out, d.Retries.Keep(context.WithoutCancel(v.ctx), v.call, key, request, held)
}

func toolResult(out any, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}
