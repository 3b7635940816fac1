package packed

import (
	"strconv"
	"testing"

	"deckhand/internal/session"
)

// A burst of short sessions does not fill the memory with what holds their events.
func TestManyShortSessions(t *testing.T) {
	t.Parallel()
	c := NewRecent()
	const most = MaxRecent / TailCost
	for i := range 3 * most {
		c.Add(session.ID(strconv.Itoa(i)), 0, &Batch{Last: 1, Body: []byte("short")})
	}
	each, all := c.Sizes()
	if n := len(each); n > most || n < most/2 || all != n*len("short") {
		t.Errorf("%d sessions with %d bytes are remembered, want up to %d sessions", n, all, most)
	}
	for i := range 3 * most {
		c.Forget(session.ID(strconv.Itoa(i)))
	}
	if c.size != 0 {
		t.Errorf("%d bytes are counted when nothing is remembered", c.size)
	}
}
