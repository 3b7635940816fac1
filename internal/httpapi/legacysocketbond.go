package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"deckhand/internal/access"
)

// errSocketKey is what a Socket.IO client is told that has no valid key.
var errSocketKey = errors.New("invalid_session_api_key")

// bond ties a Socket.IO connection to its user, so that the id of the connection, which
// stands in addresses, is not enough to read from it or to write to it.
type bond struct {
	// user is whose key the handshake had, in its query, a header or a cookie. Clients
	// send it again with every request. Empty if the key comes with a packet.
	user string
	// wrong says that the handshake had such a key, and that it was not valid.
	wrong bool

	mu sync.Mutex
	// in is the user who was let in by a key in a packet, and valid checks that key again.
	in    string
	valid func(ctx context.Context) error
}

type bondKey struct{}

// bondOf is the bond of a connection, by its handshake.
func bondOf(first *http.Request) *bond {
	b, _ := first.Context().Value(bondKey{}).(*bond)
	if b == nil { // the server was asked past serveSocketIO
		return &bond{user: "\x00"}
	}
	return b
}

// enter notes who was let in.
func (b *bond) enter(user string, valid func(ctx context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.in, b.valid = user, valid
}

func (b *bond) entered() (user string, valid func(ctx context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.in, b.valid
}

// continues checks a request that belongs to a connection: a key that it has must be valid and of the same user, and it
// must have one if the handshake had.
func (d *Door) continues(first, next *http.Request) error {
	b := bondOf(first)
	in, valid := b.entered()
	owner := b.user
	if owner == "" {
		owner = in
	}
	who, err := d.socketKey(next.Context(), next, "")
	switch {
	case err == nil && (owner == "" || who.User == owner):
		return nil
	case err != nil && !errors.Is(err, access.ErrUnauthorized):
		d.Logger.Error("keys cannot be read", "error", err)
		return errSocketKey
	case err != nil && b.user == "" && (b.wrong || !d.carriesKey(next)):
		if valid == nil || valid(next.Context()) == nil {
			return nil
		}
	}
	if err != nil && d.carriesKey(next) {
		d.Gate.AllowFailure(next.RemoteAddr)
	}
	return errSocketKey
}

// carriesKey reports whether a request has a key, valid or not, where socketKey looks for one.
func (d *Door) carriesKey(r *http.Request) bool {
	if key, _ := presented(r); key != "" || keyInQuery(r) != "" {
		return true
	}
	_, err := d.loginOf(r)
	return err == nil
}

func keyInQuery(r *http.Request) string {
	key := r.URL.Query().Get("session_api_key")
	if key == "null" || key == "undefined" { // what scripts write who have none
		return ""
	}
	return key
}
