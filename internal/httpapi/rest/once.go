package rest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/internal/idempotency"
)

// Retries remembers answers by Idempotency-Key, so that a repeated request is not done twice.
type Retries struct {
	Store idempotency.Store
	Seal  Sealer
	// Lock waits until no other server on the same store has the lock with this name; nil if there are none.
	Lock func(ctx context.Context, name string) (release func(), err error)

	inflight inflight
}

// Sealer encrypts stored answers.
type Sealer interface {
	Seal(ctx context.Context, user, field string, plaintext []byte) ([]byte, error)
	Open(ctx context.Context, user, field string, sealed []byte) ([]byte, error)
}

// Once answers a request that carries an Idempotency-Key: the first time by
// doing it, later by the stored answer. Should the server die between the two,
// the routes that append derive what they append from RetryKey, so that doing
// it again changes nothing.
func (m *Retries) Once(w http.ResponseWriter, c *Call, keys []string, do func(w http.ResponseWriter) error) error {
	req := c.HTTP
	key, err := OneKey(keys)
	if err != nil {
		return err
	}
	leave, err := m.Enter(req.Context(), c, key)
	if err != nil {
		return err
	}
	defer leave()
	request := idempotency.Digest(req.Method, req.URL.Path, req.URL.RawQuery, string(c.Raw))
	stored, err := m.Store.Answer(req.Context(), c.Who.User, key)
	switch {
	case err == nil && stored.Request != request:
		return OtherRequest()
	case err == nil:
		return m.Repeat(req.Context(), w, c, stored)
	case !errors.Is(err, idempotency.ErrNotFound):
		return err
	}
	c.RetryKey = idempotency.Digest(c.Who.User, key)
	held := NewHeldAnswer(w.Header())
	if err := do(held); err != nil {
		return err
	}
	if held.Status >= 200 && held.Status < 300 {
		// The effect is durable. From here on the answer is stored even if the client has left.
		if err := m.Keep(context.WithoutCancel(req.Context()), c, key, request, held); err != nil {
			return err
		}
	}
	w.WriteHeader(held.Status)
	_, err = w.Write(held.Body.Bytes())
	return err
}

// Enter waits until no other request of the user is answered under the key.
func (m *Retries) Enter(ctx context.Context, c *Call, key string) (leave func(), err error) {
	left, err := m.inflight.enter(ctx, c.Who.User+"\x00"+key)
	if err != nil || m.Lock == nil {
		return left, err
	}
	release, err := m.Lock(ctx, "once "+idempotency.Digest(c.Who.User, key))
	if err != nil {
		left()
		return nil, err
	}
	return func() { release(); left() }, nil
}

// OneKey is the Idempotency-Key of a request, if it is a good one.
func OneKey(keys []string) (string, error) {
	key := keys[0]
	if len(keys) > 1 || len(key) == 0 || len(key) > 255 || !printable(key) {
		return "", &api.ValidationError{Detail: []api.FieldError{{Loc: []any{"header", "Idempotency-Key"}, Type: "value_error",
			Msg: "Idempotency-Key must be 1 to 255 printable ASCII characters, sent once."}}}
	}
	return key, nil
}

// OtherRequest refuses a key that was used for another request.
func OtherRequest() error {
	return &api.ValidationError{Detail: []api.FieldError{{Loc: []any{"header", "Idempotency-Key"}, Type: "idempotency_mismatch",
		Msg: "This Idempotency-Key was already used for another request. Use a new one."}}}
}

// Keep stores an answer under its key.
func (m *Retries) Keep(ctx context.Context, c *Call, key, request string, held *HeldAnswer) error {
	sealed, err := m.Seal.Seal(ctx, c.Who.User, "answer."+key, held.Body.Bytes())
	if err != nil {
		return err
	}
	return m.Store.SaveAnswer(ctx, idempotency.Answer{User: c.Who.User, Key: key, Request: request,
		Status: held.Status, Header: []byte(held.header.Get("Content-Type")), Body: sealed, CreatedAt: time.Now().UTC()})
}

// Repeat sends a stored answer.
func (m *Retries) Repeat(ctx context.Context, w http.ResponseWriter, c *Call, a idempotency.Answer) error {
	body, err := m.Seal.Open(ctx, c.Who.User, "answer."+a.Key, a.Body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", string(a.Header))
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(a.Status)
	_, err = w.Write(body)
	return err
}

// HeldAnswer keeps an answer back until it is stored.
type HeldAnswer struct {
	header http.Header
	Status int
	Body   bytes.Buffer
}

// NewHeldAnswer holds an answer whose headers are written to h at once.
func NewHeldAnswer(h http.Header) *HeldAnswer { return &HeldAnswer{header: h} }

// Header implements http.ResponseWriter, as the other methods do.
func (h *HeldAnswer) Header() http.Header    { return h.header }
func (h *HeldAnswer) WriteHeader(status int) { h.Status = status }
func (h *HeldAnswer) Write(b []byte) (int, error) {
	return h.Body.Write(b)
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// inflight makes requests with the same Idempotency-Key wait for each other.
type inflight struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

func (f *inflight) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		f.mu.Lock()
		other := f.busy[key]
		if other == nil {
			mine := make(chan struct{})
			if f.busy == nil {
				f.busy = map[string]chan struct{}{}
			}
			f.busy[key] = mine
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				delete(f.busy, key)
				f.mu.Unlock()
				close(mine)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
