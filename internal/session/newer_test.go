package session_test

import (
	"errors"
	"testing"

	"deckhand/internal/session"
)

// An unknown kind means that a newer version wrote the event. A kind that no version would write is damage.
func TestUnknownKinds(t *testing.T) {
	t.Parallel()
	for kind, want := range map[session.Kind]error{"painted": session.ErrNewer, "model_dreamed": session.ErrNewer, "": session.ErrCorrupt, "us\x01r_said": session.ErrCorrupt, "User said": session.ErrCorrupt} {
		if _, err := session.Decode(kind, []byte("{}")); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", kind, err, want)
		}
	}
}
