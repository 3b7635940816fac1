package connect_test

import (
	"strings"
	"testing"
	"time"

	"deckhand/internal/outbound"
)

// An address that the server's rules refuse is refused once: the person is told
// what to do about it, not after five attempts.
func TestForbiddenAddressIsNotTriedAgain(t *testing.T) {
	client := outbound.NewClient(outbound.Policy{}, time.Minute)
	defer client.CloseIdleConnections()
	for _, model := range wires {
		if e := failure(t, client, model, "http://127.0.0.1:9"); e.Retry() || !e.Unsent || !strings.Contains(e.Message, "--allow-private") {
			t.Errorf("%s: it ended with %#v", model, e)
		}
	}
}
