package session_test

import (
	"testing"

	"deckhand/internal/session"
)

// A session is prepared when its repository is there and its script was run; a
// workspace that is made anew is not.
func TestUnprepared(t *testing.T) {
	plain := session.CheckedOut{Repository: "octo/app", Dir: "/workspace/app"}
	for name, c := range map[string]struct {
		stage payloads
		want  bool
	}{
		"no repository":      {fresh, false},
		"delegated":          {payloads{session.Created{Owner: "maria", Repository: "octo/app", Parent: "above"}}, false},
		"not cloned":         {payloads{ours}, true},
		"cloned":             {payloads{ours, plain}, false},
		"not set up":         {payloads{ours, cloned}, true},
		"set up":             {payloads{ours, cloned, session.SetUp{Exit: 1}}, false},
		"cloned once more":   {payloads{ours, cloned, session.SetUp{}, cloned}, true},
		"stopped and set up": {payloads{ours, cloned, session.SetUp{}, stopped, session.StartRequested{}}, false},
	} {
		if got := given(t, c.stage).Unprepared(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestRecordCheckout(t *testing.T) {
	st := given(t, payloads{ours, cloned, session.SetUp{}})
	if p, err := st.EndSetUp(session.SetUp{Exit: 1}); len(p) != 0 || err != nil {
		t.Errorf("a second end is recorded: %v %v", p, err)
	}
	if p, err := st.CheckOut(cloned); len(p) != 1 || err != nil {
		t.Errorf("%v %v", p, err)
	}
	gone := given(t, payloads{ours, session.Deleted{}})
	if _, err := gone.CheckOut(cloned); err == nil {
		t.Error("a deleted session is checked out")
	}
	if _, err := gone.EndSetUp(session.SetUp{}); err == nil {
		t.Error("a deleted session is set up")
	}
}
