package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// newsLog remembers the news that it was given.
type newsLog struct {
	*memlog.Log
	news []session.News
}

func (l *newsLog) Append(ctx context.Context, b session.Batch) error {
	err := l.Log.Append(ctx, b)
	if err == nil {
		l.news = append(l.news, b.News...)
	}
	return err
}

// take is the news since the last time, in one line.
func (l *newsLog) take() string {
	var out []string
	for _, n := range l.news {
		text := fmt.Sprintf("%d %s %s", n.Number, n.Kind, n.Agent)
		if n.Kind == session.NewsStateChanged {
			text = fmt.Sprintf("%d %s>%s", n.Number, n.Before, n.Agent)
		}
		out = append(out, text)
	}
	l.news = nil
	return strings.Join(out, ", ")
}

func TestNews(t *testing.T) {
	call := session.ToolCalled{ToolCall: session.ToolCall{ID: "t", Name: "bash"}, Awaits: true}
	answered := session.ModelAnswered{Call: "m", ToolCalls: []session.ToolCall{call.ToolCall}}
	asked := session.ModelAsked{Call: "m", UpTo: 5}
	said := session.UserSaid{Text: "go on"}
	ended := func(upTo int64, state session.AgentState) session.TurnEnded {
		return session.TurnEnded{UpTo: upTo, State: state}
	}
	type steps []session.Payload
	for name, test := range map[string]struct {
		before, do steps
		want       string
	}{
		"claimed":      {nil, steps{claimed, ready}, ""},
		"turn begins":  {steps{claimed, ready}, steps{said, session.TurnBegan{}}, "5 loading>running"},
		"model called": {steps{claimed, ready, said, session.TurnBegan{}}, steps{asked, session.ModelAnswered{Call: "m"}}, ""},
		"turn ends": {steps{claimed, ready, said, session.TurnBegan{}, asked, session.ModelAnswered{Call: "m"}}, steps{ended(5, session.AgentAwaitingUser)},
			"8 running>awaiting_user_input, 8 finished awaiting_user_input"},
		"turn ends in error": {steps{claimed, ready, said, session.TurnBegan{}}, steps{ended(5, session.AgentError)}, "6 running>error, 6 finished error"},
		"turn ends, a message waits": {steps{claimed, ready, said, session.TurnBegan{}, asked, said, session.ModelAnswered{Call: "m"}}, steps{ended(5, session.AgentAwaitingUser)},
			"9 running>awaiting_user_input"},
		"approval": {steps{claimed, ready, said, session.TurnBegan{}, asked, answered}, steps{call, session.ApprovalAsked{ID: "t"}},
			"9 running>awaiting_user_confirmation, 9 needs_approval awaiting_user_confirmation"},
		"pause":             {steps{claimed, ready, said, session.TurnBegan{}}, steps{session.Paused{}, session.Resumed{}}, "6 running>paused, 7 paused>running"},
		"stop of work":      {steps{claimed, ready, said, session.TurnBegan{}}, steps{session.Stopped{}}, "6 running>stopped, 6 finished stopped"},
		"stop of an idle":   {steps{claimed, ready}, steps{session.Stopped{}}, "4 loading>stopped"},
		"failed start":      {steps{claimed}, steps{session.Failed{ID: "STATUS$ERROR", Reason: "no"}}, "3 loading>error, 3 finished error"},
		"deleted in a turn": {steps{claimed, ready, said, session.TurnBegan{}}, steps{session.Deleted{}}, "6 running>stopped, 6 finished stopped"},
		"a new title":       {nil, steps{session.Titled{Title: "x"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := &newsLog{Log: memlog.New()}
			s := session.New(log)
			if _, err := s.Create(t.Context(), theID, session.Created{Owner: "maria", Parent: "p"}, nil); err != nil {
				t.Fatal(err)
			}
			if got := log.take(); got != "1 created loading" {
				t.Errorf("creating it: %s", got)
			}
			for _, p := range test.before {
				if _, err := s.Update(t.Context(), theID, do(p)); err != nil {
					t.Fatal(err)
				}
			}
			log.take()
			if _, err := s.Update(t.Context(), theID, do(test.do...)); err != nil {
				t.Fatal(err)
			}
			for _, n := range log.news {
				if n.At.IsZero() || n.Status == "" || n.Parent != "p" {
					t.Errorf("%+v", n)
				}
			}
			if got := log.take(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
