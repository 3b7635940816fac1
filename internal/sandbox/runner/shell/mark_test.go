package shell

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"deckhand/internal/sandbox"
)

// The files of a turn are recorded with its first command, before that runs, and once.
func TestMarkWithFirstCommand(t *testing.T) {
	b := open(t)
	var mu sync.Mutex
	var told []string
	note := func(text string) { mu.Lock(); defer mu.Unlock(); told = append(told, text) }
	b.shells = b.make(b.config)
	b.shells.Mark = func(_ context.Context, p sandbox.GitMarkParams) {
		note(fmt.Sprintf("mark %d %t %s", p.Turn, p.First, p.Conversation))
	}
	conn := connect(t, b.shells)
	var marked atomic.Int64
	run := func(turn int64, id string) {
		t.Helper()
		if _, err := conn.MarkTurn("c", true, &marked, turn, turn == 2).Exec(t.Context(), sandbox.Command{ID: id, Text: "echo hi"}, nil); err != nil {
			t.Fatal(err)
		}
		note("ran " + id)
	}
	run(2, "1")
	run(2, "2")
	if marked.Load() != 2 {
		t.Errorf("turn %d is noted as recorded", marked.Load())
	}
	conn.MarkTurn("c", true, &marked, 7, false) // nothing is used: the turn is recorded later
	run(7, "3")
	if _, err := conn.MarkTurn("c", false, &marked, 9, false).Exec(t.Context(), sandbox.Command{ID: "4", Text: "true"}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(told, ", "), "mark 2 true c, ran 1, ran 2, mark 7 false c, ran 3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
