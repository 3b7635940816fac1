package session_test

import (
	"errors"
	"testing"

	"deckhand/internal/session"
)

var request = session.RequestOpened{Provider: "github", Repository: "octo/app", Number: 7, URL: "https://github.com/octo/app/pull/7", Title: "Fix it", Source: "fix", Target: "main"}

func opened(r session.RequestOpened) decision {
	return func(s session.State) ([]session.Payload, error) { return s.Opened(r) }
}

// A pull request is listed once, however often it is found, and lists of
// conversations know it.
func TestRequests(t *testing.T) {
	other := request
	other.Number = 8
	st, all := follow(t, given(t, fresh), opened(request), opened(request), opened(other), opened(request))
	if len(all) != 2 || len(st.Requests) != 2 || st.Requests[0] != request || st.Requests[1] != other {
		t.Errorf("%+v", st.Requests)
	}
	if row := st.Row(); len(row.Requests) != 2 || row.Requests[1].Number != 8 {
		t.Errorf("%+v", row)
	}
	if _, err := (session.State{}).Opened(request); !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
}

// The list does not grow without bound, and a state that was given out keeps its own.
func TestRequestsAreBounded(t *testing.T) {
	st := given(t, fresh)
	first := st
	for n := 1; n <= 50; n++ {
		r := request
		r.Number = n
		before := len(st.Requests)
		next, _ := follow(t, st, opened(r))
		if len(st.Requests) != before {
			t.Fatal("the state before has changed")
		}
		if st = next; n == 1 {
			first = st
		}
	}
	if len(st.Requests) != 20 || st.Requests[0].Number != 31 || st.Requests[19].Number != 50 || first.Requests[0].Number != 1 {
		t.Errorf("%d from %+v", len(st.Requests), st.Requests[0])
	}
}
