package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/conversation/query"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/idempotency"
	"deckhand/internal/session"
)

// The tools of our own tool server call the use cases and the queries below all entry points. What they are given is
// checked against the same schemas as the parameters and bodies of routes.

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
		if made.New {
			v.call.Session = string(made.ID)
		}
		return query.Answer(made.ID, made.Status), err
	})
}

func (v *visit) send(a sendArgs) (json.RawMessage, error) {
	err := errors.Join(v.api.Schemas.CheckParams(query.Conversation{ID: a.ConversationID}), v.api.Schemas.CheckBody("postMessage", api.PostMessage{Message: a.Message}))
	if err != nil {
		return nil, err
	}
	return v.once(a.RequestID, "send_message", a, func(retryKey string) (any, error) {
		_, err := v.api.Conversations.Say(v.ctx, v.call.Who.User, session.ID(a.ConversationID), session.UserSaid{Text: a.Message, Key: retryKey})
		return api.Accepted{Success: err == nil}, err
	})
}

func (v *visit) events(a eventsArgs) (json.RawMessage, error) {
	q := query.Events{ID: a.ConversationID, StartID: max(a.After, 0) + 1, Limit: limitOf(a.Limit)}
	if err := v.api.Schemas.CheckParams(q); err != nil {
		return nil, err
	}
	return toolResult(v.api.Queries.Events(v.ctx, v.call.Who.User, q, api.EventFilter{}))
}

func (v *visit) get(id string) (json.RawMessage, error) {
	if err := v.api.Schemas.CheckParams(query.Conversation{ID: id}); err != nil {
		return nil, err
	}
	return toolResult(v.api.Queries.Get(v.ctx, v.call.Who.User, session.ID(id)))
}

func (v *visit) list(a listArgs) (json.RawMessage, error) {
	q := query.List{Status: a.Status, Text: a.Query, PageID: a.PageID, Limit: limitOf(a.Limit)}
	if err := v.api.Schemas.CheckParams(q); err != nil {
		return nil, err
	}
	return toolResult(v.api.Queries.List(v.ctx, v.call.Who.User, q))
}

func (v *visit) stop(id string) (json.RawMessage, error) {
	if err := v.api.Schemas.CheckParams(query.Conversation{ID: id}); err != nil {
		return nil, err
	}
	st, stopped, err := v.api.Conversations.Stop(v.ctx, v.call.Who.User, session.ID(id), usecase.StoppedByUser)
	if err != nil {
		return nil, err
	}
	v.api.Stopped(st.ID, st.Halt)
	return toolResult(query.Stopped(st.ID, st, stopped), nil)
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
