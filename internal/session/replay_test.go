package session_test

import (
	"slices"
	"testing"

	"deckhand/internal/session"
)

// follow lets rules happen one after the other, each checked as an append is.
func follow(t testing.TB, st session.State, rules ...decision) (session.State, payloads) {
	t.Helper()
	var all payloads
	for i, rule := range rules {
		out, err := rule(st)
		if err != nil {
			t.Fatalf("rule %d: %v", i, err)
		}
		for _, p := range out {
			if err := st.Check(p); err != nil {
				t.Fatalf("rule %d: %v", i, err)
			}
			st = st.Apply(session.Event{Number: st.Last + 1, Payload: p})
		}
		all = append(all, out...)
	}
	return st, all
}

// whoever makes a rule of a loop's that holds the session, whatever its claim is.
func whoever(rule func(s session.State, claim int64) ([]session.Payload, error)) decision {
	return func(s session.State) ([]session.Payload, error) { return rule(s, s.Claim) }
}

var (
	replayEnd = whoever(func(s session.State, claim int64) ([]session.Payload, error) { return s.ReplayStep(claim, nil, true) })
	resay     = whoever(func(s session.State, claim int64) ([]session.Payload, error) {
		return s.ReplayStep(claim, &session.UserSaid{Text: "recorded"}, false)
	})
	beginTurn = whoever(func(s session.State, claim int64) ([]session.Payload, error) { return s.BeginTurn(claim) })
	askNow    = whoever(func(s session.State, claim int64) ([]session.Payload, error) {
		return s.AskModel(claim, session.ModelAsked{Call: "r", Model: "replay"}, nil)
	})
	answerNow = whoever(func(s session.State, claim int64) ([]session.Payload, error) {
		return s.Answered(claim, session.ModelAnswered{Call: "r", Text: "as recorded"})
	})
	endShown = whoever(func(s session.State, claim int64) ([]session.Payload, error) {
		return s.EndTurn(claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
	})
	endInError = whoever(func(s session.State, claim int64) ([]session.Payload, error) {
		return s.EndTurn(claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentError, ErrorID: "STATUS$ERROR_MAX_ITERATIONS"})
	})
	reanswered = []decision{beginTurn, askNow, answerNow, endShown}
)

// countThen is how often the message that waits for the replay was delivered.
func countThen(ps payloads) int {
	n := 0
	for _, p := range ps {
		if m, ok := p.(session.UserSaid); ok && m.Key == "then" {
			n++
		}
	}
	return n
}

// The message that came with a trajectory is delivered when that is done,
// whatever happens on the way.
func TestThenIsDeliveredOnce(t *testing.T) {
	retake := []decision{start, take}
	for name, between := range map[string][]decision{
		"nothing":                    nil,
		"a stop":                     slices.Concat([]decision{resay, stop}, retake),
		"a stop before the first":    slices.Concat([]decision{stop}, retake),
		"a stop in a turn":           slices.Concat([]decision{resay, beginTurn, askNow, stop}, retake),
		"a message to a stopped one": {resay, stop, say(""), take},
		"a pause":                    {resay, beginTurn, pause, resume},
		"a message in a pause":       {resay, beginTurn, pause, say("")},
		"another owner":              {resay, beginTurn, askNow, take},
		"a failed start": slices.Concat([]decision{resay,
			whoever(func(s session.State, claim int64) ([]session.Payload, error) {
				return s.Fail(claim, "STATUS$ERROR", "no image")
			})}, retake),
		"an error":                   {resay, beginTurn, askNow, answerNow, endInError, resume},
		"the same message once more": {resay, say("then")},
	} {
		t.Run(name, func(t *testing.T) {
			st, before := follow(t, given(t, replaying), between...)
			if !st.Replaying() || !st.Wants() {
				t.Fatalf("the replay does not go on: %+v", st)
			}
			st, after := follow(t, st, replayEnd)
			if n := countThen(before) + countThen(after); n != 1 {
				t.Fatalf("it was delivered %d times: %+v %+v", n, before, after)
			}
			if st.Replaying() || !st.Pending() || !st.Wants() {
				t.Fatalf("it gets no answer: %+v", st)
			}
		})
	}
}

// What a person says while a trajectory is replayed was not the recorded
// agent's to answer, though its answers follow it.
func TestSpokenDuringAReplay(t *testing.T) {
	bare := session.Created{Owner: "maria", Replay: "[]"}
	st, _ := follow(t, given(t, payloads{bare, claimed, ready}), slices.Concat([]decision{resay, say("live")}, reanswered)...)
	spoken := st.Spoke
	if spoken == 0 || st.Pending() {
		t.Fatalf("it stands at %d, pending is %v", spoken, st.Pending())
	}
	st, _ = follow(t, st, slices.Concat([]decision{resay}, reanswered, []decision{replayEnd})...)
	if !st.Pending() || !st.Wants() || st.Shown >= spoken {
		t.Fatalf("message %d is lost: %+v", spoken, st)
	}
	st, _ = follow(t, st, beginTurn)
	end := session.TurnEnded{UpTo: st.Last, State: session.AgentAwaitingUser}
	if err := st.Check(end); err == nil {
		t.Fatal("the turn may end without the model having seen the message")
	}
	if st, _ = follow(t, st, askNow, answerNow, endShown); st.Pending() || st.Wants() {
		t.Fatalf("it is answered, and still waits: %+v", st)
	}
}

// A stop makes history of what was said, in a replay as everywhere; what is
// said to the stopped session is a task again.
func TestStopInAReplay(t *testing.T) {
	bare := session.Created{Owner: "maria", Replay: "[]"}
	during, _ := follow(t, given(t, payloads{bare, claimed, ready}), resay, say("live"), stop)
	if during.Wants() || during.Pending() {
		t.Fatalf("it is stopped: %+v", during)
	}
	st, _ := follow(t, during, start, take, replayEnd)
	if st.Pending() {
		t.Fatalf("what was said before the stop is answered after all: %+v", st)
	}
	if st.Agent != session.AgentAwaitingUser {
		t.Errorf("with nothing left to do the agent is %s", st.Agent)
	}
	if st, _ = follow(t, during, say("after"), take, replayEnd); !st.Pending() {
		t.Fatalf("what was said after the stop is lost: %+v", st)
	}
}

// A limit holds in a replay too: the session waits for the person.
func TestReplayWaitsAfterAnError(t *testing.T) {
	broke, _ := follow(t, given(t, replaying), resay, beginTurn, askNow, answerNow, endInError)
	if broke.Wants() || !broke.Replaying() {
		t.Fatalf("it goes on without approval: %+v", broke)
	}
	for name, ask := range map[string]decision{"resume": resume, "say": say("")} {
		if st, _ := follow(t, broke, ask); !st.Wants() {
			t.Errorf("after %s the session does not continue", name)
		}
	}
}

// While a trajectory is to be replayed the agent does not wait for users.
func TestReplayBeginsLoading(t *testing.T) {
	st, _ := follow(t, given(t, payloads{recorded}), take, whoever(func(s session.State, claim int64) ([]session.Payload, error) {
		return s.Prepared(claim, ready)
	}))
	if st.Agent != session.AgentLoading || !st.Wants() {
		t.Fatalf("agent %s, wants %v", st.Agent, st.Wants())
	}
	if st, _ = follow(t, st, resay, beginTurn); st.Agent != session.AgentRunning {
		t.Errorf("at work the agent is %s", st.Agent)
	}
}
