package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"deckhand/internal/session"
)

// The path after random restores is what a list of events per restore says.
func TestPath(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var p Path
		var undo [][]int64
		seen := [][]int64{nil} // after each event
		for number := int64(1); number <= 60; number++ {
			before := seen[number-1]
			now := before
			e := session.Event{Number: number, Payload: session.UserSaid{}}
			switch {
			case number == 1:
			case random.IntN(4) == 0:
				point := 1 + random.Int64N(number-1)
				e.Payload = session.Restored{Action: session.RestorePoint, Point: point, Conversation: true}
				undo, now = append(undo, before), seen[point]
			case random.IntN(6) == 0 && len(undo) > 0:
				e.Payload = session.Restored{Action: session.RestoreUndo, Point: 1, Conversation: true}
				now, undo = undo[len(undo)-1], undo[:len(undo)-1]
			case random.IntN(8) == 0:
				e.Payload = session.Restored{Action: session.RestorePoint, Point: 1, Files: true}
			}
			p.Add(e)
			seen = append(seen, append(slices.Clone(now), number))
			spans := p.Spans(number)
			var got []int64
			for n := range number + 1 {
				if In(spans, n) {
					got = append(got, n)
				}
			}
			if want := seen[number]; !slices.Equal(got, want) {
				t.Fatalf("seed %d, after event %d: %v, want %v", seed, number, got, want)
			}
		}
	}
}

// An undo without a restore, as in a log that was cut off, changes nothing.
func TestUndoOfNothing(t *testing.T) {
	t.Parallel()
	var p Path
	if p.Add(session.Event{Number: 9, Payload: session.Restored{Action: session.RestoreUndo, Point: 1, Conversation: true}}) {
		t.Error("the path changed")
	}
	if got := fmt.Sprint(p.Spans(9)); got != "[{1 9}]" {
		t.Error(got)
	}
}
