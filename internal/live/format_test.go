package live

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"deckhand/internal/session"
)

// Readers of one session may follow it in different formats: each gets every event in its
// own, and all get the same deltas.
func TestReadersChooseTheirFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.encoders = append(w.hub.encoders, func(_ session.ID, e session.Event) (Frame, bool, error) {
		return Frame{Data: fmt.Appendf(nil, `{"kind":%q}`, e.Payload.Kind())}, true, nil
	})
	w.ask("m")
	w.hub.Delta(theID, "m", "Hel")
	follow := func(format Format) <-chan string {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		out := make(chan string, 100)
		go func() {
			defer close(out)
			for f, err := range w.hub.Follow(ctx, theID, 0, FollowOptions{Format: format}) {
				if err != nil {
					return
				}
				out <- fmt.Sprintf("%d %s %s", f.Number, f.Event, f.Data)
			}
		}()
		return out
	}
	first, second := follow(0), follow(1)
	delta := `0 delta {"call":"m","offset":0,"text":"Hel"}`
	stored, past := []string{`1  {"n":1}`, `2  {"n":2}`, `3  {"n":3}`, `4  {"n":4}`, `5  {"n":5}`, delta}, []string{`1  {"kind":"created"}`, `2  {"kind":"user_said"}`,
		`3  {"kind":"claimed"}`, `4  {"kind":"turn_began"}`, `5  {"kind":"model_asked"}`, delta}
	take := func(from <-chan string, n int) (got []string) {
		for range n {
			got = append(got, <-from)
		}
		return got
	}
	if got := take(first, len(stored)); !slices.Equal(got, stored) {
		t.Errorf("the first format has %q", got)
	}
	if got := take(second, len(past)); !slices.Equal(got, past) {
		t.Errorf("the second format has %q", got)
	}
	if n := w.hub.Following(theID); n != 2 || w.feeds() != 2 || w.hub.Followers() != 2 {
		t.Errorf("%d readers in %d feeds", n, w.feeds())
	}
	w.add(session.ModelAnswered{Call: "m", Text: "Hello."}) // the sixth
	if one, two := <-first, <-second; one != `6  {"n":6}` || two != `6  {"kind":"model_answered"}` {
		t.Errorf("new events are %s and %s", one, two)
	}
	w.add(session.Noted{}) // the seventh, for which the first format has no word
	if two := <-second; two != `7  {"kind":"noted"}` {
		t.Errorf("a new event is %s", two)
	}
}
