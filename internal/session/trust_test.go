package session_test

import (
	"errors"
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/session/scripts"
)

var (
	hooked   = session.CheckedOut{Repository: "octo/app", Dir: "/workspace/app", Script: "setup.sh", Hook: "pre-commit.sh"}
	theirs   = scripts.Scripts{SetUp: "aa", Hook: "bb", Hash: "cc", Text: "echo"}
	others   = scripts.Scripts{SetUp: "dd", Hook: "bb", Hash: "ee", Text: "rm"}
	trusted  = session.TrustSet{Trusted: true, Reason: session.TrustByPush}
	confined = scripts.Terms{Confinable: true}
	askFirst = scripts.Terms{Confinable: true, Ask: true}
)

// judged is a state after the scripts were judged under some terms, and what was recorded.
func judged(t *testing.T, st session.State, r scripts.Scripts, terms scripts.Terms) (session.State, string) {
	t.Helper()
	out, err := scripts.Begin(st, r, terms)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range out {
		if err := st.Check(p); err != nil {
			t.Fatal(err)
		}
		st = st.Apply(session.Event{Number: st.Last + 1, Payload: p})
		kinds = append(kinds, string(p.Kind()))
	}
	return st, strings.Join(kinds, " ")
}

func next(t *testing.T, st session.State, list ...session.Payload) session.State {
	t.Helper()
	for _, p := range list {
		if err := st.Check(p); err != nil {
			t.Fatal(err)
		}
		st = st.Apply(session.Event{Number: st.Last + 1, Payload: p})
	}
	return st
}

// Scripts of a repository run at once only if it is trusted or they are confined.
func TestBeginScripts(t *testing.T) {
	claimed := session.Claimed{By: "loop"}
	st, got := judged(t, given(t, payloads{ours, claimed, hooked}), theirs, confined)
	if got != "hook_set set_up_began" || !st.Confined() || st.Hook.Installed || st.Trusts() {
		t.Errorf("%s: %+v %+v", got, st.SettingUp, st.Hook)
	}
	if st = next(t, st, session.SetUp{Script: "setup.sh"}); st.Confined() || st.Unprepared() {
		t.Error("the network stays closed")
	}
	st, got = judged(t, given(t, payloads{ours, claimed, trusted, hooked}), theirs, scripts.Terms{Hooked: true})
	if got != "hook_set set_up_began" || st.Confined() || !st.Hook.Installed {
		t.Errorf("%s: %+v %+v", got, st.SettingUp, st.Hook)
	}
	st, got = judged(t, given(t, payloads{ours, claimed, hooked}), theirs, scripts.Terms{})
	if got != "hook_set set_up" || st.SettingUp != nil || !strings.Contains(st.SetUp.Problem, "cannot close the network") {
		t.Errorf("%s: %+v", got, st.SetUp)
	}
}

// An approval is for exactly the scripts that were shown.
func TestApproveScripts(t *testing.T) {
	st, got := judged(t, given(t, payloads{ours, session.Claimed{By: "loop"}, session.WorkspaceReady{}, trusted, hooked}), theirs, askFirst)
	if got != "tool_called approval_asked" || st.Agent != session.AgentAwaitingYes || st.Wants() {
		t.Fatalf("%s %s", got, st.Agent)
	}
	if again, got := judged(t, st, theirs, askFirst); got != "" || again.Last != st.Last {
		t.Errorf("asked twice: %s", got)
	}
	for _, g := range []session.ApprovalGiven{{Approved: true, Args: []byte(`{}`)}, {Approved: true, Always: "x"}} {
		if _, err := st.Decide(g); !errors.Is(err, session.ErrRefused) {
			t.Errorf("%+v: %v", g, err)
		}
	}
	yes, err := st.Decide(session.ApprovalGiven{Approved: true})
	if err != nil {
		t.Fatal(err)
	}
	st = next(t, st, yes...)
	if !scripts.Approved(st, theirs) || scripts.Approved(st, others) || !st.Wants() {
		t.Error("the approval is of other scripts")
	}
	changed, got := judged(t, st, others, askFirst)
	if _, open := changed.Awaiting(); got != "tool_returned tool_called approval_asked" || !open || changed.SettingUp != nil {
		t.Errorf("changed: %s", got)
	}
	terms := askFirst
	terms.Hooked = true
	done, got := judged(t, st, theirs, terms)
	if got != "tool_returned hook_set set_up_began" || done.Agent != session.AgentLoading || done.Confined() || len(done.Open) != 0 {
		t.Errorf("approved: %s, %s", got, done.Agent)
	}
}

// A no, a stop and a repository that is not trusted: nothing runs without approval.
func TestRejectScripts(t *testing.T) {
	stage := payloads{ours, session.Claimed{By: "loop"}, session.UserSaid{Text: "Go"}, session.TurnBegan{}, hooked}
	st, _ := judged(t, given(t, stage), theirs, askFirst)
	no, err := st.Decide(session.ApprovalGiven{})
	if err != nil {
		t.Fatal(err)
	}
	rejected, got := judged(t, next(t, st, no...), theirs, askFirst)
	if got != "tool_returned state_changed set_up hook_set" || rejected.Agent != session.AgentRunning || rejected.Over != "" || rejected.Unprepared() {
		t.Errorf("%s %s", got, rejected.Agent)
	}
	stop, err := st.Stop("enough")
	if err != nil {
		t.Fatal(err)
	}
	if st = next(t, st, stop...); st.SetUp != nil || !st.Unprepared() || len(st.Open) != 0 {
		t.Errorf("%+v", st.Open)
	}
	if out, err := scripts.Begin(st, theirs, askFirst); len(out) != 0 || err != nil {
		t.Errorf("a stopped session is asked about: %v %v", out, err)
	}
}

// What the person says outweighs what was found out, and outsiders are asked about.
func TestTrust(t *testing.T) {
	outside := session.Created{Owner: "maria", Repository: "octo/app", Outside: session.OutsideActor}
	st := given(t, payloads{outside, session.TrustSet{Reason: session.TrustOutside}})
	if st.Trusts() || !st.AsksScripts(false) {
		t.Error("an outsider is trusted")
	}
	by := session.TrustSet{Trusted: true, Reason: session.TrustByUser}
	if out, err := st.SetTrust(by); len(out) != 1 || err != nil {
		t.Errorf("%v %v", out, err)
	}
	st = next(t, st, by)
	if out, err := st.SetTrust(session.TrustSet{Reason: session.TrustNoPush}); len(out) != 0 || err != nil || !st.Trusts() || st.AsksScripts(false) || !st.AsksScripts(true) {
		t.Errorf("%v %v", out, err)
	}
	if _, err := given(t, fresh).SetTrust(by); !errors.Is(err, session.ErrRefused) {
		t.Errorf("%v", err)
	}
}
