package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
)

// Client talks to one server with one key. It may be used concurrently.
type Client struct {
	base string
	key  string
	// HTTP is the HTTP client. It must not have a Timeout, because streams stay open.
	HTTP *http.Client
}

// New returns a client for the server at base, such as http://127.0.0.1:3000.
func New(base, key string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), key: key, HTTP: &http.Client{}}
}

// Error is a response with an error status.
type Error struct {
	Status int
	// Code is the machine-readable code (msg_id), or "" if the server sent none.
	Code    string
	Message string
	// Fields describes the invalid fields of a 422 response.
	Fields    []api.FieldError
	RequestID string
	// RetryAfter is when a 429 response says to try again, 0 if it does not.
	RetryAfter time.Duration
	// Conflict has the files that kept a restore from being made, nil if there are none.
	Conflict *api.RestoreConflict
}

func (e *Error) Error() string {
	return fmt.Sprintf("deckhand answered %d: %s", e.Status, e.Message)
}

// IsNotFound reports whether err is a 404.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// Settings returns the stored settings, secrets masked.
func (c *Client) Settings(ctx context.Context) (api.Settings, error) {
	return call[api.Settings](ctx, c, http.MethodGet, "/api/settings", nil)
}

// StoreSettings changes the settings. Omitted fields keep their values.
func (c *Client) StoreSettings(ctx context.Context, in api.SettingsInput) (api.SettingsStored, error) {
	return call[api.SettingsStored](ctx, c, http.MethodPost, "/api/settings", in)
}

// Create creates a conversation.
func (c *Client) Create(ctx context.Context, in api.CreateConversation) (api.ConversationResponse, error) {
	return call[api.ConversationResponse](ctx, c, http.MethodPost, "/api/conversations", in)
}

// Say sends a message. With a retryKey, which is optional, sending it again has no
// effect.
func (c *Client) Say(ctx context.Context, id, text, retryKey string) error {
	return c.Post(ctx, id, api.PostMessage{Message: text}, retryKey)
}

// Post is Say with images.
func (c *Client) Post(ctx context.Context, id string, m api.PostMessage, retryKey string) error {
	_, err := send[api.Accepted](ctx, c, http.MethodPost, item(id)+"/message", m, retryKey)
	return err
}

// Conversation returns one conversation.
func (c *Client) Conversation(ctx context.Context, id string) (api.Conversation, error) {
	return call[api.Conversation](ctx, c, http.MethodGet, item(id), nil)
}

// Conversations returns a page of the list. The query may contain limit, page_id and the
// filters.
func (c *Client) Conversations(ctx context.Context, query url.Values) (api.ConversationPage, error) {
	return call[api.ConversationPage](ctx, c, http.MethodGet, "/api/conversations?"+query.Encode(), nil)
}

// EventPage is a page of stored events.
type EventPage struct {
	Events  []api.Event `json:"events"`
	HasMore bool        `json:"has_more"`
}

// Events returns a page of stored events. The query may contain start_id, end_id, reverse and
// limit.
func (c *Client) Events(ctx context.Context, id string, query url.Values) (EventPage, error) {
	all := maps.Clone(query)
	if all == nil {
		all = url.Values{}
	}
	all.Set("format", "deckhand")
	return call[EventPage](ctx, c, http.MethodGet, item(id)+"/events?"+all.Encode(), nil)
}

// LegacyEvents is Events in the format of the legacy server.
func (c *Client) LegacyEvents(ctx context.Context, id string, query url.Values) (api.EventPage, error) {
	return call[api.EventPage](ctx, c, http.MethodGet, item(id)+"/events?"+query.Encode(), nil)
}

// Rename sets the title of a conversation.
func (c *Client) Rename(ctx context.Context, id, title string) error {
	_, err := call[bool](ctx, c, http.MethodPatch, item(id), api.PatchConversation{Title: title})
	return err
}

// Start starts a stopped conversation.
func (c *Client) Start(ctx context.Context, id string) (api.ConversationResponse, error) {
	return call[api.ConversationResponse](ctx, c, http.MethodPost, item(id)+"/start", struct{}{})
}

// Stop stops a conversation and aborts its current step.
func (c *Client) Stop(ctx context.Context, id string) (api.ConversationResponse, error) {
	return call[api.ConversationResponse](ctx, c, http.MethodPost, item(id)+"/stop", nil)
}

// Delete permanently deletes a conversation.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := call[bool](ctx, c, http.MethodDelete, item(id), nil)
	return err
}

// SetState changes the state of the agent: running, paused, stopped, user_confirmed or user_rejected.
func (c *Client) SetState(ctx context.Context, id, state string) error {
	body := map[string]any{"action": "change_agent_state", "args": map[string]any{"agent_state": state}}
	_, err := call[api.Accepted](ctx, c, http.MethodPost, item(id)+"/events", body)
	return err
}

// Interrupt pauses the agent immediately. SetState with "paused" lets it finish the current step.
func (c *Client) Interrupt(ctx context.Context, id string) error {
	body := map[string]any{"action": "change_agent_state", "args": map[string]any{"agent_state": "paused", "now": true}}
	_, err := call[api.Accepted](ctx, c, http.MethodPost, item(id)+"/events", body)
	return err
}

// Keys lists the keys that are visible to this key.
func (c *Client) Keys(ctx context.Context) ([]api.Key, error) {
	return call[[]api.Key](ctx, c, http.MethodGet, "/api/keys", nil)
}

// CreateKey creates a key.
func (c *Client) CreateKey(ctx context.Context, in api.CreateKey) (api.NewKey, error) {
	return call[api.NewKey](ctx, c, http.MethodPost, "/api/keys", in)
}

// RevokeKey revokes a key.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	_, err := call[api.Key](ctx, c, http.MethodDelete, "/api/keys/"+url.PathEscape(id), nil)
	return err
}

func item(id string) string { return "/api/conversations/" + url.PathEscape(id) }

func call[R any](ctx context.Context, c *Client, method, path string, body any) (R, error) {
	return send[R](ctx, c, method, path, body, "")
}

func send[R any](ctx context.Context, c *Client, method, path string, body any, retryKey string) (R, error) {
	var out R
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return out, err
		}
		payload = bytes.NewReader(b)
	}
	req, err := c.request(ctx, method, path, payload)
	if err != nil {
		return out, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return exchange[R](c, req, retryKey)
}

func exchange[R any](c *Client, req *http.Request, retryKey string) (R, error) {
	var out R
	if retryKey != "" {
		req.Header.Set("Idempotency-Key", retryKey)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return out, failure(res)
	}
	err = json.NewDecoder(res.Body).Decode(&out)
	return out, err
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Session-API-Key", c.key)
	return req, nil
}

// save streams the response of a GET request to w.
func (c *Client) save(ctx context.Context, path string, w io.Writer) error {
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return failure(res)
	}
	_, err = io.Copy(w, res.Body)
	return err
}

// failure decodes an error response, in any of the formats that the server uses.
func failure(res *http.Response) error {
	e := &Error{Status: res.StatusCode, RequestID: res.Header.Get("X-Request-Id"), Message: http.StatusText(res.StatusCode)}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var body struct {
		Message, Error string
		MsgID          string `json:"msg_id"`
		Detail         json.RawMessage
	}
	if json.Unmarshal(b, &body) != nil {
		_ = json.Unmarshal(b, &e.Message) // errors of git providers are a plain string
		return e
	}
	e.Code = body.MsgID
	if e.Code == api.CodeRestoreConflict {
		_ = json.Unmarshal(b, &e.Conflict)
	}
	switch {
	case body.Message != "":
		e.Message = body.Message
	case body.Error != "":
		e.Message = body.Error
	case json.Unmarshal(body.Detail, &e.Fields) == nil:
		e.Message = (&api.ValidationError{Detail: e.Fields}).Error()
	default:
		_ = json.Unmarshal(body.Detail, &e.Message)
	}
	return e
}

func format(n int64) string { return strconv.FormatInt(n, 10) }
