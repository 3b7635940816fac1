package logtest

import (
	"errors"
	"testing"

	"deckhand/internal/session"
)

// whole: a session of many batches is there at once, and never in the place of another.
func whole(t *testing.T, s Store) {
	w, ok := s.(session.WholeLog)
	if !ok {
		t.Fatal("it cannot store a whole session at once")
	}
	st := session.State{ID: "whole"}
	var batches []session.Batch
	var want []session.Event
	for i := range 5 {
		first := session.Payload(session.UserSaid{Text: "more"})
		if i == 0 {
			first = session.Created{Owner: "ada"}
		}
		var b session.Batch
		b, st = grow(st, first, session.Noted{ID: "note"})
		batches, want = append(batches, b), append(want, b.Events...)
	}
	must(t, w.AppendAll(t.Context(), batches))
	same(t, "events", read(t, s, "whole", 0), want)
	row, err := s.Row(t.Context(), "whole")
	must(t, err)
	same(t, "row", row, st.Row())
	if err := w.AppendAll(t.Context(), batches[:1]); !errors.Is(err, session.ErrConflict) {
		t.Errorf("in the place of another: %v", err)
	}
	same(t, "events", read(t, s, "whole", 0), want)
	b, _ := grow(st, session.UserSaid{Text: "and so on"})
	must(t, s.Append(t.Context(), b))
	same(t, "events", read(t, s, "whole", st.Last), b.Events)
}
