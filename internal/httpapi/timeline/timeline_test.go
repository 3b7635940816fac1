package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
)

var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// instant is payloads that were stored so many seconds after midnight.
type instant struct {
	second   int
	payloads []session.Payload
}

func on(second int, p ...session.Payload) instant { return instant{second, p} }

// told is a timeline as the tests write it.
func told(t api.Timeline) string {
	seconds := func(at time.Time) int { return int(at.Sub(midnight) / time.Second) }
	end := func(at *time.Time) string {
		if at == nil {
			return "…"
		}
		return fmt.Sprint(seconds(*at))
	}
	var out []string
	for _, s := range t.Spans {
		out = append(out, fmt.Sprintf("%s %s %d-%s #%d", s.Kind, s.Name, seconds(s.StartedAt), end(s.EndedAt), s.EventID))
	}
	for _, n := range t.Turns {
		out = append(out, fmt.Sprintf("turn %d-%s #%d", seconds(n.StartedAt), end(n.EndedAt), n.EventID))
	}
	s := t.Totals
	out = append(out, fmt.Sprintf("queue %d sandbox %d model %d tool %d approval %d", s.Queue/1000, s.Sandbox/1000, s.Model/1000, s.Tool/1000, s.Approval/1000))
	if t.HasMore {
		out = append(out, "more")
	}
	return strings.Join(out, "\n")
}

func fold(after int64, limit int, now int, story ...instant) api.Timeline {
	t, n := New(after, limit), int64(0)
	for _, a := range story {
		for _, p := range a.payloads {
			n++
			t.Add(session.Event{Number: n, At: midnight.Add(time.Duration(a.second) * time.Second), Payload: p})
		}
	}
	return t.End(midnight.Add(time.Duration(now) * time.Second))
}

// Short names for what happens.
var (
	created  = session.Created{Owner: "ada"}
	said     = session.UserSaid{Text: "hello"}
	claimed  = session.Claimed{By: "loop"}
	ready    = session.WorkspaceReady{}
	began    = session.TurnBegan{}
	ended    = session.TurnEnded{}
	asked    = session.ModelAsked{Call: "m", Model: "acme/one"}
	answered = session.ModelAnswered{Call: "m"}
)

func step(name string) session.WorkspaceStep { return session.WorkspaceStep{Step: name} }
func calls(id string) session.ToolCalled {
	return session.ToolCalled{ToolCall: session.ToolCall{ID: id, Name: "bash"}}
}
func returns(id string) session.ToolReturned { return session.ToolReturned{ID: id} }
func asks(id string) session.ApprovalAsked   { return session.ApprovalAsked{ID: id} }
func gives(id string, y bool) session.ApprovalGiven {
	return session.ApprovalGiven{ID: id, Approved: y}
}

func TestTimeline(t *testing.T) {
	for _, c := range []struct {
		name  string
		now   int
		story []instant
		want  string
	}{
		{"nothing yet", 5, nil, "queue 0 sandbox 0 model 0 tool 0 approval 0"},
		{"not claimed", 5, []instant{on(0, created, said)},
			"queue start 0-… #1\nqueue message 0-… #2\nqueue 5 sandbox 0 model 0 tool 0 approval 0"},
		{"a whole turn", 100, []instant{on(0, created, said), on(1, claimed), on(2, step("pulling")), on(3, step("pulling")), on(5, step("cloning")), on(9, ready),
			on(10, began), on(10, asked), on(20, answered), on(20, calls("a")), on(27, returns("a")), on(27, asked), on(30, answered, ended)},
			"queue start 0-1 #1\nqueue message 0-10 #2\nsandbox starting 1-2 #3\nsandbox pulling 2-5 #4\nsandbox cloning 5-9 #6\n" +
				"model acme/one 10-20 #9\ntool bash 20-27 #11\nmodel acme/one 27-30 #13\nturn 10-30 #8\nqueue 2 sandbox 8 model 13 tool 7 approval 0"},
		{"what lasts has no end", 50, []instant{on(0, created, said, claimed, ready, began, asked), on(10, answered, calls("a"))},
			"model acme/one 0-10 #6\ntool bash 10-… #8\nturn 0-… #5\nqueue 0 sandbox 0 model 10 tool 40 approval 0"},
		{"tools side by side count once", 50, []instant{on(0, created, claimed, ready, began), on(10, calls("a"), calls("b")), on(15, returns("a")), on(20, returns("b"), ended)},
			"tool bash 10-15 #5\ntool bash 10-20 #6\nturn 0-20 #4\nqueue 0 sandbox 0 model 0 tool 10 approval 0"},
		{"a tool waits for a yes", 90, []instant{on(0, created, claimed, ready, began), on(5, calls("a"), asks("a")), on(65, gives("a", true)), on(70, returns("a"), ended)},
			"approval bash 5-65 #6\ntool bash 65-70 #5\nturn 0-70 #4\nqueue 0 sandbox 0 model 0 tool 5 approval 60"},
		{"a no", 90, []instant{on(0, created, claimed, ready, began), on(5, calls("a"), asks("a")), on(65, gives("a", false)), on(66, returns("a"), ended)},
			"approval bash 5-65 #6\nturn 0-66 #4\nqueue 0 sandbox 0 model 0 tool 0 approval 60"},
		{"one runs while another waits", 90, []instant{on(0, created, claimed, ready, began), on(5, calls("a"), calls("b"), asks("b")), on(15, returns("a")), on(35, gives("b", true), returns("b"))},
			"tool bash 5-15 #5\napproval bash 5-35 #7\nturn 0-… #4\nqueue 0 sandbox 0 model 0 tool 10 approval 20"},
		{"a sandbox that a tool waits for", 50, []instant{on(0, created, claimed, ready, began), on(5, calls("a")), on(6, step("starting")), on(16, ready), on(18, returns("a"))},
			"tool bash 5-18 #5\nsandbox starting 6-16 #6\nturn 0-… #4\nqueue 0 sandbox 10 model 0 tool 3 approval 0"},
		{"a message during a turn waits for the next call", 50, []instant{on(0, created, claimed, ready, began, asked), on(2, said), on(10, answered, calls("a")), on(12, returns("a")),
			on(13, session.ModelAsked{Call: "s", Purpose: session.ForSummary}), on(14, session.ModelAnswered{Call: "s"}), on(15, asked), on(20, answered, ended)},
			"model acme/one 0-10 #5\nqueue message 2-15 #6\ntool bash 10-12 #8\nmodel  13-14 #10\nmodel acme/one 15-20 #12\nturn 0-20 #4\nqueue 2 sandbox 0 model 16 tool 2 approval 0"},
		{"a message for the next turn", 50, []instant{on(0, created, claimed, ready, began, asked), on(2, said), on(10, answered, ended), on(11, began), on(12, ended)},
			"model acme/one 0-10 #5\nqueue message 2-11 #6\nturn 0-10 #4\nturn 11-12 #9\nqueue 1 sandbox 0 model 10 tool 0 approval 0"},
		{"a call that failed and was made again", 50, []instant{on(0, created, claimed, ready, began, asked), on(4, session.ModelFailed{Call: "m", Retried: true}), on(9, asked), on(10, answered)},
			"model acme/one 0-4 #5\nmodel acme/one 9-10 #7\nturn 0-… #4\nqueue 0 sandbox 0 model 5 tool 0 approval 0"},
		{"stopped in the middle", 1000, []instant{on(0, created, said, claimed), on(3, step("pulling")), on(8, session.Stopped{})},
			"queue message 0-8 #2\nsandbox starting 0-3 #3\nsandbox pulling 3-8 #4\nqueue 0 sandbox 8 model 0 tool 0 approval 0"},
		{"stopped while a tool ran, and started again", 200, []instant{on(0, created, claimed, ready, began, calls("a")), on(7, returns("a"), session.Stopped{}),
			on(100, said, session.StartRequested{}), on(103, claimed), on(105, ready), on(106, began), on(107, ended)},
			"tool bash 0-7 #5\nqueue message 100-106 #8\nqueue start 100-103 #9\nsandbox starting 103-105 #10\nturn 0-7 #4\nturn 106-107 #12\nqueue 4 sandbox 2 model 0 tool 7 approval 0"},
		{"a start that failed", 1000, []instant{on(0, created, said), on(1, claimed), on(9, session.Failed{})},
			"queue start 0-1 #1\nqueue message 0-9 #2\nsandbox starting 1-9 #3\nqueue 1 sandbox 8 model 0 tool 0 approval 0"},
		{"a pause does not count", 1000, []instant{on(0, created, claimed, ready, began, asked), on(2, said), on(5, session.ModelFailed{Call: "m"}, session.Paused{}),
			on(500, session.Resumed{}), on(501, asked), on(504, answered, ended)},
			"model acme/one 0-5 #5\nqueue message 2-5 #6\nmodel acme/one 501-504 #10\nturn 0-504 #4\nqueue 0 sandbox 0 model 8 tool 0 approval 0"},
		{"another loop takes over", 50, []instant{on(0, created, claimed, ready, began, asked), on(30, claimed, session.ModelFailed{Call: "m"}), on(31, asked), on(33, answered, ended)},
			"model acme/one 0-30 #5\nmodel acme/one 31-33 #8\nturn 0-33 #4\nqueue 0 sandbox 0 model 32 tool 0 approval 0"},
		{"a clock that was set back", 3, []instant{on(0, created, claimed, ready, began), on(9, calls("a")), on(5, returns("a"))},
			"turn 0-… #4\nqueue 0 sandbox 0 model 0 tool 0 approval 0"},
		{"what was taken over from elsewhere took no time here", 50, []instant{on(0, created), on(1, session.Imported{Said: &said}), on(9, session.Imported{Answered: &answered}), on(9, session.Stopped{})},
			"queue start 0-9 #1\nqueue 9 sandbox 0 model 0 tool 0 approval 0"},
		{"results without calls", 5, []instant{on(0, returns("x"), gives("x", true), asks("x"), answered, ended, ready)}, "queue 0 sandbox 0 model 0 tool 0 approval 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(fold(0, 100, c.now, c.story...)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Pages are cut between turns: read one after the other they give everything once,
// and each has the totals of all.
func TestTimelinePages(t *testing.T) {
	story := []instant{on(0, created), on(1, claimed), on(3, ready)}
	for i := range 7 {
		story = append(story, on(10*i+10, said), on(10*i+11, began), on(10*i+11, asked), on(10*i+15, answered, ended))
	}
	story = append(story, on(90, said)) // and one that waits
	whole := fold(0, 100, 99, story...)
	if len(whole.Turns) != 7 || len(whole.Spans) != 2+2*7+1 || whole.HasMore {
		t.Fatal(told(whole))
	}
	for limit := 1; limit <= 9; limit++ {
		var spans []api.TimelineSpan
		var turns []api.TimelineTurn
		for after, more := int64(0), true; more; {
			page := fold(after, limit, 99, story...)
			if page.Totals != whole.Totals || len(page.Turns) > limit {
				t.Fatalf("a page of %d: %s", limit, told(page))
			}
			spans, turns = append(spans, page.Spans...), append(turns, page.Turns...)
			if more = page.HasMore; more {
				after = page.Turns[len(page.Turns)-1].EventID
			}
		}
		again := whole
		again.Spans, again.Turns = spans, turns
		if told(again) != told(whole) {
			t.Errorf("pages of %d: got\n%s\nwant\n%s", limit, told(again), told(whole))
		}
	}
	// A place between turns is good, too, and one behind all is the end.
	if page := fold(whole.Turns[2].EventID+1, 1, 99, story...); len(page.Turns) != 1 || page.Turns[0] != whole.Turns[3] && page.Turns[0].EventID != whole.Turns[3].EventID {
		t.Error(told(page))
	}
	if page := fold(1000, 1, 99, story...); len(page.Turns)+len(page.Spans) != 0 || page.HasMore || page.Totals != whole.Totals {
		t.Error(told(page))
	}
}

// However long a turn is, an answer is not.
func TestTimelineIsBounded(t *testing.T) {
	tl := New(0, 1)
	const many = 2*maxSpans + 50
	for i := range int64(2 * many) {
		p := session.Payload(calls("a"))
		if i%2 == 1 {
			p = returns("a")
		}
		tl.Add(session.Event{Number: i + 1, At: midnight.Add(time.Duration(i) * time.Second), Payload: p})
	}
	got := tl.End(midnight)
	if len(got.Spans) != maxSpans || got.SpansLeftOut != many-maxSpans || got.Spans[maxSpans-1].EventID != 2*many-1 || got.Totals.Tool != many*1000 {
		t.Errorf("%d spans, %d left out, the last %+v, %+v", len(got.Spans), got.SpansLeftOut, got.Spans[len(got.Spans)-1], got.Totals)
	}
}
