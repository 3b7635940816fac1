package notice

import (
	"testing"

	"deckhand/internal/notify"
	"deckhand/internal/session"
)

// What a person is told of, and what not.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		news session.News
		want Kind
	}{
		{session.News{Kind: session.NewsNeedsApproval, Agent: session.AgentAwaitingYes}, Approval},
		{session.News{Kind: session.NewsNeedsApproval, Agent: session.AgentAwaitingYes, Parent: "p"}, Approval},
		{session.News{Kind: session.NewsFinished, Agent: session.AgentAwaitingUser, Status: session.Running}, Question},
		{session.News{Kind: session.NewsFinished, Agent: session.AgentFinished, Status: session.Running}, Finished},
		{session.News{Kind: session.NewsFinished, Agent: session.AgentFinished, Parent: "p"}, ""},
		{session.News{Kind: session.NewsFinished, Agent: session.AgentError, Status: session.Running, ErrorID: "STATUS$ERROR_BUDGET"}, Failed},
		{session.News{Kind: session.NewsFinished, Agent: session.AgentStopped, Status: session.Halted, ErrorID: "STATUS$ERROR"}, Failed},
		{session.News{Kind: session.NewsFinished, Agent: session.AgentStopped, Status: session.Halted}, ""},
		{session.News{Kind: session.NewsFinished, Agent: session.AgentRejected}, ""},
	} {
		d := notify.Compose("c1", c.news)
		about, real := d.Read()
		got, tell := kindOf(d, about)
		if !real || got != c.want || tell != (c.want != "") {
			t.Errorf("%+v gives %q, want %q", c.news, got, c.want)
		}
	}
}

// A notice that waited is dropped if the person has seen or done what it is about.
func TestCurrent(t *testing.T) {
	t.Parallel()
	asked := session.State{Open: []session.OpenCall{{Asked: true}}}
	answered := session.State{Open: []session.OpenCall{{Asked: true, Approved: true}}}
	for name, c := range map[string]struct {
		kind  Kind
		event int64
		st    session.State
		want  bool
	}{
		"an approval that is asked for": {Approval, 5, asked, true},
		"an approval that was given":    {Approval, 5, answered, false},
		"finished":                      {Finished, 9, session.State{LastSaid: 3, Seen: 3}, true},
		"stopped since, while idle":     {Finished, 9, session.State{LastSaid: 3, Seen: 3, Stopped: true}, true},
		"the person has answered":       {Question, 9, session.State{LastSaid: 10, Seen: 10}, false},
		"the agent works again":         {Question, 9, session.State{LastSaid: 3, Seen: 3, InTurn: true}, false},
	} {
		if got := current(c.kind, c.event, c.st); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Each language has every text.
func TestLanguages(t *testing.T) {
	t.Parallel()
	if len(languages) != 7 {
		t.Errorf("%d languages", len(languages))
	}
	for code, w := range languages {
		for _, text := range []string{w.approval, w.question, w.finished, w.failed, w.test, w.testText, w.open, w.change, w.verify, w.verifyText, w.verifyIgnore} {
			if text == "" {
				t.Errorf("%s lacks a text", code)
			}
		}
	}
	for code, want := range map[string]string{"de": "de", "de-AT": "de", "zh-TW": "zh-CN", "zh-CN": "zh-CN", "": "en", "tlh": "en"} {
		if messagesIn(code) != languages[want] {
			t.Errorf("%s is not shown in %s", code, want)
		}
	}
}

// A title cannot look like another line of the message, or turn its direction.
func TestPlainTitle(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Fix the build": "Fix the build",
		"Done\r\n\r\nOpen the conversation:\nhttp://evil": "Done Open the conversation: http://evil",
		"a\u2028b\u202ec\x00d\u200be\x1b[2K":              "a b c d e [2K",
		"  日本語\tßé \xff":                                  "日本語 ßé",
	} {
		if got := plainTitle(title); got != want {
			t.Errorf("%q is %q", title, got)
		}
	}
}
