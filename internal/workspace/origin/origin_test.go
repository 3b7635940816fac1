package origin_test

import (
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace/origin"
)

// log folds payloads into a state; each event is a second after the one before.
func log(payloads ...session.Payload) session.State {
	st := session.State{ID: "c1"}
	for _, p := range append([]session.Payload{session.Created{Owner: "ann"}, session.Claimed{By: "m"}}, payloads...) {
		st = st.Apply(session.Event{Number: st.Last + 1, At: at(st.Last + 1), Payload: p})
	}
	st.Checkpoint = 1
	return st
}

func at(n int64) time.Time { return time.Unix(n, 0) }

func TestOf(t *testing.T) {
	t.Parallel()
	called, returned := session.ToolCalled{ToolCall: session.ToolCall{ID: "a", Name: "run"}}, session.ToolReturned{ID: "a", Cause: 5}
	turn := []session.Payload{session.UserSaid{Text: "go"}, session.TurnBegan{}} // events 3 and 4
	with := func(more ...session.Payload) session.State { return log(append(turn[:2:2], more...)...) }
	start, stop := origin.Moment{Start: true}, origin.Moment{Stop: true}
	for name, c := range map[string]struct {
		m        origin.Moment
		st       session.State
		verified int64
		place    origin.Place
		want     string
		upTo     int64
	}{
		"before a turn":                          {start, with(), 2, origin.Place{}, "between", 2},
		"before a turn, with a call that waits":  {start, with(called), 2, origin.Place{}, "between", 2},
		"after a turn":                           {stop, with(called, returned, session.TurnEnded{UpTo: 6}), 2, origin.Place{Open: true}, "agent", 7},
		"resumed":                                {start, with(called, returned, session.Paused{}, session.Resumed{}), 7, origin.Place{}, "between", 8},
		"while paused":                           {origin.Moment{}, with(called, returned, session.Paused{}), 7, origin.Place{}, "between", 7},
		"resumed, no checkpoint of the pause":    {start, with(called, returned, session.Paused{}, session.Resumed{}), 2, origin.Place{Open: true}, "mixed", 8},
		"died in a call":                         {start, with(called, session.Claimed{By: "n"}), 4, origin.Place{Open: true}, "mixed", 6},
		"died in a call, files not open":         {start, with(called, session.Claimed{By: "n"}), 4, origin.Place{}, "agent", 6},
		"died between calls":                     {start, with(called, returned, session.Claimed{By: "n"}), 4, origin.Place{Open: true}, "mixed", 7},
		"died before the checkpoint of the turn": {origin.Moment{}, with(called, returned, session.TurnEnded{UpTo: 6}), 4, origin.Place{Open: true}, "mixed", 7},
		"a command did not wait":                 {start, with(called), 2, origin.Place{Open: true, Passed: true}, "mixed", 2},
		"while a call runs":                      {origin.Moment{}, with(called), 4, origin.Place{Open: true}, "agent", 5},
		"begins to wait for an approval":         {stop, with(called, returned, called, session.ApprovalAsked{ID: "a"}), 4, origin.Place{}, "agent", 8},
		"while it waits for an approval":         {stop, with(called, returned, called, session.ApprovalAsked{ID: "a"}), 8, origin.Place{}, "between", 8},
		"approved": {origin.Moment{Start: true, Waited: true}, with(called, returned, called, session.ApprovalAsked{ID: "a"},
			session.ApprovalGiven{ID: "a", Approved: true}, session.Claimed{By: "m"}), 8, origin.Place{}, "between", 10},
		"approved, died in the call": {start, with(called, session.ApprovalAsked{ID: "a"}, session.ApprovalGiven{ID: "a", Approved: true},
			session.Claimed{By: "m"}, session.Claimed{By: "n"}), 8, origin.Place{Open: true}, "mixed", 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.m.Of(c.st, sandbox.Checkpoint{Number: 2, Previous: 1, Verified: at(c.verified).Add(time.Millisecond)}, c.place)
			whose := map[[2]bool]string{{true, false}: "between", {false, true}: "mixed", {false, false}: "agent"}[[2]bool{got.BetweenTurns, got.Mixed}]
			if whose != c.want || got.UpTo != c.upTo {
				t.Errorf("%s up to %d, want %s up to %d", whose, got.UpTo, c.want, c.upTo)
			}
			if due := c.m.Due(c.st); !due {
				t.Error("it is not due")
			}
		})
	}
	if stop.Due(with(session.ModelAsked{Call: "x", UpTo: 4}, session.ModelAnswered{Call: "x"}, called)) {
		t.Error("a checkpoint is due while a call runs")
	}
}
