package live

import (
	"runtime"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// Readers of the same large event hold one frame between them, and none holds it for the cache.
func TestLargeFramesAreShared(t *testing.T) {
	encoded := 0
	h := New(memlog.New(), func(_ session.ID, e session.Event) (Frame, bool, error) {
		encoded++
		return Frame{Data: make([]byte, largeFrame)}, true, nil
	})
	e := session.Event{Number: 7, Payload: session.UserSaid{}}
	one, _, err := h.item("s", e)
	if err != nil {
		t.Fatal(err)
	}
	two, needed, err := h.item("s", e)
	if err != nil || !needed || &one.frame.Data[0] != &two.frame.Data[0] || encoded != 1 {
		t.Errorf("needed %v, encoded %d times: %v", needed, encoded, err)
	}
	if other, _, _ := h.item("other", e); &other.frame.Data[0] == &one.frame.Data[0] {
		t.Error("two sessions share a frame")
	}
	runtime.KeepAlive(&one)
	runtime.KeepAlive(&two)
	one, two = item{}, item{}
	for range 3 {
		runtime.GC()
	}
	if h.large.get("s", 7) != nil {
		t.Error("the cache keeps what nobody holds")
	}
}
