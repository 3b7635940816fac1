package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/native"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// remote shows an event as a server tells it.
func remote(t *testing.T, d *terminal.Display, line []byte) {
	t.Helper()
	var e api.Event
	if err := json.Unmarshal(line, &e); err != nil {
		t.Fatal(err)
	}
	events, err := native.Read(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		d.Remote(e)
	}
}

// over shows facts as they look after a server has told them.
func over(t *testing.T, o terminal.Options, steps ...any) string {
	t.Helper()
	var b strings.Builder
	o.Out = &b
	d := terminal.New(o)
	for i, s := range steps {
		switch s := s.(type) {
		case string:
			call, text, _ := strings.Cut(s, ":")
			d.RemoteDelta(call, 1<<40, text)
		case session.Payload:
			line, shown, err := native.Encode(session.Event{Number: int64(i + 1), Payload: s})
			if err != nil {
				t.Fatal(err)
			}
			if !shown {
				continue
			}
			remote(t, d, line)
		}
	}
	return b.String()
}

// A conversation looks the same here and over a server.
func TestRemoteLooksTheSame(t *testing.T) {
	bash := func(id, thought string) session.ToolCalled {
		c := called(id, "execute_bash", m{"command": "make\ntest"})
		c.Thought = thought
		return c
	}
	answer := session.ModelAnswered{Call: "m1", Text: "I look.", ToolCalls: []session.ToolCall{{ID: "c"}}}
	waits := bash("c", "")
	waits.Awaits = true
	for name, steps := range map[string][]any{
		"a message and an answer":  {session.UserSaid{Text: "Hi"}, session.ModelAnswered{Call: "m1", Text: "Hello."}},
		"an answer as it comes":    {"m1:Hel", "m1:lo.", session.ModelAnswered{Call: "m1", Text: "Hello."}},
		"one that came in part":    {"m1:Hel", session.ModelAnswered{Call: "m1", Text: "Hello."}},
		"a command":                {"m1:I lo", answer, bash("c", "I look."), "c:one\n", returned("c", "execute_bash", "one\ntwo\n", `{"exit_code":2,"suffix":"x"}`)},
		"a command that waits":     {bash("c", ""), returned("c", "execute_bash", "", `{"exit_code":-1,"suffix":"\n[It still runs.]"}`)},
		"a change":                 {called("c", "str_replace_editor", m{"command": "str_replace", "path": "/w/a"}), result("c", "str_replace_editor", m{"command": "str_replace", "path": "/w/a"}, "Edited.", `{"path":"/w/a","new_content":"b","diff":"@@ -1 +1 @@\n-a\n+b\n"}`)},
		"a look":                   {called("c", "str_replace_editor", m{"command": "view", "path": "/w/a"}), result("c", "str_replace_editor", m{"command": "view", "path": "/w/a"}, "1\n2\n3", "")},
		"a plan":                   {called("c", "task_tracker", m{"command": "plan", "task_list": []m{{"title": "a", "status": "done"}}}), returned("c", "task_tracker", "ok", "")},
		"a thought":                {called("c", "think", m{"thought": "hm"}), returned("c", "think", "ok", "")},
		"another tool":             {called("c", "issues_search", m{"query": "a"}), returned("c", "issues_search", "none", `{"result":{"content":[{"type":"text","text":"none"}],"isError":false}}`)},
		"one that fails":           {called("c", "issues_search", m{}), session.ToolReturned{ID: "c", Name: "issues_search", Outcome: session.FailedRun, Output: "no such host", Details: json.RawMessage(`{"result":{"content":[{"type":"text","text":"no such host"}],"isError":true}}`)}},
		"one that fails otherwise": {called("c", "fetch", m{"url": "x"}), session.ToolReturned{ID: "c", Name: "fetch", Outcome: session.FailedRun, Output: "no such host"}},
		"a rejected call":          {waits, session.ApprovalAsked{ID: "c", Reason: "It writes."}, session.ApprovalGiven{ID: "c"}, session.ToolReturned{ID: "c", Name: "execute_bash", Outcome: session.Rejected, Output: "No."}},
		"the end":                  {called("c", "finish", m{"message": "All done."}), result("c", "finish", m{"message": "All done."}, "", "")},
		"a problem":                {session.TurnEnded{State: session.AgentError, ErrorID: "STATUS$ERROR", Reason: "No key."}, session.Failed{Reason: "No sandbox."}},
		"a limit on the rate":      {session.StateChanged{State: session.AgentRateLimited, Reason: "slow"}, session.TurnEnded{State: session.AgentRateLimited, ErrorID: "RATE", Reason: "Asked too often."}},
		"a pause":                  {session.TurnBegan{}, session.Paused{}, session.Resumed{}, session.TurnEnded{State: session.AgentFinished}},
		"notices":                  {session.Noted{ID: "X", Message: "Retrying."}, session.Noted{ID: "X", Message: "Lost.", Error: true}, session.Titled{Title: "t"}, session.RequestOpened{Provider: "github", Number: 3, URL: "https://x"}},
		"knowledge":                {session.Recalled{Items: []session.Knowledge{{Name: "go"}}}},
		"a set-up script":          {session.SetUp{Script: ".deckhand/setup.sh", Exit: 1, Problem: "It failed."}},
		"a summary":                {session.Condensed{From: 1, To: 2, Summary: "s"}},
		"not shown":                {session.Claimed{}, session.ModelAsked{Call: "m"}, session.ModelFailed{Call: "m", Class: "rate", Message: "slow", Retried: true}, session.ModelFailed{Call: "m", Class: "overload", Message: "slow"}, session.Briefed{Prompt: "p"}, session.WorkspaceReady{}},
	} {
		o := terminal.Options{Messages: true}
		if here, there := show(o, steps...), over(t, o, steps...); here != there || name != "not shown" && here == "" {
			t.Errorf("%s: here %q, over a server %q", name, here, there)
		}
	}
}

func result(id, name string, args m, text, details string) session.ToolReturned {
	r := returned(id, name, text, details)
	r.Args, _ = json.Marshal(args)
	return r
}

// Events of another server do not say how the model called the tool.
func TestRemoteWithoutTheCall(t *testing.T) {
	var b strings.Builder
	d := terminal.New(terminal.Options{Out: &b})
	for i, raw := range []string{
		`{"id":1,"source":"agent","action":"run","args":{"command":"ls","thought":"I look."}}`,
		`{"id":2,"source":"agent","observation":"run","content":"a","extras":{"command":"ls","metadata":{"exit_code":1}}}`,
		`{"id":3,"source":"agent","action":"read","args":{"path":"/w/a"}}`,
		`{"id":4,"source":"agent","action":"think","args":{"thought":"hm"}}`,
		`{"id":5,"source":"agent","action":"finish","args":{"final_thought":"Done.","thought":""}}`,
		`{"id":"six","source":7,"action":"recall","args":[]}`, `[]`,
	} {
		line, _, err := native.Encode(session.Event{Number: int64(i + 1), Payload: session.Imported{Event: json.RawMessage(raw)}})
		if err != nil {
			t.Fatal(err)
		}
		remote(t, d, line)
	}
	if want := "I look.\n$ ls\n  a\n  exit code 1\n• read /w/a\n  hm\nDone.\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// tell shows the events of a server.
func tell(d *terminal.Display, number int64, all ...session.Payload) {
	for _, p := range all {
		d.Remote(session.Event{Number: number, Payload: p})
	}
}

// After a cut the whole text comes again; it is not shown twice.
func TestRemoteDeltaAgain(t *testing.T) {
	var b strings.Builder
	d := terminal.New(terminal.Options{Out: &b})
	d.RemoteDelta("m1", 0, "Hel")
	d.RemoteDelta("m1", 0, "Hello,")
	d.RemoteDelta("m1", 0, "He")
	d.RemoteDelta("m1", 6, " you.")
	tell(d, 1, session.ModelAnswered{Call: "m1", Text: "Hello, you."}, called("c", "execute_bash", m{"command": "x"}))
	d.RemoteDelta("c", 0, "one\ntw")
	d.RemoteDelta("c", 0, "one\ntwo\n")
	tell(d, 2, returned("c", "execute_bash", "one\ntwo\n", ""))
	if want := "Hello, you.\n$ x\n  one\n  two\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// Fragments may come before the event that they follow.
func TestRemoteDeltaOvertakes(t *testing.T) {
	var b strings.Builder
	d := terminal.New(terminal.Options{Out: &b})
	tell(d, 1, called("c", "execute_bash", m{"command": "x"}))
	d.RemoteDelta("m2", 0, "It ")
	d.RemoteDelta("m2", 0, "It is")
	tell(d, 2, returned("c", "execute_bash", "one\n", ""))
	d.RemoteDelta("m2", 5, " one")
	tell(d, 3, session.ModelAnswered{Call: "m2", Text: "It is one."}, called("r", "request_condensation", m{}))
	d.RemoteDelta("m3", 0, "Nothing comes of such a call.")
	tell(d, 4, session.ModelAnswered{Call: "m3", Text: "Nothing comes of such a call."})
	tell(d, 5, called("e", "execute_bash", m{"command": "y"}), returned("e", "execute_bash", "two\n", ""))
	if want := "$ x\n  one\nIt is one.\nNothing comes of such a call.\n$ y\n  two\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// Nothing is left out where everything was asked for.
func TestWhole(t *testing.T) {
	long := strings.Repeat(strings.Repeat("w", 500)+"\n", 60)
	got := show(terminal.Options{Whole: true}, called("c", "execute_bash", m{"command": long}), returned("c", "execute_bash", long, ""),
		called("e", "str_replace_editor", m{"command": "create", "path": "/w/a"}), returned("e", "str_replace_editor", "", string(mustJSON(m{"diff": long}))))
	if strings.Count(got, strings.Repeat("w", 500)) != 180 || strings.Contains(got, "…") {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// What a server tells is shown without anything that a terminal obeys.
func FuzzRemote(f *testing.F) {
	f.Add("tool_called", `{"id":"c","name":"execute_bash","args":{"command":"ls"}}`)
	f.Add("imported", `{"as":[{"id":1,"kind":"user_said","time":"2026-01-02T15:04:05Z","payload":{"text":"hi"}}]}`)
	f.Add("turn_ended", `{"state":"error","reason":"x"}`)
	f.Fuzz(func(t *testing.T, kind, payload string) {
		var b strings.Builder
		d := terminal.New(terminal.Options{Out: &b, Messages: true})
		events, _ := native.Read(api.Event{ID: 1, Kind: kind, Time: "2026-01-02T15:04:05Z", Payload: json.RawMessage(payload)})
		for _, e := range events {
			d.Remote(e)
		}
		if terminal.Clean(b.String()) != b.String() {
			t.Errorf("%s %q is shown as %q", kind, payload, b.String())
		}
	})
}
