package v0_test

import (
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

func TestAppPorts(t *testing.T) {
	t.Parallel()
	for _, id := range []session.ID{"", "a", convo, "5f0c0d"} {
		p := v0.AppPorts(id)
		if len(p) != 2 || p[0] < 50000 || p[0] > 54999 || p[1] < 55000 || p[1] > 59999 || p[0] != v0.AppPorts(id)[0] {
			t.Errorf("%s: %v", id, p)
		}
	}
}
