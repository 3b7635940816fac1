package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// holding is a transcript with that many bytes of text.
func holding(id session.ID, n int) *transcript {
	t := newTranscript(id)
	t.push(entry{Message: llm.Message{Role: llm.User, Text: strings.Repeat("x", n)}})
	return t
}

func TestShelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s transcriptCache
		if s.take("a") != nil {
			t.Error("an empty cache holds something")
		}
		a := holding("a", 100)
		s.put(a)
		if s.take("a") != a {
			t.Error("what was laid down is not there")
		}
		if s.take("a") != nil || s.size != 0 {
			t.Errorf("what was taken is still there: %d bytes", s.size)
		}
		long := newTranscript("long") // as of a day's work
		for range 10_000 {
			long.push(entry{Message: llm.Message{Role: llm.ToolResult, Text: "[The command completed with exit code 0.]"}})
		}
		s.put(long)
		if s.take("long") != long {
			t.Error("that of a long conversation was not kept")
		}
		s.put(holding("large", keptSize))
		if s.take("large") != nil {
			t.Error("a large one was kept")
		}
		s.put(a)
		time.Sleep(keptFor / 2)
		s.put(holding("b", 1))
		time.Sleep(keptFor/2 + time.Second)
		synctest.Wait()
		s.mu.Lock()
		if len(s.entries) != 1 || s.entries["b"] == nil {
			t.Errorf("after a while there are %d, and b is %v", len(s.entries), s.entries["b"])
		}
		s.mu.Unlock()
		time.Sleep(2 * keptFor)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.entries) != 0 || s.size != 0 || s.armed {
			t.Errorf("an idle cache holds %d transcripts of %d bytes, armed: %t", len(s.entries), s.size, s.armed)
		}
	})
}

func TestTranscriptCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s transcriptCache
		for i := range 100 {
			s.put(holding(session.ID(string(rune('A'+i))), keptTotal/25))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.size > keptTotal || len(s.entries) < 20 || s.entries[session.ID(string(rune('A'+99)))] == nil {
			t.Errorf("it holds %d transcripts of %d bytes", len(s.entries), s.size)
		}
	})
}
