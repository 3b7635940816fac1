package session_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
)

// Short names for what the tables are made of.
var (
	created  = session.Created{Owner: "maria"}
	said     = session.UserSaid{Text: "hello"}
	claimed  = session.Claimed{By: "loop"}
	ready    = session.WorkspaceReady{Handle: []byte(`{"box":1}`)}
	began    = session.TurnBegan{}
	asked    = session.ModelAsked{Call: "m", Reserved: 10, UpTo: 4}
	answered = session.ModelAnswered{Call: "m", Cost: 5, Totals: session.Totals{Cost: 5}}
	twoCalls = session.ModelAnswered{Call: "m", ToolCalls: []session.ToolCall{{ID: "a", Name: "bash"}, {ID: "b", Name: "bash"}}}
	callA    = session.ToolCalled{ToolCall: session.ToolCall{ID: "a", Name: "bash"}}
	callB    = session.ToolCalled{ToolCall: session.ToolCall{ID: "b", Name: "bash"}}
	stopped  = session.Stopped{Reason: "enough"}
	failed   = session.Failed{ID: "STATUS$ERROR", Reason: "no image"}
)

type payloads = []session.Payload

// Stages of a session, each one longer than the one before. The numbers of the
// events are their places: created 1, said 2, claimed 3, began 4, asked 5, answer 6.
var (
	fresh   = payloads{created, said}
	owned   = with(fresh, claimed)
	turning = with(owned, began)
	asking  = with(turning, asked)
	calling = with(asking, twoCalls)
	running = with(calling, callA)
)

func with(stage payloads, more ...session.Payload) payloads {
	return append(append(payloads{}, stage...), more...)
}

// given folds a stage and insists that each event of it was allowed.
func given(t testing.TB, stage payloads) session.State {
	t.Helper()
	st := session.State{ID: "a-session"}
	for i, p := range stage {
		if err := st.Check(p); err != nil {
			t.Fatalf("the stage itself is not possible: %v", err)
		}
		st = st.Apply(session.Event{Number: int64(i) + 1, At: time.Unix(int64(i), 0).UTC(), Payload: p})
	}
	return st
}

func returned(id string, cause int64) session.ToolReturned {
	return session.ToolReturned{ID: id, Name: "bash", Cause: cause, Outcome: session.Succeeded}
}

// rule is a row: after the stage, the payload breaks the rule, or none if "".
type rule struct {
	breaks string
	stage  payloads
	next   session.Payload
}

var rules = []rule{
	{"a log begins with exactly one created event", nil, said},
	{"a log begins with exactly one created event", nil, session.Deleted{}},
	{"a log begins with exactly one created event", fresh, created},
	{"", nil, created},
	{"nothing follows deleted", with(fresh, session.Deleted{}), said},
	{"nothing follows deleted", with(fresh, session.Deleted{}), session.Deleted{}},
	{"nothing follows deleted", with(fresh, session.Deleted{}), session.Noted{}},
	{"a message is recorded once", payloads{created, session.UserSaid{Key: "k"}}, session.UserSaid{Key: "k"}},
	{"", payloads{created, session.UserSaid{Key: "k"}}, session.UserSaid{Key: "other"}},
	{"", fresh, said},
	{"only a stopped session can be started", fresh, session.StartRequested{}},
	{"", with(fresh, stopped), session.StartRequested{}},
	{"", with(owned, failed), session.StartRequested{}},
	{"the session is stopped already", with(fresh, stopped), stopped},
	{"the session is stopped already", with(fresh, stopped), failed},
	{"the session is stopped already", with(owned, failed), stopped},
	{"the session is stopped", with(fresh, stopped), claimed},
	{"the session is stopped", with(owned, failed), began},
	{"", with(fresh, stopped), session.Titled{Title: "t"}},
	{"", with(fresh, stopped), session.Deleted{}},
	{"nobody has claimed the session", fresh, began},
	{"nobody has claimed the session", with(owned, stopped, session.StartRequested{}), ready},
	{"", with(owned, claimed), ready},

	{"a turn is under way", turning, began},
	{"the model is asked within a turn", owned, asked},
	{"the model is asked within a turn", with(turning, session.Paused{}), asked},
	{"every tool call has its result before the model is asked again", calling, asked},
	{"every tool call has its result before the model is asked again", running, asked},
	{"the last model call is not settled", asking, asked},
	{"up_to lies within the log", turning, session.ModelAsked{Call: "m", UpTo: 5}},
	{"up_to lies within the log", with(asking, answered, session.TurnEnded{UpTo: 4}, began), session.ModelAsked{Call: "n", UpTo: 3}},
	{"money is not negative", turning, session.ModelAsked{Call: "m", UpTo: 4, Reserved: -1}},
	{"", turning, asked},

	{"an answer belongs to the one open model call", turning, answered},
	{"an answer belongs to the one open model call", asking, session.ModelAnswered{Call: "other"}},
	{"an answer belongs to the one open model call", turning, session.ModelFailed{Call: "m"}},
	{"an answer belongs to the one open model call", asking, session.ModelFailed{Call: "other"}},
	{"money is not negative", asking, session.ModelAnswered{Call: "m", Cost: -1}},
	{"money is not negative", asking, session.ModelFailed{Call: "m", Cost: -1}},
	{"the calls of an answer have ids of their own", asking, session.ModelAnswered{Call: "m", ToolCalls: []session.ToolCall{{ID: ""}}}},
	{"the calls of an answer have ids of their own", asking, session.ModelAnswered{Call: "m", ToolCalls: []session.ToolCall{{ID: "a"}, {ID: "a"}}}},
	{"", asking, answered},
	{"", asking, session.ModelFailed{Call: "m", Cost: 3}},

	{"tools run within a turn", with(calling, session.Paused{}), callA},
	{"tools run within a turn", owned, callA},
	{"tools run in the order the model called them", calling, callB},
	{"tools run in the order the model called them", turning, callA},
	{"", running, callB},
	{"a tool call has exactly one result", calling, returned("a", 7)},
	{"a tool call has exactly one result", with(running, returned("a", 7)), returned("a", 7)},
	{"a result names the call that caused it", running, returned("a", 6)},
	{"", running, returned("a", 7)},
	{"approval is asked once, for an open call", calling, session.ApprovalAsked{ID: "a"}},
	{"approval is asked once, for an open call", with(running, session.ApprovalAsked{ID: "a"}), session.ApprovalAsked{ID: "a"}},
	{"approval is given once, when asked", running, session.ApprovalGiven{ID: "a"}},
	{"approval is given once, when asked", with(running, session.ApprovalAsked{ID: "a"}, session.ApprovalGiven{ID: "a"}), session.ApprovalGiven{ID: "a"}},
	{"", with(running, session.ApprovalAsked{ID: "a"}), session.ApprovalGiven{ID: "a", Approved: true}},

	{"reserved money is settled or released first", asking, stopped},
	{"reserved money is settled or released first", asking, failed},
	{"reserved money is settled or released first", asking, session.Deleted{}},
	{"reserved money is settled or released first", asking, session.TurnEnded{UpTo: 4}},
	{"every tool call has its result first", running, stopped},
	{"every tool call has its result first", running, failed},
	{"every tool call has its result first", running, session.Deleted{}},
	{"every tool call has its result first", running, session.TurnEnded{UpTo: 4}},
	{"every call of the answer is made first", calling, session.TurnEnded{UpTo: 4}},
	{"", calling, stopped},

	{"no turn is under way", owned, session.TurnEnded{UpTo: 2}},
	{"up_to lies within the log", turning, session.TurnEnded{UpTo: 5}},
	{"up_to lies within the log", with(asking, answered, session.TurnEnded{UpTo: 4}, began), session.TurnEnded{UpTo: 3}},
	{"no message is passed over that the model was not shown", turning, session.TurnEnded{UpTo: 2, State: session.AgentAwaitingUser}},
	{"no message is passed over that the model was not shown", with(asking, said, answered), session.TurnEnded{UpTo: 7, State: session.AgentFinished}},
	{"", with(asking, said, answered), session.TurnEnded{UpTo: 4, State: session.AgentFinished}},
	{"", turning, session.TurnEnded{UpTo: 4, State: session.AgentError, Reason: "the budget is spent"}},

	{"only a working agent can be paused", owned, session.Paused{}},
	{"only a working agent can be paused", with(turning, session.Paused{}), session.Paused{}},
	{"open work is settled first", asking, session.Paused{}},
	{"open work is settled first", running, session.Paused{}},
	{"the session is not paused", turning, session.Resumed{}},
	{"", with(turning, session.Paused{}), session.Resumed{}},

	{"the range lies within the log", fresh, session.Condensed{From: 0, To: 1}},
	{"the range lies within the log", fresh, session.Condensed{From: 2, To: 1}},
	{"the range lies within the log", fresh, session.Condensed{From: 1, To: 3}},
	{"a tool call is not separated from its result", running, session.Condensed{From: 5, To: 7}},
	{"a tool call is not separated from its result", with(running, said, returned("a", 7)), session.Condensed{From: 1, To: 7}},
	{"a tool call is not separated from its result", with(running, said, returned("a", 7)), session.Condensed{From: 8, To: 9}},
	{"a tool call is not separated from its result", with(running, said, returned("a", 7)), session.Condensed{From: 8, To: 8}},
	{"a tool call is not separated from its result", with(running, callB, returned("a", 7), returned("b", 8)), session.Condensed{From: 7, To: 9}},
	{"", with(running, said, returned("a", 7)), session.Condensed{From: 7, To: 9}},
	{"", running, session.Condensed{From: 1, To: 6}},
}

func TestCheck(t *testing.T) {
	for _, r := range rules {
		st := given(t, r.stage)
		err := st.Check(r.next)
		switch {
		case r.breaks == "" && err != nil:
			t.Errorf("%s after %d events: %v", r.next.Kind(), len(r.stage), err)
		case r.breaks != "" && err == nil:
			t.Errorf("%s after %d events is allowed, it breaks: %s", r.next.Kind(), len(r.stage), r.breaks)
		case r.breaks != "" && (!errors.Is(err, session.ErrRefused) || !strings.HasSuffix(err.Error(), ": "+r.breaks)):
			t.Errorf("%s after %d events: %v, want: %s", r.next.Kind(), len(r.stage), err, r.breaks)
		}
	}
}

// A call that is open under the id of the next one cannot come about by
// allowed events; the rule guards against a damaged log.
func TestCheckOpenCallTwice(t *testing.T) {
	st := given(t, calling)
	st.Open = []session.OpenCall{{ID: "a", Number: 3}}
	if err := st.Check(callA); err == nil || !strings.Contains(err.Error(), "a tool call has one id") {
		t.Fatal(err)
	}
}

// Every rule in the source must have a row that breaks it.
func TestEveryRuleHasARow(t *testing.T) {
	broken := map[string]bool{"a tool call has one id": true} // TestCheckOpenCallTwice
	for _, r := range rules {
		broken[r.breaks] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "check.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		if fn, ok := call.Fun.(*ast.SelectorExpr); !ok || fn.Sel.Name != "no" {
			return true
		}
		text, err := strconv.Unquote(call.Args[1].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if found++; !broken[text] {
			t.Errorf("no row breaks the rule %q", text)
		}
		return true
	})
	if found < 30 {
		t.Errorf("found only %d rules: has check.go changed its form?", found)
	}
}

// A state is a value: what is applied to it twice must not meet in a shared slice.
func TestStatesAreValues(t *testing.T) {
	st := given(t, with(asking, session.ModelAnswered{Call: "m", ToolCalls: []session.ToolCall{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}},
		callA, callB, session.ToolCalled{ToolCall: session.ToolCall{ID: "c"}}))
	next := session.Event{Number: st.Last + 1, Payload: session.ToolCalled{ToolCall: session.ToolCall{ID: "d"}}}
	one := st.Apply(next)
	next.Payload = session.ToolCalled{ToolCall: session.ToolCall{ID: "other"}}
	two := st.Apply(next)
	st.Apply(session.Event{Number: st.Last + 1, Payload: session.ApprovalAsked{ID: "a"}})
	st.Apply(session.Event{Number: st.Last + 1, Payload: returned("a", 7)})
	if one.Open[3].ID != "d" || two.Open[3].ID != "other" || len(st.Open) != 3 || st.Open[0].ID != "a" || st.Open[0].Asked {
		t.Fatalf("%+v\n%+v\n%+v", one.Open, two.Open, st.Open)
	}
}
