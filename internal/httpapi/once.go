package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"deckhand/api"
	"deckhand/internal/idempotency"
)

// once answers a request that carries an Idempotency-Key: the first time by
// doing it, later by the stored answer. Should the server die between the two,
// the routes that append derive what they append from retryKey, so that doing
// it again changes nothing.
func (d *Door) once(w *recorder, req *http.Request, r *route, c *call, keys []string) error {
	key, err := oneKey(keys)
	if err != nil {
		return err
	}
	leave, err := d.inflight.enter(req.Context(), c.who.User+"\x00"+key)
	if err != nil {
		return err
	}
	defer leave()
	request := idempotency.Digest(req.Method, req.URL.Path, req.URL.RawQuery, string(c.raw))
	stored, err := d.Answers.Answer(req.Context(), c.who.User, key)
	switch {
	case err == nil && stored.Request != request:
		return otherRequest()
	case err == nil:
		return d.repeat(w, req.Context(), c, stored)
	case !errors.Is(err, idempotency.ErrNotFound):
		return err
	}
	c.retryKey = idempotency.Digest(c.who.User, key)
	held := &heldAnswer{header: w.Header()}
	if err := r.serve(d, held, req, c); err != nil {
		return err
	}
	if held.status >= 200 && held.status < 300 {
		// The effect is durable. From here on the answer is stored even if the client has left.
		if err := d.keep(context.WithoutCancel(req.Context()), c, key, request, held); err != nil {
			return err
		}
	}
	w.WriteHeader(held.status)
	_, err = w.Write(held.body.Bytes())
	return err
}

// oneKey is the Idempotency-Key of a request, if it is a good one.
func oneKey(keys []string) (string, error) {
	key := keys[0]
	if len(keys) > 1 || len(key) == 0 || len(key) > 255 || !printable(key) {
		return "", &api.ValidationError{Detail: []api.FieldError{{Loc: []any{"header", "Idempotency-Key"}, Type: "value_error",
			Msg: "Idempotency-Key must be 1 to 255 printable ASCII characters, sent once."}}}
	}
	return key, nil
}

func otherRequest() error {
	return &api.ValidationError{Detail: []api.FieldError{{Loc: []any{"header", "Idempotency-Key"}, Type: "idempotency_mismatch",
		Msg: "This Idempotency-Key was already used for another request. Use a new one."}}}
}

func (d *Door) keep(ctx context.Context, c *call, key, request string, held *heldAnswer) error {
	sealed, err := d.Seal.Seal(ctx, c.who.User, "answer."+key, held.body.Bytes())
	if err != nil {
		return err
	}
	return d.Answers.SaveAnswer(ctx, idempotency.Answer{User: c.who.User, Key: key, Request: request,
		Status: held.status, Header: []byte(held.header.Get("Content-Type")), Body: sealed, CreatedAt: time.Now().UTC()})
}

func (d *Door) repeat(w http.ResponseWriter, ctx context.Context, c *call, a idempotency.Answer) error {
	body, err := d.Seal.Open(ctx, c.who.User, "answer."+a.Key, a.Body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", string(a.Header))
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(a.Status)
	_, err = w.Write(body)
	return err
}

// heldAnswer keeps an answer back until it is stored.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *heldAnswer) Header() http.Header    { return h.header }
func (h *heldAnswer) WriteHeader(status int) { h.status = status }
func (h *heldAnswer) Write(b []byte) (int, error) {
	return h.body.Write(b)
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
