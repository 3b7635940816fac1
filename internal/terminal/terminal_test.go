package terminal_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain, tab\tand\nline":     "plain, tab\tand\nline",
		"\x1b[31mred":               "␛[31mred",
		"a\r\nb":                    "a\nb",
		"10%\r20%":                  "10%\n20%",
		"bell\a back\b del\x7f":     "bell␇ back␈ del␡",
		"c1 \u009b31m \u0085":       "c1 \ufffd31m \ufffd",
		"rm \u202egpj.exe \u200b-r": "rm \ufffdgpj.exe \ufffd-r",
		"äöü 漢字 🎉":                  "äöü 漢字 🎉",
	} {
		if got := terminal.Clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := terminal.Inline("a\n\tb\x1b"); got != "a b␛" {
		t.Errorf("%q", got)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "\x1b]0;x\a", "\xc2\x9b", "a\rb", "\xff\xfe", "\u2066x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := terminal.Clean(s)
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("%q became %q", s, got)
			}
		}
		if again := terminal.Clean(got); again != got {
			t.Errorf("%q is not clean: %q", got, again)
		}
	})
}

// show is what a display without colours writes for these events; a string is a
// fragment of the call before the colon.
func show(o terminal.Options, steps ...any) string {
	var b strings.Builder
	o.Out = &b
	d := terminal.New(o)
	for i, s := range steps {
		switch s := s.(type) {
		case string:
			call, text, _ := strings.Cut(s, ":")
			d.Delta(call, text)
		case session.Payload:
			d.Event(session.Event{Number: int64(i + 1), Payload: s})
		}
	}
	return b.String()
}

func called(id, name string, args any) session.ToolCalled {
	raw, _ := json.Marshal(args)
	return session.ToolCalled{ToolCall: session.ToolCall{ID: id, Name: name, Args: raw}}
}

func returned(id, name, text string, details string) session.ToolReturned {
	return session.ToolReturned{ID: id, Name: name, Outcome: session.Succeeded, Output: text, Details: json.RawMessage(details)}
}

type m = map[string]any

func TestShown(t *testing.T) {
	var long, numbered strings.Builder
	for i := range 30 {
		fmt.Fprintf(&long, "line %d\n", i+1)
		fmt.Fprintf(&numbered, "+%d\n", i+1)
	}
	ran := called("c", "execute_bash", m{"command": "make"})
	for name, c := range map[string]struct {
		steps []any
		want  string
	}{
		"an answer as it comes":      {[]any{session.ModelAsked{Call: "m1"}, "m1:Hel", "m1:lo.", session.ModelAnswered{Call: "m1", Text: "Hello."}}, "Hello.\n"},
		"one that came in part":      {[]any{"m1:Hel", session.ModelAnswered{Call: "m1", Text: "Hello."}}, "Hello.\n"},
		"one that did not come":      {[]any{session.ModelAnswered{Call: "m1", Text: "Hello."}, "m1:Hello."}, "Hello.\n"},
		"a thought":                  {[]any{session.ModelAnswered{Call: "m1", Text: "Yes.", Reasoning: "hm\nhm"}}, "  hm\n  hm\nYes.\n"},
		"a summary is not shown":     {[]any{session.ModelAnswered{Call: "m1", Text: "long", Purpose: session.ForSummary}}, ""},
		"a command, live":            {[]any{ran, "c:one\ntw", "c:o\n", returned("c", "execute_bash", "one\ntwo\n", `{"exit_code":0}`)}, "$ make\n  one\n  two\n"},
		"a command, live in part":    {[]any{ran, "c:one\n", returned("c", "execute_bash", "one\ntwo", `{"exit_code":2}`)}, "$ make\n  one\n  two\n  exit code 2\n"},
		"a command, at its end":      {[]any{ran, returned("c", "execute_bash", "one\r\ntwo", "")}, "$ make\n  one\n  two\n"},
		"a command of a terminal":    {[]any{ran, "c:one\r\n", returned("c", "execute_bash", "one\ntwo", "")}, "$ make\n  one\n  two\n"},
		"a command that waits":       {[]any{ran, returned("c", "execute_bash", "", `{"exit_code":-1,"suffix":"\n[It still runs.]"}`)}, "$ make\n  It still runs.\n"},
		"input":                      {[]any{called("c", "execute_bash", m{"command": "yes", "is_input": "true"})}, "< yes\n"},
		"a change":                   {[]any{called("c", "str_replace_editor", m{"command": "str_replace", "path": "/w/a"}), returned("c", "str_replace_editor", "Edited.", `{"diff":"@@ -1 +1 @@\n-a\n+b\n"}`)}, "• edit /w/a\n  @@ -1 +1 @@\n  -a\n  +b\n"},
		"a look":                     {[]any{called("c", "str_replace_editor", m{"command": "view", "path": "/w/a"}), returned("c", "str_replace_editor", "1\n2\n3\n4\n5\n6", "")}, "• read /w/a\n  1\n  2\n  3\n  … 3 more lines\n"},
		"another tool":               {[]any{called("c", "issues_search", m{"query": "a\nb", "limit": 3}), returned("c", "issues_search", "none", "")}, "• issues_search limit=3 query=a b\n  none\n"},
		"a plan":                     {[]any{called("c", "task_tracker", m{"command": "plan", "task_list": []m{{"title": "a", "status": "done"}, {"title": "b", "status": "in_progress"}, {"title": "c"}}}), returned("c", "task_tracker", "ok", "")}, "• tasks\n  [x] a\n  [>] b\n  [ ] c\n"},
		"a tool that fails":          {[]any{called("c", "fetch", m{}), session.ToolReturned{ID: "c", Name: "fetch", Outcome: session.FailedRun, Output: "no such host"}}, "• fetch\n  no such host\n"},
		"an interrupted command":     {[]any{ran, "c:one\ntw", session.ToolReturned{ID: "c", Name: "execute_bash", Outcome: session.Cancelled, Partial: true, Output: "one\ntw\n[Interrupted by pause; the output ends here.]"}}, "$ make\n  one\n  tw\n  [Interrupted by pause; the output ends here.]\n"},
		"one that wrote more":        {[]any{ran, "c:one\ntwo\n", session.ToolReturned{ID: "c", Name: "execute_bash", Outcome: session.Cancelled, Partial: true, Output: "one\n[Interrupted by pause; the output ends here.]"}}, "$ make\n  one\n  two\n  [Interrupted by pause; the output ends here.]\n"},
		"a rejected call":            {[]any{ran, session.ToolReturned{ID: "c", Name: "execute_bash", Outcome: session.Rejected, Output: "The user rejected this call."}}, "$ make\n  The user rejected this call.\n"},
		"a notice amid words":        {[]any{"m1:Hel", session.Noted{Message: "Retrying."}}, "Hel\n· Retrying.\n"},
		"a problem":                  {[]any{session.TurnEnded{State: session.AgentError, Reason: "No key."}, session.Failed{Reason: "No sandbox."}}, "! No key.\n! No sandbox.\n"},
		"what was retried":           {[]any{session.ModelFailed{Call: "m1", Class: "rate", Message: "slow down", Retried: true}}, ""},
		"what a person said":         {[]any{session.UserSaid{Text: "a\nb\x1b"}}, "> a\n  b␛\n"},
		"what the agent is reminded": {[]any{session.Recalled{Items: []session.Knowledge{{Name: "go"}, {Name: "git"}}}}, "· knowledge used: go, git\n"},
	} {
		if got := show(terminal.Options{Messages: true}, c.steps...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	got := show(terminal.Options{}, ran, "c:"+long.String(), returned("c", "execute_bash", long.String(), ""))
	if !strings.Contains(got, "  line 12\n  … 10 lines not shown\n  line 23\n") || !strings.HasSuffix(got, "  line 30\n") || strings.Contains(got, "line 13") {
		t.Errorf("a long output: %s", got)
	}
	diff, _ := json.Marshal(m{"diff": numbered.String() + numbered.String()})
	if got = show(terminal.Options{}, called("c", "str_replace_editor", m{}), returned("c", "str_replace_editor", "", string(diff))); strings.Count(got, "  +") != 40 || !strings.Contains(got, "… 20 more lines") {
		t.Errorf("a long change: %s", got)
	}
}

// A person who is asked about a call sees all of it.
func TestAskedAboutTheWhole(t *testing.T) {
	for _, c := range []session.ToolCalled{
		called("c", "execute_bash", m{"command": strings.Repeat("true\n", 50) + "last"}),
		called("c", "str_replace_editor", m{"command": "create", "path": "/w/a", "file_text": strings.Repeat("x", 3000) + "last"}),
	} {
		c.Awaits = true
		got := show(terminal.Options{Width: func() int { return 40 }}, c, session.ApprovalAsked{ID: "c", Reason: "It writes\x1b."})
		if !strings.Contains(got, "last") || !strings.HasSuffix(got, "  ? It writes␛.\n") {
			t.Errorf("%s", got)
		}
	}
}

// What an edit would change is shown as a change, unless that would hide some of it.
func TestAskedAboutAnEdit(t *testing.T) {
	for name, c := range map[string]struct {
		args m
		want string
	}{
		"a new file":      {m{"command": "create", "path": "/w/a", "file_text": "one\n\n\x1btwo\n"}, "• write /w/a\n  +one\n  +\n  +␛two\n"},
		"a replacement":   {m{"command": "str_replace", "path": "/w/a", "old_str": "a\nb\nc\n", "new_str": "a\nx\ny\nc\n"}, "• edit /w/a\n   a\n  -b\n  +x\n  +y\n   c\n"},
		"one by nothing":  {m{"command": "str_replace", "path": "/w/a", "old_str": "a\n"}, "• edit /w/a\n  -a\n"},
		"of a line's end": {m{"command": "str_replace", "path": "/w/a", "old_str": "a\n", "new_str": "a"}, "• edit /w/a\n   a\n  +\\ without a line end\n"},
		"an insertion":    {m{"command": "insert", "path": "/w/a", "insert_line": 3, "new_str": "x"}, "• edit /w/a after line 3\n  +x\n"},
		"a look":          {m{"command": "view", "path": "/w/a"}, "• read /w/a\n"},
		"one with more":   {m{"command": "view", "path": "/w/a", "sudo": true}, "• str_replace_editor\n  {\n    \"command\": \"view\",\n    \"path\": \"/w/a\",\n    \"sudo\": true\n  }\n"},
		"one that is odd": {m{"command": "create", "path": "/w/a", "file_text": "a", "old_str": "b"}, "• str_replace_editor\n  {\n    \"command\": \"create\",\n    \"file_text\": \"a\",\n    \"old_str\": \"b\",\n    \"path\": \"/w/a\"\n  }\n"},
	} {
		call := called("c", "str_replace_editor", c.args)
		call.Awaits = true
		if got := show(terminal.Options{}, call); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What came out as it was shown is not shown again; what came out in another way is.
func TestEditAsShown(t *testing.T) {
	call := called("c", "str_replace_editor", m{"command": "str_replace", "path": "/w/a", "old_str": "a\n", "new_str": "b\n"})
	call.Awaits = true
	done := func(diff string) string {
		details, _ := json.Marshal(m{"diff": diff})
		return show(terminal.Options{}, call, returned("c", "str_replace_editor", "Edited.", string(details)))
	}
	if got, want := done("--- /w/a\n+++ /w/a\n@@ -1,2 +1,2 @@\n x\n-a\n+b\n"), "• edit /w/a\n  -a\n  +b\n  done, as shown\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := done("@@ -1 +1 @@\n-a\n+c\n"), "• edit /w/a\n  -a\n  +b\n  @@ -1 +1 @@\n  -a\n  +c\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWidthAndColours(t *testing.T) {
	o := terminal.Options{Color: true, Width: func() int { return 30 }}
	got := show(o, called("c", "search", m{"query": strings.Repeat("漢字 ", 20)}), "c:"+strings.Repeat("w", 100)+"\n",
		session.ModelAsked{Call: "m1"}, session.ModelAnswered{Call: "m1", Text: "Done."})
	plain := got
	for _, look := range []string{"0", "1", "2", "31", "32", "33", "36"} {
		plain = strings.ReplaceAll(plain, "\x1b["+look+"m", "")
	}
	if plain == got || strings.Count(plain, "\x1b") != strings.Count(plain, "\r\x1b[K") {
		t.Errorf("%q", got)
	}
	for line := range strings.Lines(plain) {
		if n := len([]rune(strings.TrimSpace(line))); n > 40 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if !strings.HasSuffix(got, "\r\x1b[K\nDone.\n") {
		t.Errorf("the status line stays: %q", got)
	}
}

func TestSummary(t *testing.T) {
	var b strings.Builder
	d := terminal.New(terminal.Options{Out: &b})
	d.Event(session.Event{Payload: session.ModelAsked{Call: "m1"}})
	d.Summary("finished", session.Totals{Input: 1234567, Output: 89, Cost: 12_300_000}, 1500*time.Millisecond)
	if want := "— finished · 1 model call · 1,234,567 tokens in, 89 out · $0.0123 · 1.5s\n"; b.String() != want {
		t.Errorf("%q", b.String())
	}
}

func TestRestored(t *testing.T) {
	for want, p := range map[string]session.Restored{
		"restored the conversation to an earlier point":                     {Files: true, Conversation: true},
		"restored 1 file and the conversation to an earlier point":          {Files: true, Conversation: true, Changed: 1},
		"restored 2 files and the git history to an earlier point":          {Files: true, Git: true, Changed: 2},
		"restored the git history and the conversation to an earlier point": {Files: true, Git: true, Conversation: true},
		"undid the restore of 3 files":                                      {Files: true, Changed: 3, Action: session.RestoreUndo},
		"restored no files to an earlier point":                             {Files: true},
		"redid the restore of the conversation":                             {Conversation: true, Action: session.RestoreRedo},
	} {
		var b strings.Builder
		terminal.New(terminal.Options{Out: &b}).Event(session.Event{Payload: p})
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
}

// A message of the user breaks at words, as a reply does.
func TestMessagesBreakAtWords(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := terminal.New(terminal.Options{Out: &out, Width: func() int { return 24 }, Messages: true})
	d.Event(session.Event{Number: 1, Payload: session.UserSaid{Text: "several words that need\nthree whole lines"}})
	if want := "> several words that\n  need\n  three whole lines\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
