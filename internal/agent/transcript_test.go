package agent

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// replayed is a transcript of random work: answers with calls, and people who
// speak whenever they like.
func replayed(random *rand.Rand) *transcript {
	t := &transcript{recalled: map[int64]bool{}}
	number := int64(0)
	add := func(p session.Payload) {
		number++
		t.add(session.Event{Number: number, Payload: p})
	}
	speak := func() {
		if random.IntN(3) == 0 {
			add(session.UserSaid{Text: fmt.Sprintf("said %d", number+1)})
			if random.IntN(3) == 0 {
				add(session.Recalled{Of: number, Text: "known"})
			}
		}
	}
	add(session.Created{})
	add(session.UserSaid{Text: "the task"})
	for step := range random.IntN(30) {
		speak()
		add(session.ModelAsked{Call: fmt.Sprint(step)})
		speak()
		a := session.ModelAnswered{Call: fmt.Sprint(step), Text: "words"}
		for i := range random.IntN(4) {
			a.ToolCalls = append(a.ToolCalls, session.ToolCall{ID: fmt.Sprint("c", i), Name: "say"})
		}
		add(a)
		for _, c := range a.ToolCalls {
			speak()
			if random.IntN(12) == 0 {
				add(session.Paused{})
				break
			}
			add(session.ToolReturned{ID: c.ID, Name: c.Name, Output: strings.Repeat("x", random.IntN(300))})
		}
	}
	return t
}

// broken says what is wrong with messages that are shown to a model.
func broken(messages []llm.Message) string {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role == llm.ToolResult {
			if !open[m.Call] {
				return fmt.Sprintf("message %d is the result of no call", i)
			}
			delete(open, m.Call)
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("message %d stands before a result", i)
		}
		for _, c := range m.Calls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return "a call has no result"
	}
	return ""
}

// However the work went, every cut leaves a history that a model accepts, keeps
// the first and the latest message, and replaces exactly what was chosen.
func TestEveryCutIsClean(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 7))
		tr := replayed(random)
		if why := broken(tr.shown); why != "" {
			t.Fatalf("seed %d: before: %s", seed, why)
		}
		for round := 0; tr.canCondense() && round < 5; round++ {
			from, to := tr.middle(int64(random.IntN(4000)))
			if to <= from {
				from, to = tr.middle(0)
			}
			want := len(tr.messages) - (to - from) + 1
			first, latest := tr.messages[0].Text, tr.messages[len(tr.messages)-1].Text
			tr.replace(session.Condensed{From: oldest(tr.messages[from:to]), To: oldest(tr.messages[to:]) - 1, Summary: "short"})
			if len(tr.messages) != want || len(tr.shown) != want {
				t.Fatalf("seed %d: %d messages are left of %d", seed, len(tr.messages), want)
			}
			if why := broken(tr.shown); why != "" {
				t.Fatalf("seed %d: %s", seed, why)
			}
			if tr.messages[0].Text != first || tr.messages[want-1].Text != latest || !tr.messages[from].summary {
				t.Fatalf("seed %d: the wrong messages are gone", seed)
			}
		}
	}
}

func FuzzDigest(f *testing.F) {
	f.Add("some words", 3, 100, true)
	f.Add("ünïcödé "+strings.Repeat("long ", 500), 40, 2000, false)
	f.Add("", 0, 0, true)
	f.Fuzz(func(t *testing.T, text string, n, limit int, summary bool) {
		n, limit = min(max(n, 0), 500), min(max(limit, 0), 1<<20)
		old := make([]entry, n)
		for i := range old {
			old[i] = entry{Message: llm.Message{Role: llm.User, Text: text}, summary: summary && i == 0}
		}
		if got := digest(old, limit); len(got) > limit+300 {
			t.Errorf("%d bytes of %d", len(got), limit)
		}
	})
}
