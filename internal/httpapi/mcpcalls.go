package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
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
	if err := v.door.checkBody("createConversation", b); err != nil {
		return nil, err
	}
	return v.once(a.RequestID, "create_conversation", a, func(retryKey string) (any, error) {
		made, err := v.door.Conversations.Create(v.ctx, usecase.Create{User: v.call.who.User, Trigger: usecase.TriggerAPI, RetryKey: retryKey, Request: b})
		return v.call.made(made), err
	})
}

func (v *visit) send(a sendArgs) (json.RawMessage, error) {
	err := errors.Join(v.door.checkParams(one{a.ConversationID}), v.door.checkBody("postMessage", api.PostMessage{Message: a.Message}))
	if err != nil {
		return nil, err
	}
	return v.once(a.RequestID, "send_message", a, func(retryKey string) (any, error) {
		_, err := v.door.Conversations.Say(v.ctx, v.call.who.User, session.ID(a.ConversationID), session.UserSaid{Text: a.Message, Key: retryKey})
		return api.Accepted{Success: err == nil}, err
	})
}

// ask answers a tool with what a query finds.
func ask[P, B, R any](v *visit, query func(d *Door, ctx context.Context, c *call, p P, b B) (R, error), p P) (json.RawMessage, error) {
	if err := v.door.checkParams(p); err != nil {
		return nil, err
	}
	var b B
	out, err := query(v.door, v.ctx, &call{who: v.call.who, http: v.call.http, bearer: true}, p, b)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// once does something once for each request id, as Door.once does for an Idempotency-Key.
func (v *visit) once(requestID, tool string, args any, do func(retryKey string) (any, error)) (json.RawMessage, error) {
	if requestID == "" {
		return toolResult(do(""))
	}
	d, user := v.door, v.call.who.User
	key, err := oneKey([]string{requestID})
	if err != nil {
		return nil, err
	}
	leave, err := d.inflight.enter(v.ctx, user+"\x00"+key)
	if err != nil {
		return nil, err
	}
	defer leave()
	sent, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	request := idempotency.Digest("mcp", tool, string(sent))
	stored, err := d.Answers.Answer(v.ctx, user, key)
	switch {
	case err == nil && stored.Request != request:
		return nil, otherRequest()
	case err == nil:
		return d.Seal.Open(v.ctx, user, "answer."+key, stored.Body)
	case !errors.Is(err, idempotency.ErrNotFound):
		return nil, err
	}
	out, err := toolResult(do(idempotency.Digest(user, key)))
	if err != nil {
		return nil, err
	}
	held := &heldAnswer{header: http.Header{"Content-Type": {"application/json"}}, status: http.StatusOK}
	held.body.Write(out)
	return out, d.keep(context.WithoutCancel(v.ctx), v.call, key, request, held)
}

func toolResult(out any, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// checkParams holds a struct of parameters against its own tags, as bind does with those of a request.
func (d *Door) checkParams(p any) error {
	v, from := &validator{registry: d.registry}, reflect.ValueOf(p)
	for i, param := range paramsOf(from.Type()) {
		switch x := from.Field(i).Interface().(type) {
		case string:
			if x != "" || param.required {
				v.check(param.schema, x, []any{param.in, param.name})
			}
		case int64:
			v.check(param.schema, number(itoa(x)), []any{param.in, param.name})
		}
	}
	return v.err()
}

// checkBody holds a body against the schema of a route's.
func (d *Door) checkBody(operation string, b any) error {
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	parsed, err := parse(raw)
	if err != nil {
		return err
	}
	v := &validator{registry: d.registry}
	v.check(d.bodySchema(operation, reflect.TypeOf(b)), parsed, []any{"body"})
	return v.err()
}

func (v *validator) err() error {
	if len(v.faults) == 0 {
		return nil
	}
	return &api.ValidationError{Detail: v.faults}
}
