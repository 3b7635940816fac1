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
	encode := func(_ session.ID, e session.Event) (Frame, bool, error) {
		encoded++
		return Frame{Data: make([]byte, largeFrame)}, true, nil
	}
	h := New(memlog.New(), encode, encode)
	feedOf := func(id session.ID, format Format) *feed {
		f := h.join(id, format, 0)
		t.Cleanup(func() { h.leave(f) })
		return f.feed
	}
	s := feedOf("s", 0)
	e := session.Event{Number: 7, Payload: session.UserSaid{}}
	one, _, err := s.item(e)
	if err != nil {
		t.Fatal(err)
	}
	two, needed, err := s.item(e)
	if err != nil || !needed || &one.frame.Data[0] != &two.frame.Data[0] || encoded != 1 {
		t.Errorf("needed %v, encoded %d times: %v", needed, encoded, err)
	}
	for _, d := range []*feed{feedOf("other", 0), feedOf("s", 1)} {
		if other, _, _ := d.item(e); &other.frame.Data[0] == &one.frame.Data[0] {
			t.Errorf("%v shares a frame with %v", d.feedKey, s.feedKey)
		}
	}
	runtime.KeepAlive(&one)
	runtime.KeepAlive(&two)
	one, two = item{}, item{}
	for range 3 {
		runtime.GC()
	}
	if h.large.get(s.feedKey, 7) != nil {
		t.Error("the cache keeps an unused frame")
	}
}
