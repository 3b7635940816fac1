// Package history writes conversations as the loop would.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"deckhand/internal/datadir"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/postgres"
	"deckhand/internal/store/sqlite"
)

// Book writes a conversation as the loop would, ready to be stored in one go.
type Book struct {
	State  session.State
	Events []session.Event // that are not stored yet
	after  int64
	At     time.Time
	turns  int
	err    error
}

// FirstMessage begins each conversation.
const FirstMessage = "Please find out why the parser's tests fail now and then, and mend what is wrong."

// Begin is a conversation that was claimed and waits for work.
func Begin(id session.ID, owner string, at time.Time) *Book {
	b := &Book{State: session.State{ID: id}, At: at.UTC().Truncate(time.Microsecond)}
	b.Add(session.Created{Owner: owner, Trigger: "gui"}, session.UserSaid{Text: FirstMessage},
		session.Claimed{By: "loop-of-the-bench"}, session.WorkspaceReady{},
		session.Briefed{Prompt: strings.Repeat("You are an agent with a shell. ", 12), Agent: "CodeActAgent", Model: "scripted/demo"})
	b.work()
	b.Add(session.Titled{Title: "Mend the parser's flaky tests"})
	return b
}

// Add appends what the rules of a session allow; the first refusal is kept.
func (b *Book) Add(payloads ...session.Payload) {
	for _, p := range payloads {
		if b.err == nil {
			b.err = b.State.Check(p)
		}
		e := session.Event{Number: b.State.Last + 1, At: b.At, Payload: p}
		b.Events = append(b.Events, e)
		b.State = b.State.Apply(e)
	}
}

// work is a turn for the message that waits: a model call and its answer.
func (b *Book) work() {
	b.turns++
	call := fmt.Sprint("m", b.turns)
	b.Add(session.TurnBegan{})
	upTo := b.State.Last
	b.Add(session.ModelAsked{Call: call, Model: "scripted/demo", UpTo: upTo},
		session.ModelAnswered{Call: call, Text: "The clock was read twice; now it is read once, and the tests pass.", Final: true,
			Usage: session.Usage{Input: 900, Output: 40}},
		session.TurnEnded{UpTo: upTo, State: session.AgentAwaitingUser})
}

// Grow writes turns with tools until there are n events.
func (b *Book) Grow(n int64) {
	for b.State.Last < n {
		b.turns++
		call, tool := fmt.Sprint("m", b.turns), fmt.Sprint("t", b.turns)
		use := session.ToolCall{ID: tool, Name: "bash", Args: json.RawMessage(`{"command":"go test ./parser"}`)}
		b.Add(session.UserSaid{Text: "Go on.", Key: fmt.Sprint("key", b.turns)}, session.TurnBegan{})
		upTo := b.State.Last
		b.Add(session.ModelAsked{Call: call, Model: "scripted/demo", UpTo: upTo},
			session.ModelAnswered{Call: call, ToolCalls: []session.ToolCall{use}, Usage: session.Usage{Input: 900, Output: 40}},
			session.ToolCalled{ToolCall: use})
		b.Add(session.ToolReturned{ID: tool, Name: "bash", Cause: b.State.Last, Outcome: session.Succeeded, Output: "ok  parser  0.31s"},
			session.TurnEnded{UpTo: upTo, State: session.AgentAwaitingUser})
	}
}

// Flush stores what was written since the last time.
func (b *Book) Flush(ctx context.Context, log session.Log) error {
	if b.err != nil {
		return b.err
	}
	err := log.Append(ctx, session.Batch{ID: b.State.ID, After: b.after, Events: b.Events, Row: b.State.Row()})
	b.after, b.Events = b.State.Last, nil
	return err
}

// Store makes a conversation of about n events.
func Store(ctx context.Context, db *sqlite.DB, owner string, n int64) (session.ID, error) {
	b := Begin(db.NewID(), owner, time.Now())
	for {
		b.Grow(min(n, b.State.Last+1000))
		if err := b.Flush(ctx, db); err != nil {
			return "", err
		}
		if b.State.Last >= n {
			return b.State.ID, nil
		}
	}
}

// Database is a database that is filled.
type Database interface {
	store.Backend
	datadir.ChainStore
	Tend(ctx context.Context, before time.Time) error
}

// Open opens the database of a server that has been started once with a data directory, ready for appends. url is that of a
// PostgreSQL database; "" is the SQLite database in the directory.
func Open(ctx context.Context, dir, url string) (db Database, err error) {
	if url == "" {
		db, err = sqlite.Open(ctx, filepath.Join(dir, "deckhand.db"), sqlite.Options{})
	} else {
		db, err = postgres.Open(ctx, url, postgres.Options{})
	}
	if err != nil {
		return nil, err
	}
	keyring, err := secret.OpenKeyring(ctx, dir, "", db)
	if err == nil {
		err = datadir.UseChain(ctx, db, keyring)
	}
	if err != nil {
		db.Close()
	}
	return db, err
}
