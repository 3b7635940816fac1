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
	recorded = session.Created{Owner: "maria", Replay: "[]", Then: &session.UserSaid{Text: "and then", Key: "then"}}
	grant    = session.Granted{Child: "child", Amount: 4}
	settled  = session.Settled{Child: "child", Cost: 3, Totals: session.Totals{Cost: 3}}
	cloned   = session.CheckedOut{Repository: "octo/app", Branch: "main", Dir: "/workspace/app", Folder: "app", Script: "setup.sh"}
	ours     = session.Created{Owner: "maria", Repository: "octo/app"}
	gaveUp   = session.TurnEnded{UpTo: 4, State: session.AgentError, ErrorID: "STATUS$ERROR"}
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
	// A trajectory is replayed: created 1, claimed 2, ready 3.
	replaying = payloads{recorded, claimed, ready}
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
	{"a pull request is recorded once", with(fresh, request), request},
	{"a pull request has a repository and a number", fresh, session.RequestOpened{Repository: "a/b"}},
	{"a pull request has a repository and a number", fresh, session.RequestOpened{Number: 1}},
	{"nothing follows deleted", with(fresh, session.Deleted{}), request},
	{"", with(fresh, stopped), request},
	{"", with(fresh, request), session.RequestOpened{Provider: "gitea", Repository: "octo/app", Number: 7}},
	{"a checkout is of the session's repository, in a folder", fresh, cloned},
	{"a checkout is of the session's repository, in a folder", payloads{ours}, session.CheckedOut{Repository: "octo/app"}},
	{"", payloads{ours}, cloned},
	{"", payloads{ours, claimed, stopped, cloned}, cloned},
	{"nothing follows deleted", payloads{ours, session.Deleted{}}, cloned},
	{"a checkout is set up once, by its script", payloads{ours}, session.SetUp{}},
	{"a checkout is set up once, by its script", payloads{ours, cloned, session.SetUp{}}, session.SetUp{}},
	{"a checkout is set up once, by its script", payloads{ours, session.CheckedOut{Dir: "/d"}}, session.SetUp{}},
	{"", payloads{ours, cloned}, session.SetUp{Exit: 1}},
	{"", payloads{ours, cloned, session.SetUp{}, cloned}, session.SetUp{}},
	{"", fresh, said},
	{"the conversation is not stopped", fresh, session.StartRequested{}},
	{"", with(fresh, stopped), session.StartRequested{}},
	{"", with(owned, failed), session.StartRequested{}},
	{"the conversation is already stopped", with(fresh, stopped), stopped},
	{"the conversation is already stopped", with(fresh, stopped), failed},
	{"the conversation is already stopped", with(owned, failed), stopped},
	{"the conversation is stopped", with(fresh, stopped), claimed},
	{"the conversation is stopped", with(owned, failed), began},
	{"", with(fresh, stopped), session.Titled{Title: "t"}},
	{"", with(fresh, stopped), session.Deleted{}},
	{"the session is not claimed", fresh, began},
	{"the session is not claimed", with(owned, stopped, session.StartRequested{}), ready},
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
	{"an answer has the purpose of its call", asking, session.ModelAnswered{Call: "m", Purpose: session.ForSummary}},
	{"an answer has the purpose of its call", with(turning, session.ModelAsked{Call: "m", UpTo: 4, Purpose: session.ForSummary}), answered},
	{"", asking, answered},
	{"", asking, session.ModelFailed{Call: "m", Cost: 3}},
	{"", with(turning, session.ModelAsked{Call: "m", UpTo: 4, Purpose: session.ForSummary}), session.ModelAnswered{Call: "m", Purpose: session.ForSummary}},

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
	{"the person is asked about one call at a time", with(running, callB, session.ApprovalAsked{ID: "a"}), session.ApprovalAsked{ID: "b"}},
	{"a call that was not approved is not made", with(running, session.ApprovalAsked{ID: "a"}), returned("a", 7)},
	{"a call that was not approved is not made", with(running, session.ApprovalAsked{ID: "a"}, session.ApprovalGiven{ID: "a"}), session.ToolReturned{ID: "a", Cause: 7, Outcome: session.FailedRun}},
	{"", with(running, session.ApprovalAsked{ID: "a"}), session.ToolReturned{ID: "a", Cause: 7, Outcome: session.Cancelled}},
	{"", with(running, session.ApprovalAsked{ID: "a"}, session.ApprovalGiven{ID: "a"}), session.ToolReturned{ID: "a", Cause: 7, Outcome: session.Rejected}},
	{"", with(running, session.ApprovalAsked{ID: "a"}, session.ApprovalGiven{ID: "a", Approved: true}), returned("a", 7)},
	{"", with(running, session.ApprovalAsked{ID: "a"}), session.ApprovalGiven{ID: "a", Approved: true}},
	{"", with(running, callB, session.ApprovalAsked{ID: "a"}, session.ApprovalGiven{ID: "a", Approved: true}), session.ApprovalAsked{ID: "b"}},

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
	{"no turn is under way", with(turning, session.Paused{}), gaveUp},
	{"no message is passed over that the model was not shown", turning, session.TurnEnded{UpTo: 4, State: session.AgentRateLimited, ErrorID: "RATE"}},
	{"up_to lies within the log", turning, session.TurnEnded{UpTo: 5}},
	{"up_to lies within the log", with(asking, answered, session.TurnEnded{UpTo: 4}, began), session.TurnEnded{UpTo: 3}},
	{"no message is passed over that the model was not shown", turning, session.TurnEnded{UpTo: 2, State: session.AgentAwaitingUser}},
	{"no message is passed over that the model was not shown", with(asking, said, answered), session.TurnEnded{UpTo: 7, State: session.AgentFinished}},
	{"", with(asking, said, answered), session.TurnEnded{UpTo: 4, State: session.AgentFinished}},
	{"", turning, session.TurnEnded{UpTo: 4, State: session.AgentError, Reason: "the budget is spent"}},

	{"the agent is not working, so it cannot be paused", owned, session.PauseRequested{}},
	{"the agent is not working, so it cannot be paused", with(asking, session.PauseRequested{}), session.PauseRequested{}},
	{"", asking, session.PauseRequested{}},
	{"the agent is not working, so it cannot be paused", owned, session.Paused{}},
	{"the agent is not working, so it cannot be paused", with(turning, session.Paused{}), session.Paused{}},
	{"open work is settled first", asking, session.Paused{}},
	{"open work is settled first", running, session.Paused{}},
	{"there is nothing to resume", turning, session.Resumed{}},
	{"there is nothing to resume", owned, session.Resumed{}},
	{"there is nothing to resume", with(turning, gaveUp, session.Resumed{}), session.Resumed{}},
	{"there is nothing to resume", with(turning, gaveUp, said, began), session.Resumed{}},
	{"the conversation is stopped", with(turning, gaveUp, stopped), session.Resumed{}},
	{"", with(turning, session.Paused{}), session.Resumed{}},
	{"", with(turning, gaveUp), session.Resumed{}},
	{"", with(turning, gaveUp, session.Resumed{}), began},

	{"the model is spoken to within a turn", owned, session.Nudged{Rule: "stuck"}},
	{"", turning, session.Nudged{Rule: "stuck"}},
	{"the session is not claimed", fresh, session.Nudged{Rule: "stuck"}},
	{"", fresh, session.Recalled{Of: 2}},
	{"", fresh, session.RecallAsked{Of: 2}},

	{"", fresh, session.CommandTyped{Command: "ls"}},
	{"the conversation is stopped", with(owned, stopped), session.CommandTyped{Command: "ls"}},
	{"every command of a person has its result first", with(owned, session.CommandTyped{Command: "ls"}), stopped},
	{"every command of a person has its result first", with(owned, session.CommandTyped{Command: "ls"}), session.Deleted{}},
	{"a command of a person has exactly one result", owned, session.CommandEnded{Cause: 2}},

	{"a replay goes forward until it is done", owned, session.Replayed{Next: 1}},
	{"a replay goes forward until it is done", with(replaying, session.Replayed{Next: 2}), session.Replayed{Next: 1}},
	{"a replay goes forward until it is done", with(replaying, session.Replayed{Next: 2, Done: true}), session.Replayed{Next: 3}},
	{"the conversation is stopped", with(replaying, stopped), session.Replayed{Next: 1}},
	{"the session is not claimed", payloads{recorded}, session.Replayed{Next: 1}},
	{"", with(replaying, session.Replayed{Next: 2}), session.Replayed{Next: 2, Done: true}},
	{"", with(replaying, session.Replayed{Next: 2}, stopped, session.StartRequested{}, claimed), session.Replayed{Next: 3}},

	{"a grant has a child and is not negative", owned, session.Granted{Amount: 4}},
	{"a grant has a child and is not negative", owned, session.Granted{Child: "child", Amount: -1}},
	{"a child is granted money once", with(owned, grant), grant},
	{"a child is granted money once", with(owned, grant, settled), grant},
	{"the session is not claimed", fresh, grant},
	{"", with(owned, grant), session.Granted{Child: "another"}},
	{"money is not negative", with(owned, grant), session.Settled{Child: "child", Cost: -1}},
	{"a child is settled once", with(owned, grant, settled), settled},
	{"", with(owned, grant), settled},
	{"", owned, settled},
	{"", with(owned, grant, stopped), settled},
	{"", with(owned, grant, failed), settled},
	{"what is spent cannot be taken back", with(asking, answered), session.Capped{Limit: 4}},
	{"a limit is set and not negative, or there is none", fresh, session.Overridden{Budget: -1, Limited: true}},
	{"a limit is set and not negative, or there is none", fresh, session.Overridden{Budget: 1}},
	{"", running, session.Overridden{Model: "other/model", Limited: true}},
	{"the model is asked within a turn", owned, session.ModelAsked{Call: "m", Purpose: session.ForSummary, UpTo: 3}},
	{"the model is asked within a turn", with(owned, session.CompactAsked{}), session.ModelAsked{Call: "m", UpTo: 3}},
	{"", with(owned, session.CompactAsked{}), session.ModelAsked{Call: "m", Purpose: session.ForSummary, UpTo: 3}},
	{"a limit is only lowered", with(asking, answered, session.Capped{Limit: 7}), session.Capped{Limit: 8}},
	{"a limit is only lowered", payloads{session.Created{Owner: "maria", Grant: 7, Granted: true}}, session.Capped{Limit: 8}},
	{"", with(asking, answered, session.Capped{Limit: 7}), session.Capped{Limit: 5}},
	{"", with(owned, stopped), session.Capped{}},

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
