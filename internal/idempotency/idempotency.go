// Package idempotency is the port for answers that were given to requests with
// an Idempotency-Key, so that the same request sent again gets the same answer
// and is not carried out twice. The API uses it, a database implements it.
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"
)

// KeptFor is how long an answer is kept: who repeats a request later makes a new one.
const KeptFor = 24 * time.Hour

// ErrNotFound says that no answer is kept under this key.
var ErrNotFound = errors.New("no response is stored under this key")

// Answer is what was answered to one request.
type Answer struct {
	User string
	Key  string
	// Request is a hash of method, path and body: the same key with another
	// request is a mistake of the client and must be noticed.
	Request string
	Status  int
	Header  []byte
	// Body is sealed: a response may contain what only its user may see.
	Body      []byte
	CreatedAt time.Time
}

// Store keeps answers. Implementations pass idempotencytest. Times survive to the microsecond.
type Store interface {
	// Answer returns what was answered to this user under this key; ErrNotFound.
	Answer(ctx context.Context, user, key string) (Answer, error)
	// SaveAnswer keeps an answer durably. If one is kept under the same user and
	// key already, that one stays and the error is nil: the first answer given
	// is the one in force.
	SaveAnswer(ctx context.Context, a Answer) error
	// DropAnswers forgets answers created before a moment.
	DropAnswers(ctx context.Context, before time.Time) error
}

// Digest is a hash of some texts. It is unambiguous: each part is preceded by its length.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":"))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}
