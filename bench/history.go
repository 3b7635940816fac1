package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
)

// book writes a conversation as the loop would, ready to be stored in one go.
type book struct {
	state  session.State
	events []session.Event
	after  int64
	at     time.Time
	turns  int
	err    error
}

const firstMessage = "Please find out why the parser's tests fail now and then, and mend what is wrong."

// begin is a conversation that was claimed and waits for work.
func begin(id session.ID, owner string, at time.Time) *book {
	b := &book{state: session.State{ID: id}, at: at.UTC().Truncate(time.Microsecond)}
	b.add(session.Created{Owner: owner, Trigger: "gui"}, session.UserSaid{Text: firstMessage},
		session.Claimed{By: "loop-of-the-bench"}, session.WorkspaceReady{},
		session.Briefed{Prompt: strings.Repeat("You are an agent with a shell. ", 12), Agent: "CodeActAgent", Model: "scripted/demo"})
	b.work()
	b.add(session.Titled{Title: "Mend the parser's flaky tests"})
	return b
}

// add appends what the rules of a session allow; the first refusal is kept.
func (b *book) add(payloads ...session.Payload) {
	for _, p := range payloads {
		if b.err == nil {
			b.err = b.state.Check(p)
		}
		e := session.Event{Number: b.state.Last + 1, At: b.at, Payload: p}
		b.events = append(b.events, e)
		b.state = b.state.Apply(e)
	}
}

// work is a turn for the message that waits: a model call and its answer.
func (b *book) work() {
	b.turns++
	call := fmt.Sprint("m", b.turns)
	b.add(session.TurnBegan{})
	upTo := b.state.Last
	b.add(session.ModelAsked{Call: call, Model: "scripted/demo", UpTo: upTo},
		session.ModelAnswered{Call: call, Text: "The clock was read twice; now it is read once, and the tests pass.", Final: true,
			Usage: session.Usage{Input: 900, Output: 40}},
		session.TurnEnded{UpTo: upTo, State: session.AgentAwaitingUser})
}

// grow writes turns with tools until there are n events.
func (b *book) grow(n int64) {
	for b.state.Last < n {
		b.turns++
		call, tool := fmt.Sprint("m", b.turns), fmt.Sprint("t", b.turns)
		use := session.ToolCall{ID: tool, Name: "bash", Args: json.RawMessage(`{"command":"go test ./parser"}`)}
		b.add(session.UserSaid{Text: "Go on.", Key: fmt.Sprint("key", b.turns)}, session.TurnBegan{})
		upTo := b.state.Last
		b.add(session.ModelAsked{Call: call, Model: "scripted/demo", UpTo: upTo},
			session.ModelAnswered{Call: call, ToolCalls: []session.ToolCall{use}, Usage: session.Usage{Input: 900, Output: 40}},
			session.ToolCalled{ToolCall: use})
		b.add(session.ToolReturned{ID: tool, Name: "bash", Cause: b.state.Last, Outcome: session.Succeeded, Output: "ok  parser  0.31s"},
			session.TurnEnded{UpTo: upTo, State: session.AgentAwaitingUser})
	}
}

// flush stores what was written since the last time.
func (b *book) flush(ctx context.Context, log session.Log) error {
	if b.err != nil {
		return b.err
	}
	err := log.Append(ctx, session.Batch{ID: b.state.ID, After: b.after, Events: b.events, Row: b.state.Row()})
	b.after, b.events = b.state.Last, nil
	return err
}

// longLog makes a conversation of about n events.
func longLog(ctx context.Context, db *sqlite.DB, owner string, n int64) (session.ID, error) {
	b := begin(db.NewID(), owner, time.Now())
	for {
		b.grow(min(n, b.state.Last+1000))
		if err := b.flush(ctx, db); err != nil {
			return "", err
		}
		if b.state.Last >= n {
			return b.state.ID, nil
		}
	}
}
