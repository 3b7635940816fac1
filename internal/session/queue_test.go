package session_test

import (
	"errors"
	"slices"
	"testing"

	"deckhand/internal/session"
)

// A message can be withdrawn until a turn takes it up or the model is shown it.
func TestQueued(t *testing.T) {
	more := session.UserSaid{Text: "more"}
	for name, c := range map[string]struct {
		stage  payloads
		queued []int64
	}{
		"before the first turn":   {with(fresh, said), nil},
		"during a model call":     {with(asking, more), nil},
		"after it was withdrawn":  {with(asking, more, session.Withdrawn{Messages: []int64{6}}), []int64{}},
		"two, one taken back":     {with(asking, more, more, session.Withdrawn{Messages: []int64{6}}), []int64{7}},
		"a stop makes it history": {with(owned, more, stopped), []int64{}},
	} {
		st := given(t, c.stage)
		if got := st.Queued(); c.queued != nil && !slices.Equal(got, c.queued) {
			t.Errorf("%s: %v, want %v", name, got, c.queued)
		}
		if len(st.Queued()) > 0 && st.LastSaid != st.Queued()[len(st.Queued())-1] {
			t.Errorf("%s: the last message is %d", name, st.LastSaid)
		}
	}
	st := given(t, with(asking, more))
	if _, err := st.Requeue([]int64{2}); !errors.Is(err, session.ErrRefused) {
		t.Errorf("a message that the model was shown: %v", err)
	}
	if out, err := st.Requeue(st.Queued(), session.UserSaid{Text: "less", Key: "k"}); err != nil || len(out) != 2 || out[1].(session.UserSaid).Key != "" {
		t.Errorf("%+v, %v", out, err)
	}
}
