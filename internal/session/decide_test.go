package session_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"deckhand/internal/session"
)

// The claim of the loop that owns the stages of check_test.go, and one that is older.
const (
	owner  = int64(3)
	zombie = int64(1)
)

type decision = func(session.State) ([]session.Payload, error)

// decided is a row: asked after the stage, the decision gives these kinds or this error.
type decided struct {
	name  string
	stage payloads
	ask   decision
	want  string // kinds, separated by spaces
	err   error
}

func say(key string) decision {
	return func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "x", Key: key}) }
}
func start(s session.State) ([]session.Payload, error)     { return s.Start() }
func stop(s session.State) ([]session.Payload, error)      { return s.Stop("enough") }
func pause(s session.State) ([]session.Payload, error)     { return s.PauseNow() }
func pauseSoon(s session.State) ([]session.Payload, error) { return s.Pause() }
func pauseDue(s session.State) ([]session.Payload, error)  { return s.PauseDue(owner) }
func resume(s session.State) ([]session.Payload, error)    { return s.Resume() }
func remove(s session.State) ([]session.Payload, error)    { return s.Delete() }
func take(s session.State) ([]session.Payload, error)      { return s.Take("other") }
func yes(s session.State) ([]session.Payload, error) {
	return s.Decide(session.ApprovalGiven{Approved: true})
}
func yesToB(s session.State) ([]session.Payload, error) {
	return s.Decide(session.ApprovalGiven{ID: "b", Approved: true})
}
func suggest(s session.State) ([]session.Payload, error) { return s.Suggest(owner, "a title") }
func fail(s session.State) ([]session.Payload, error) {
	return s.Fail(owner, "STATUS$ERROR", "no image")
}
func turn(s session.State) ([]session.Payload, error)     { return s.BeginTurn(owner) }
func prepared(s session.State) ([]session.Payload, error) { return s.Prepared(owner, ready) }
func lazily(s session.State) ([]session.Payload, error) {
	return s.Prepared(owner, session.WorkspaceReady{})
}
func progressed(s session.State) ([]session.Payload, error) {
	return s.Progressed(owner, session.WorkspaceStep{Step: "pulling"})
}

var off = session.EgressSet{Mode: "off"}

func setEgress(s session.State) ([]session.Payload, error) { return s.SetEgress(off) }
func callNext(s session.State) ([]session.Payload, error) {
	return s.CallNext(owner, session.RiskHigh, &session.ApprovalAsked{})
}
func callSafe(s session.State) ([]session.Payload, error) {
	return s.CallNext(owner, session.RiskLow, nil)
}
func giveBack(s session.State) ([]session.Payload, error) {
	return s.Returned(owner, session.ToolReturned{ID: "a"})
}
func takeFrom(by string, live ...string) decision {
	return func(s session.State) ([]session.Payload, error) { return s.Take(by, live...) }
}

func rename(title string) decision {
	return func(s session.State) ([]session.Payload, error) { return s.Rename(title) }
}
func askModel(reserve, budget session.Money, limited bool) decision {
	return func(s session.State) ([]session.Payload, error) {
		return s.AskModel(owner, session.ModelAsked{Call: "m", Model: "model", Reserved: reserve}, limit(budget, limited))
	}
}
func answer(call string) decision {
	return func(s session.State) ([]session.Payload, error) {
		return s.Answered(owner, session.ModelAnswered{Call: call})
	}
}
func askFailed(call string) decision {
	return func(s session.State) ([]session.Payload, error) {
		return s.AskFailed(owner, call, "network", "", 1, false)
	}
}
func skipRest(s session.State) ([]session.Payload, error) { return s.SkipRest(owner, "it is over") }
func grantTo(child session.ID) decision {
	return func(s session.State) ([]session.Payload, error) { return s.GrantTo(owner, child, 0, limit(10, true)) }
}
func settleChild(s session.State) ([]session.Payload, error) { return s.Settle("child", 3) }
func capSpending(s session.State) ([]session.Payload, error) { return s.Cap() }

// replayStep is of the loop that owns replaying, whose claim is event 2.
func replayStep(text string, done bool) decision {
	return func(s session.State) ([]session.Payload, error) {
		if text == "" {
			return s.ReplayStep(2, nil, done)
		}
		return s.ReplayStep(2, &session.UserSaid{Text: text}, done)
	}
}
func endTurn(s session.State) ([]session.Payload, error) {
	return s.EndTurn(owner, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
}

var (
	deleted  = with(fresh, session.Deleted{})
	halted   = with(owned, stopped)
	broken   = with(owned, failed)
	paused   = with(turning, session.Paused{})
	awaiting = with(running, session.ApprovalAsked{ID: "a"})
	denied   = with(awaiting, session.ApprovalGiven{ID: "a"})
	named    = with(owned, session.Titled{Title: "mine", ByUser: true})
	replaced = with(asking, claimed, session.ModelFailed{Call: "m"})
	inError  = with(turning, gaveUp)
	limited  = with(asking, session.StateChanged{State: session.AgentRateLimited}, session.ModelFailed{Call: "m", Class: "rate", Retried: true})
	finished = with(running, session.ToolReturned{ID: "a", Name: "finish", Cause: 7, Outcome: session.Succeeded, Ends: true})
)

var decisions = []decided{
	{"begin again", fresh, func(s session.State) ([]session.Payload, error) { return s.Begin(created, nil) }, "", session.ErrRefused},
	{"begin", nil, func(s session.State) ([]session.Payload, error) { return s.Begin(created, &said) }, "created user_said", nil},
	{"begin without a message", nil, func(s session.State) ([]session.Payload, error) { return s.Begin(created, nil) }, "created", nil},

	{"begin with a replay", nil, func(s session.State) ([]session.Payload, error) { return s.Begin(recorded, &said) }, "created", nil},

	{"say", fresh, say(""), "user_said", nil},
	{"say to a missing session", nil, say(""), "", session.ErrNotFound},
	{"say to a deleted one", deleted, say(""), "", session.ErrDeleted},
	{"say wakes a stopped one", halted, say(""), "user_said start_requested", nil},
	{"say wakes a failed one", broken, say(""), "user_said start_requested", nil},
	{"say ends a pause", paused, say(""), "user_said resumed", nil},
	{"say while the model is asked", asking, say(""), "user_said", nil},
	{"say twice", with(fresh, session.UserSaid{Key: "k"}), say("k"), "", session.ErrDuplicate},

	{"start", halted, start, "start_requested", nil},
	{"start a failed one", broken, start, "start_requested", nil},
	{"start a running one", owned, start, "", nil},
	{"start a deleted one", deleted, start, "", session.ErrDeleted},

	{"stop", fresh, stop, "stopped", nil},
	{"stop twice", halted, stop, "", nil},
	{"stop during a model call", asking, stop, "model_failed stopped", nil},
	{"stop during a tool call", running, stop, "tool_returned stopped", nil},
	{"stop during two", with(running, callB), stop, "tool_returned tool_returned stopped", nil},
	{"stop before the calls", calling, stop, "stopped", nil},
	{"stop a missing session", nil, stop, "", session.ErrNotFound},
	{"stop a deleted one", deleted, stop, "", session.ErrDeleted},

	{"pause", turning, pause, "paused", nil},
	{"pause during a model call", asking, pause, "model_failed paused", nil},
	{"pause during a tool call", running, pause, "tool_returned paused", nil},
	{"pause twice", paused, pause, "", nil},
	{"pause an idle one", owned, pause, "", nil},
	{"pause a stopped one", halted, pause, "", nil},
	{"pause a deleted one", deleted, pause, "", session.ErrDeleted},
	{"pause after a model call", asking, pauseSoon, "pause_requested", nil},
	{"pause after a tool call", running, pauseSoon, "pause_requested", nil},
	{"pause between two steps", turning, pauseSoon, "paused", nil},
	{"pause before the calls", calling, pauseSoon, "paused", nil},
	{"pause while approval is pending", awaiting, pauseSoon, "tool_returned paused", nil},
	{"pause twice after a step", with(asking, session.PauseRequested{}), pauseSoon, "", nil},
	{"pause an idle one after a step", owned, pauseSoon, "", nil},
	{"pause a deleted one after a step", deleted, pauseSoon, "", session.ErrDeleted},
	{"pause a missing session after a step", nil, pauseSoon, "", session.ErrNotFound},
	{"interrupt a step that a pause waits for", with(running, session.PauseRequested{}), pause, "tool_returned paused", nil},
	{"stop while a pause waits", with(running, session.PauseRequested{}), stop, "tool_returned stopped", nil},
	{"a pause that is not due", with(asking, session.PauseRequested{}), pauseDue, "", nil},
	{"a pause that is due", with(asking, session.PauseRequested{}, session.ModelFailed{Call: "m", Retried: true}), pauseDue, "paused", nil},
	{"take back a pause", with(asking, session.PauseRequested{}), resume, "resumed", nil},
	{"say while a pause waits", with(asking, session.PauseRequested{}), func(s session.State) ([]session.Payload, error) { return s.Say(said) }, "user_said resumed", nil},
	{"ask when a pause is due", with(asking, session.PauseRequested{}, session.ModelFailed{Call: "m", Retried: true}), askModel(1, 0, false), "", session.ErrRefused},
	{"call when a pause is due", with(asking, session.PauseRequested{}, twoCalls), callSafe, "", session.ErrRefused},
	{"resume", paused, resume, "resumed", nil},
	{"resume a working one", turning, resume, "", nil},
	{"resume a stopped one", halted, resume, "start_requested", nil},
	{"resume after an error", inError, resume, "resumed", nil},
	{"resume after an error twice", with(inError, session.Resumed{}), resume, "", nil},
	{"resume after an error that is being taken up", with(inError, session.Resumed{}, began), resume, "", nil},
	{"resume after an error and a stop", with(inError, stopped), resume, "start_requested", nil},
	{"resume what waits for the provider", limited, resume, "", nil},
	{"pause what waits for the provider", limited, pause, "paused", nil},
	{"pause with a grant open", with(running, grant), pause, "tool_returned paused", nil},
	{"stop with a grant open", with(running, grant), stop, "tool_returned stopped", nil},
	{"delete with a grant open", with(running, grant), remove, "tool_returned deleted", nil},
	{"resume a deleted one", deleted, resume, "", session.ErrDeleted},

	{"approve", awaiting, yes, "approval_given", nil},
	{"approve another", awaiting, yesToB, "", session.ErrRefused},
	{"approve nothing", running, yes, "", session.ErrRefused},
	{"approve in a pause", with(awaiting, session.ToolReturned{ID: "a", Cause: 7, Outcome: session.Cancelled}, session.Paused{}), yes, "", session.ErrRefused},
	{"approve a stopped one", with(awaiting, session.ToolReturned{ID: "a", Cause: 7, Outcome: session.Cancelled}, stopped), yes, "", session.ErrRefused},
	{"pause while the person is asked", awaiting, pause, "tool_returned paused", nil},
	{"approve what was denied", denied, yes, "", session.ErrRefused},
	{"approve for a deleted one", deleted, yes, "", session.ErrDeleted},
	{"stop after a denial", denied, stop, "tool_returned stopped", nil},

	{"rename", fresh, rename(" a title "), "titled", nil},
	{"rename to nothing", fresh, rename("  "), "", session.ErrRefused},
	{"rename to the same", named, rename("mine"), "", nil},
	{"rename a deleted one", deleted, rename("x"), "", session.ErrDeleted},
	{"suggest", owned, suggest, "titled", nil},
	{"suggest against a person", named, suggest, "", nil},
	{"suggest the same", with(owned, session.Titled{Title: "a title"}), suggest, "", nil},

	{"delete", fresh, remove, "deleted", nil},
	{"delete during a model call", asking, remove, "model_failed deleted", nil},
	{"delete during a tool call", running, remove, "tool_returned deleted", nil},
	{"delete a stopped one", halted, remove, "deleted", nil},
	{"delete twice", deleted, remove, "", session.ErrDeleted},
	{"delete a missing session", nil, remove, "", session.ErrNotFound},

	{"take", fresh, take, "claimed", nil},
	{"take over", turning, take, "claimed", nil},
	{"take over a model call", asking, take, "claimed model_failed", nil},
	{"take over a tool call", running, take, "claimed", nil},
	{"take from a live member", turning, takeFrom("other", "loop"), "", session.ErrHeld},
	{"take a model call from a live member", asking, takeFrom("other", "third", "loop"), "", session.ErrHeld},
	{"take over while others are alive", asking, takeFrom("other", "third"), "claimed model_failed", nil},
	{"take what one holds", turning, takeFrom("loop", "loop"), "claimed", nil},
	{"take a session without a holder", fresh, takeFrom("other", "", "loop"), "claimed", nil},
	{"take a stopped one", halted, take, "", session.ErrRefused},
	{"take a failed one", broken, take, "", session.ErrRefused},
	{"take a deleted one", deleted, take, "", session.ErrDeleted},

	{"prepared with a message waiting", owned, prepared, "workspace_ready", nil},
	{"prepared with nothing to do", payloads{created, session.Noted{}, claimed}, prepared, "workspace_ready state_changed", nil},
	{"prepared again", with(owned, ready), prepared, "", nil},
	{"prepared anew", with(owned, session.WorkspaceReady{Handle: []byte(`{"box":0}`)}), prepared, "workspace_ready", nil},
	{"prepared without a need for it", owned, lazily, "workspace_ready", nil},
	{"prepared without a need, when there is one", with(owned, ready), lazily, "", nil},
	{"progressed", owned, progressed, "workspace_step", nil},
	{"progressed without a claim", fresh, progressed, "", session.ErrNotOwner},
	{"set the egress", fresh, setEgress, "egress_set", nil},
	{"set the egress to what it is", with(fresh, off), setEgress, "", nil},
	{"set the egress of a stopped one", halted, setEgress, "egress_set", nil},
	{"set the egress of a deleted one", deleted, setEgress, "", session.ErrDeleted},
	{"begin a turn", owned, turn, "turn_began", nil},
	{"begin a turn twice", turning, turn, "", nil},
	{"begin a turn after an error", inError, turn, "", nil},
	{"begin a turn that is taken up again", with(inError, session.Resumed{}), turn, "turn_began", nil},
	{"begin a turn without a message", payloads{created, session.Noted{}, claimed}, turn, "", nil},

	{"ask", turning, askModel(10, 0, false), "model_asked", nil},
	{"ask with just enough", turning, askModel(10, 10, true), "model_asked", nil},
	{"ask without a turn", owned, askModel(10, 0, false), "", session.ErrRefused},
	{"ask in a pause", paused, askModel(10, 0, false), "", session.ErrRefused},
	{"ask after waiting for the provider", limited, askModel(10, 0, false), "state_changed model_asked", nil},
	{"ask while a call is open", running, askModel(0, 0, false), "model_asked", session.ErrRefused},
	{"answered", asking, answer("m"), "model_answered", nil},
	{"answered too late", with(asking, session.ModelFailed{Call: "m"}), answer("m"), "", session.ErrRefused},
	{"another call answered", asking, answer("other"), "", session.ErrRefused},
	{"call failed", asking, askFailed("m"), "model_failed", nil},
	{"call failed too late", turning, askFailed("m"), "", session.ErrRefused},
	{"call a risky tool while the person is asked about another", awaiting, callNext, "", session.ErrRefused},
	{"call a safe tool while the person is asked about another", awaiting, callSafe, "tool_called", nil},
	{"skip all", calling, skipRest, "tool_called tool_returned tool_called tool_returned", nil},
	{"skip the rest", finished, skipRest, "tool_called tool_returned", nil},
	{"skip nothing", turning, skipRest, "", nil},
	{"call a tool", calling, callSafe, "tool_called", nil},
	{"call a risky tool", calling, callNext, "state_changed tool_called approval_asked", nil},
	{"call the second while the first runs", running, callSafe, "tool_called", nil},
	{"call without an answer", turning, callSafe, "", session.ErrRefused},
	{"call in a pause", with(calling, session.Paused{}), callSafe, "", session.ErrRefused},
	{"returned", running, giveBack, "tool_returned", nil},
	{"returned twice", with(running, returned("a", 7)), giveBack, "", session.ErrRefused},
	{"end the turn", with(asking, answered), endTurn, "turn_ended", nil},
	{"end no turn", owned, endTurn, "", session.ErrRefused},
	{"end a paused turn", paused, endTurn, "", session.ErrRefused},

	{"grant", running, grantTo("child"), "granted", nil},
	{"grant twice", with(running, grant), grantTo("child"), "", nil},
	{"grant what is settled", with(running, grant, settled), grantTo("child"), "", session.ErrRefused},
	{"grant without a claim", fresh, grantTo("child"), "", session.ErrNotOwner},
	{"settle", with(running, grant), settleChild, "settled", nil},
	{"settle twice", with(running, grant, settled), settleChild, "", nil},
	{"settle without a grant", running, settleChild, "settled", nil},
	{"settle in a pause", with(turning, grant, session.Paused{}), settleChild, "settled", nil},
	{"settle when stopped", with(owned, grant, stopped), settleChild, "settled", nil},
	{"settle when failed", with(owned, grant, failed), settleChild, "settled", nil},
	{"settle when deleted", with(owned, grant, session.Deleted{}), settleChild, "", session.ErrDeleted},
	{"cap", with(asking, answered), capSpending, "capped", nil},
	{"cap twice", with(asking, answered, session.Capped{Limit: 5}), capSpending, "", nil},
	{"cap a stopped one", halted, capSpending, "capped", nil},
	{"cap a deleted one", deleted, capSpending, "", session.ErrDeleted},

	{"replay a message", replaying, replayStep("again", false), "user_said replayed", nil},
	{"replay the end", replaying, replayStep("", true), "replayed user_said", nil},
	{"replay after the end", with(replaying, session.Replayed{Done: true}), replayStep("", true), "", session.ErrRefused},
	{"replay what is not recorded", payloads{created, claimed}, replayStep("", true), "", session.ErrRefused},
	{"replay in a pause", with(replaying, began, session.Paused{}), replayStep("again", false), "", session.ErrRefused},
	{"replay without a claim", payloads{recorded}, replayStep("", true), "", session.ErrNotOwner},
	{"replay when stopped", with(replaying, stopped), replayStep("", true), "", session.ErrNotOwner},
	{"fail", owned, fail, "failed", nil},
	{"fail during a model call", asking, fail, "model_failed failed", nil},
}

func TestDecisions(t *testing.T) {
	for _, d := range decisions {
		t.Run(d.name, func(t *testing.T) {
			st := given(t, d.stage)
			out, err := d.ask(st)
			var kinds []string
			for i, p := range out {
				kinds = append(kinds, string(p.Kind()))
				if no := st.Check(p); no != nil && d.err == nil {
					t.Errorf("payload %d is not allowed: %v", i, no)
				} else if no != nil {
					err = no // what a rule leaves to Check is refused there
				}
				st = st.Apply(session.Event{Number: st.Last + 1, Payload: p})
			}
			if !errors.Is(err, d.err) {
				t.Fatalf("error %v, want %v", err, d.err)
			}
			if got := strings.Join(kinds, " "); got != d.want {
				t.Errorf("got %q, want %q", got, d.want)
			}
		})
	}
}

// Whatever a loop wants, it is refused when it is not the owner any more.
func TestZombieIsRefused(t *testing.T) {
	loops := map[string]decision{
		"prepared": prepared, "progressed": progressed, "turn": turn, "ask": askModel(1, 0, false), "answered": answer("m"), "failed": askFailed("m"),
		"call": callSafe, "returned": giveBack, "end": endTurn, "fail": fail, "suggest": suggest, "skip": skipRest, "grant": grantTo("child"),
		"replay": func(s session.State) ([]session.Payload, error) { return s.ReplayStep(owner, nil, true) },
	}
	for name, ask := range loops {
		for stage, st := range map[string]payloads{"replaced": replaced, "stopped": halted, "failed": broken} {
			if out, err := ask(given(t, st)); !errors.Is(err, session.ErrNotOwner) {
				t.Errorf("%s after %s: %v, %v", name, stage, out, err)
			}
		}
		if _, err := ask(given(t, deleted)); !errors.Is(err, session.ErrDeleted) {
			t.Errorf("%s after deleted: %v", name, err)
		}
	}
	if _, err := given(t, fresh).Suggest(0, "x"); !errors.Is(err, session.ErrNotOwner) {
		t.Errorf("claim 0 has no owner: %v", err)
	}
	if _, err := given(t, turning).EndTurn(zombie, session.TurnEnded{}); !errors.Is(err, session.ErrNotOwner) {
		t.Error(err)
	}
}

func TestBudgetIsNeverExceeded(t *testing.T) {
	spent := with(asking, answered) // 5 of it
	for _, c := range []struct {
		reserve, budget session.Money
		ok              bool
	}{
		{5, 10, true}, {6, 10, false}, {0, 5, true}, {1, 5, false}, {0, 4, false}, {math.MaxInt64, 10, false}, {1, 0, false},
	} {
		_, err := askModel(c.reserve, c.budget, true)(given(t, spent))
		var over *session.BudgetError
		if errors.As(err, &over) == c.ok {
			t.Errorf("reserve %d of %d with 5 spent: %v", c.reserve, c.budget, err)
		}
		if over != nil && (over.Spent != 5 || over.Error() == "") {
			t.Errorf("%+v", over)
		}
	}
}

// What is settled on the way out is charged in full: the answer may have been under way.
func TestSettlingChargesTheReservation(t *testing.T) {
	for name, ask := range map[string]decision{"stop": stop, "pause": pause, "delete": remove, "take": take, "fail": fail} {
		out, err := ask(given(t, asking))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range out {
			if f, ok := p.(session.ModelFailed); ok {
				found = f.Cost == 10 && f.Totals.Cost == 10 && f.Call == "m"
			}
		}
		if !found {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestChainSeesEachStep(t *testing.T) {
	st := given(t, fresh)
	claims := session.Chain(take, func(s session.State) ([]session.Payload, error) { return s.BeginTurn(s.Claim) },
		func(s session.State) ([]session.Payload, error) {
			return s.AskModel(s.Claim, session.ModelAsked{Call: "m", Model: "model"}, nil)
		})
	out, err := claims(st)
	if err != nil || fmt.Sprint(len(out)) != "3" || out[2].(session.ModelAsked).UpTo != 4 {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err := session.Chain(take, endTurn)(st); err == nil || out != nil {
		t.Fatalf("a chain with a refusal gave %v, %v", out, err)
	}
}

func TestKeysAreForgottenLate(t *testing.T) {
	st := given(t, payloads{created})
	for i := range 5 * session.RememberedKeys {
		st = st.Apply(session.Event{Number: st.Last + 1, Payload: session.UserSaid{Key: fmt.Sprint(i)}})
		for back := range min(i+1, session.RememberedKeys) {
			if !st.Delivered(fmt.Sprint(i - back)) {
				t.Fatalf("key %d is forgotten at %d", i-back, i)
			}
		}
	}
}
