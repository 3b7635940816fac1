package session_test

import (
	"errors"
	"reflect"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// watcher compares what it is told with what is stored at that moment.
type watcher struct {
	t    *testing.T
	log  *memlog.Log
	rows []session.Row
}

func (w *watcher) Changed(r session.Row) {
	if stored, err := w.log.Row(w.t.Context(), r.ID); err != nil || !reflect.DeepEqual(stored, r) {
		w.t.Errorf("told %+v when %+v was stored (%v)", r, stored, err)
	}
	w.rows = append(w.rows, r)
}

// Who watches is told the row of every change, when it is stored, and of nothing else.
func TestWatch(t *testing.T) {
	log := memlog.New()
	s, w := session.New(log), &watcher{t: t, log: log}
	s.Watch(w)
	create(t, s, theID)
	rename := func(title string) func(session.State) ([]session.Payload, error) {
		return func(st session.State) ([]session.Payload, error) { return st.Rename(title) }
	}
	for _, title := range []string{"One", "One", "Two"} { // the second changes nothing
		if _, err := s.Update(t.Context(), theID, rename(title)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Update(t.Context(), theID, rename(" ")); !errors.Is(err, session.ErrRefused) {
		t.Fatal(err)
	}
	row, err := log.Row(t.Context(), theID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Bury(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, r := range w.rows {
		titles = append(titles, r.Title)
	}
	if want := []string{session.DefaultTitle(theID), "One", "Two", "Two"}; !reflect.DeepEqual(titles, want) || !w.rows[3].Deleted || w.rows[2].Deleted {
		t.Errorf("told of %q, want %q", titles, want)
	}
}
