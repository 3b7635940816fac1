package session_test

import (
	"slices"
	"testing"
	"time"

	"deckhand/internal/session"
)

func decide(g session.ApprovalGiven) decision {
	return func(s session.State) ([]session.Payload, error) { return s.Decide(g) }
}

func TestDecide(t *testing.T) {
	args := []byte(`{"command":"ls"}`)
	for name, c := range map[string]struct {
		give    session.ApprovalGiven
		agent   session.AgentState
		over    session.AgentState
		allowed []string
		args    string
	}{
		"yes":               {session.ApprovalGiven{Approved: true}, session.AgentUserYes, "", nil, ""},
		"yes, with changes": {session.ApprovalGiven{Approved: true, Args: args}, session.AgentUserYes, "", nil, string(args)},
		"always":            {session.ApprovalGiven{Approved: true, Always: "ls *"}, session.AgentUserYes, "", []string{"ls *"}, ""},
		"no":                {session.ApprovalGiven{}, session.AgentUserNo, session.AgentAwaitingUser, nil, ""},
		"no, because":       {session.ApprovalGiven{Reason: "not on main"}, session.AgentUserNo, "", nil, ""},
		"no changes nothing": {session.ApprovalGiven{Always: "rm *", Args: args, Reason: "no"},
			session.AgentUserNo, "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			st, _ := follow(t, given(t, awaiting), decide(c.give))
			call := st.Open[0]
			if st.Agent != c.agent || st.Over != c.over || !slices.Equal(st.Allowed, c.allowed) || string(call.Args) != c.args {
				t.Errorf("agent %s, over %q, allowed %v, args %s", st.Agent, st.Over, st.Allowed, call.Args)
			}
			if call.Awaits() || call.Approved != c.give.Approved || call.Since != st.Last || !st.Wants() {
				t.Errorf("%+v, wants %v", call, st.Wants())
			}
		})
	}
	twice, _ := follow(t, given(t, awaiting), decide(session.ApprovalGiven{Approved: true, Always: "ls *"}), giveBack, callNext,
		decide(session.ApprovalGiven{Approved: true, Always: "ls *"}))
	if len(twice.Allowed) != 1 {
		t.Errorf("the same pattern twice: %v", twice.Allowed)
	}
	// Whatever a damaged or foreign log says, a no allows nothing.
	st := given(t, awaiting)
	if st = st.Apply(session.Event{Number: st.Last + 1, Payload: session.ApprovalGiven{ID: "a", Always: "rm *"}}); len(st.Allowed) != 0 {
		t.Errorf("a no allows %v", st.Allowed)
	}
}

// A timer runs while an answer is due, and only then.
func TestDeadlineIsWanted(t *testing.T) {
	due := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ask  session.ApprovalAsked
		want bool
	}{
		{session.ApprovalAsked{}, false},
		{session.ApprovalAsked{Deadline: due, Default: true}, true},
	} {
		st, _ := follow(t, given(t, with(payloads{created, said, claimed, began}, asked, twoCalls)),
			func(s session.State) ([]session.Payload, error) { return s.Prepared(owner, ready) },
			func(s session.State) ([]session.Payload, error) { return s.CallNext(owner, session.RiskHigh, &c.ask) })
		call, ok := st.Awaiting()
		if !ok || st.Wants() != c.want || !call.Deadline.Equal(c.ask.Deadline) || call.Default != c.ask.Default {
			t.Errorf("%+v: %+v, wants %v", c.ask, call, st.Wants())
		}
		if st, _ = follow(t, st, pause); st.Wants() {
			t.Error("in a pause nothing falls due")
		}
	}
}

// A sandbox that is lost says nothing about a call that was not begun.
func TestWhatWasNotBegunIsCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		stage payloads
		want  session.Outcome
	}{
		"running":  {running, session.Unknown},
		"awaiting": {awaiting, session.Cancelled},
		"denied":   {denied, session.Rejected},
		// It is begun only by who claims the session after the approval.
		"approved":          {with(awaiting, session.ApprovalGiven{ID: "a", Approved: true}), session.Cancelled},
		"approved, claimed": {with(awaiting, session.ApprovalGiven{ID: "a", Approved: true}, claimed), session.Unknown},
	} {
		st := given(t, c.stage)
		out, err := st.Fail(st.Claim, "STATUS$ERROR", "lost")
		if err != nil {
			t.Fatal(err)
		}
		if got := out[0].(session.ToolReturned).Outcome; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// An answer is over when the agent said so or the person said no. What is said
// meanwhile gets a turn of its own.
func TestOverAndAMessage(t *testing.T) {
	reject := func(s session.State) ([]session.Payload, error) {
		return s.Returned(owner, session.ToolReturned{ID: "a", Outcome: session.Rejected})
	}
	end := func(s session.State) ([]session.Payload, error) {
		return s.EndTurn(owner, session.TurnEnded{UpTo: max(s.Shown, s.Seen), State: s.Over})
	}
	for name, c := range map[string]struct {
		stage payloads
		rules []decision
		want  session.AgentState
	}{
		"finished": {finished, nil, session.AgentFinished},
		"rejected": {denied, []decision{reject}, session.AgentAwaitingUser},
	} {
		t.Run(name, func(t *testing.T) {
			st, _ := follow(t, given(t, c.stage), c.rules...)
			if st.Over != c.want {
				t.Fatalf("over is %q", st.Over)
			}
			st, _ = follow(t, st, say(""), skipRest, end)
			if st.Agent != c.want || st.Over != "" || !st.Pending() {
				t.Fatalf("agent %s, over %q, pending %v", st.Agent, st.Over, st.Pending())
			}
			if st, _ = follow(t, st, turn); !st.InTurn || st.Agent != session.AgentRunning {
				t.Errorf("the message gets no turn: %+v", st)
			}
		})
	}
}

// A turn that was paused when it was over stays paused.
func TestOverInAPause(t *testing.T) {
	st, _ := follow(t, given(t, finished), pause)
	if _, err := endTurn(st); err == nil {
		t.Fatal("the pause is ended by the loop")
	}
	if st, _ = follow(t, st, resume); st.Over != session.AgentFinished || !st.InTurn {
		t.Errorf("over %q, in a turn %v", st.Over, st.InTurn)
	}
}

// The model must not take an unapproved call for one that was begun.
func TestStoppedBeforeAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		before payloads
		want   string
	}{
		"asked":   {awaiting, "Not run: approval was still pending. Interrupted by stop."},
		"allowed": {with(awaiting, session.ApprovalGiven{ID: "a", Approved: true}), "Interrupted by stop."},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := given(t, c.before).Stop("by the user")
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := out[0].(session.ToolReturned); !ok || got.Outcome != session.Cancelled || got.Output != c.want {
				t.Errorf("%+v", out[0])
			}
		})
	}
}
