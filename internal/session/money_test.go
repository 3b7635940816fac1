package session_test

import (
	"errors"
	"testing"

	"deckhand/internal/session"
)

func TestBudgetIsTheLesser(t *testing.T) {
	for _, c := range []struct {
		person  *session.Money
		granted bool
		want    session.Money
		ok      bool
	}{
		{nil, false, 0, false},
		{limit(9, true), false, 9, true},
		{nil, true, 7, true},
		{limit(9, true), true, 7, true},
		{limit(5, true), true, 5, true},
		{limit(0, true), true, 0, true},
	} {
		made := created
		if c.granted {
			made.Grant, made.Granted = 7, true
		}
		if got, ok := given(t, payloads{made}).Budget(c.person); got != c.want || ok != c.ok {
			t.Errorf("%+v: %d, %v", c, got, ok)
		}
	}
}

// What is set aside for a child can neither be reserved nor granted a second time.
func TestGrantsCountAsSpent(t *testing.T) {
	grant := func(child session.ID, most session.Money) decision {
		return func(s session.State) ([]session.Payload, error) {
			return s.GrantTo(owner, child, most, limit(10, true))
		}
	}
	var over *session.BudgetError
	st, _ := follow(t, given(t, turning), grant("one", 6))
	if got, ok := st.Granted("one"); got != 6 || !ok || st.Committed() != 6 {
		t.Fatalf("%d, %v of %+v", got, ok, st.Grants)
	}
	if _, err := askModel(5, 10, true)(st); !errors.As(err, &over) {
		t.Errorf("what is granted is reserved again: %v", err)
	}
	if _, err := askModel(4, 10, true)(st); err != nil {
		t.Errorf("what is left cannot be reserved: %v", err)
	}
	all, _ := follow(t, st, grant("two", 0))
	if got, _ := all.Granted("two"); got != 4 {
		t.Errorf("all that is left is %d", got)
	}
	if _, err := grant("three", 1)(all); !errors.As(err, &over) {
		t.Errorf("nothing is left, and is granted: %v", err)
	}
	asked, _ := follow(t, st, askModel(3, 10, true), grant("two", 0))
	if got, _ := asked.Granted("two"); got != 1 {
		t.Errorf("%d are granted, 3 are reserved and 6 granted of 10", got)
	}
	free, _ := follow(t, st, func(s session.State) ([]session.Payload, error) { return s.Settle("one", 2) })
	if _, ok := free.Granted("one"); ok || free.Committed() != 2 || free.Totals.Cost != 2 || !free.Counted("one") {
		t.Errorf("settled: %+v", free)
	}
	if out, err := (func(s session.State) ([]session.Payload, error) { return s.GrantTo(owner, "child", 0, nil) })(given(t, turning)); err != nil || out != nil {
		t.Errorf("without a limit nothing is set aside: %v, %v", out, err)
	}
}

// A grant outlives what ends the call that asked for it, until it is settled.
func TestGrantsSurvive(t *testing.T) {
	for name, end := range map[string]decision{"stop": stop, "pause": pause, "fail": fail, "take": take} {
		st, _ := follow(t, given(t, with(running, grant)), end)
		if got, ok := st.Granted("child"); !ok || got != grant.Amount {
			t.Errorf("%s: %d, %v", name, got, ok)
			continue
		}
		if st, _ = follow(t, st, settleChild, settleChild); st.Totals.Cost != 3 || len(st.Grants) != 0 {
			t.Errorf("%s: settled twice it cost %d, and %v is open", name, st.Totals.Cost, st.Grants)
		}
	}
}

// Children are remembered as long as the call that asked for them is open, so
// that what a state remembers does not grow with its history.
func TestChildrenAreForgotten(t *testing.T) {
	open := given(t, with(running, callB, settled, returned("a", 7)))
	if !open.Counted("child") {
		t.Error("it is forgotten while a call is open")
	}
	if st, _ := follow(t, open, func(s session.State) ([]session.Payload, error) {
		return s.Returned(owner, session.ToolReturned{ID: "b", Outcome: session.Succeeded})
	}); st.Counted("child") {
		t.Error("it is never dropped")
	}
}

// A child that is capped while it works keeps what it has reserved, and no more.
func TestCapCoversWhatIsUnderWay(t *testing.T) {
	st, _ := follow(t, given(t, with(asking, grant)), capSpending) // 10 reserved, 4 granted
	if st.Limit != 14 || !st.Limited {
		t.Fatalf("the limit is %d", st.Limit)
	}
	var over *session.BudgetError
	st, _ = follow(t, st, answer("m"), settleChild)
	if _, err := askModel(12, 0, false)(st); !errors.As(err, &over) || over.Budget != 14 {
		t.Errorf("reserved beyond the cap: %v", err)
	}
	st, _ = follow(t, st, capSpending)
	if out, _ := st.Cap(); st.Limit != 3 || out != nil {
		t.Errorf("the limit is %d, and then %v", st.Limit, out)
	}
	made := session.Created{Owner: "maria", Grant: 4, Granted: true}
	dear, _ := follow(t, given(t, payloads{made, said, claimed, began, asked, answered}), capSpending)
	if dear.Limit != 4 {
		t.Errorf("a call that was dearer than thought raised the limit to %d", dear.Limit)
	}
}

// A call that is made again does not count as one of the turn's.
func TestRetriedDoesNotCount(t *testing.T) {
	retry := func(s session.State) ([]session.Payload, error) {
		return s.AskFailed(owner, "m", "overload", "", 0, true)
	}
	summary := func(s session.State) ([]session.Payload, error) {
		return s.AskModel(owner, session.ModelAsked{Call: "m", Purpose: session.ForSummary}, nil)
	}
	for name, c := range map[string]struct {
		rules []decision
		asks  int
	}{
		"asked":            {[]decision{askModel(1, 0, false)}, 1},
		"failed":           {[]decision{askModel(1, 0, false), askFailed("m")}, 1},
		"retried":          {[]decision{askModel(1, 0, false), retry}, 0},
		"asked anew":       {[]decision{askModel(1, 0, false), retry, askModel(1, 0, false)}, 1},
		"taken over":       {[]decision{askModel(1, 0, false), take}, 0},
		"paused":           {[]decision{askModel(1, 0, false), pause, resume}, 0},
		"a summary":        {[]decision{summary, answer("m")}, 0},
		"a summary failed": {[]decision{askModel(1, 0, false), answer("m"), summary, retry}, 1},
	} {
		if st, _ := follow(t, given(t, turning), c.rules...); st.Asks != c.asks {
			t.Errorf("%s: %d model calls are counted, want %d", name, st.Asks, c.asks)
		}
	}
}

// A summary shows the model nothing of what waits, and its answer is no step.
func TestSummaryIsNoStep(t *testing.T) {
	st, out := follow(t, given(t, turning), func(s session.State) ([]session.Payload, error) {
		return s.AskModel(owner, session.ModelAsked{Call: "m", Purpose: session.ForSummary}, nil)
	}, func(s session.State) ([]session.Payload, error) {
		return s.Answered(owner, session.ModelAnswered{Call: "m", Text: "long ago", Cost: 2, ToolCalls: []session.ToolCall{{ID: "x"}}})
	})
	if st.Shown != 0 || st.Answer != 0 || len(st.Announced) != 0 || st.Totals.Cost != 2 {
		t.Errorf("%+v", st)
	}
	if a := out[1].(session.ModelAnswered); a.Purpose != session.ForSummary {
		t.Errorf("the answer says it is for %q", a.Purpose)
	}
}
