package takeover_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/takeover"
)

// many writes a conversation of n events, in pages: so many small files would take
// longer to write than to read.
func many(t testing.TB, dir string, n int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "event_cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	const page = 1000
	for from := 0; from < n; from += page {
		var b strings.Builder
		for i := from; i < from+page; i++ {
			sep := ","
			if i == from {
				sep = "["
			}
			if i%2 == 0 {
				fmt.Fprintf(&b, `%s{"id":%d,"timestamp":"2025-01-01T10:00:00.%06d","source":"agent","message":"","action":"run","args":{"command":"echo %d","thought":"on"}}`, sep, i, i, i)
			} else {
				fmt.Fprintf(&b, `%s{"id":%d,"timestamp":"2025-01-01T10:00:00.%06d","source":"agent","cause":%d,"observation":"run","content":"%d","extras":{"command":"echo","metadata":{"exit_code":0}}}`, sep, i, i, i-1, i)
			}
		}
		b.WriteString("]")
		if err := os.WriteFile(filepath.Join(dir, "event_cache", fmt.Sprintf("%d-%d.json", from, from+page)), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A conversation of 100,000 events is taken over whole, and says how far it is.
func TestManyEvents(t *testing.T) {
	n := 100_000
	if testing.Short() || raceEnabled {
		n = 2_000
	}
	dir := t.TempDir()
	many(t, filepath.Join(dir, "sessions/many"), n)
	h := build(t)
	told := 0
	r := h.take(dir, func(m *takeover.Import) {
		m.Reading = func(id string, done, total int) {
			if told++; id != "many" || total != n || done >= n {
				t.Errorf("%s: %d of %d", id, done, total)
			}
		}
	})
	c := find(t, r, "sessions/many")
	if c.State != takeover.Imported || c.Events != n || told != n {
		t.Errorf("%+v, told %d times", c, told)
	}
	if st := h.fold("many"); st.Last != int64(n)+2 || st.Status() != session.Halted {
		t.Errorf("%d events: %+v", st.Last, st.Status())
	}
}
