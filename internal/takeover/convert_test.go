package takeover

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// FuzzConvert: whatever the files hold, in whatever order, what is understood makes a
// history that keeps every rule. The input is one event a line.
func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/legacy/sessions/*/events/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	var all []byte
	for _, name := range files { // not in the order of their numbers: all the better
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(append([]byte{}, raw...), append([]byte("\n"), raw...)...))
		all = append(append(all, raw...), '\n')
	}
	f.Add(all)
	f.Add([]byte(`{"source":"agent","action":"run","args":{},"tool_call_metadata":{"function_name":"x","tool_call_id":"taken-2-0"}}
{"source":"agent","action":"run","args":{}}
{"source":"agent","action":"condensation","args":{"forgotten_events_start_id":0,"forgotten_events_end_id":1}}`))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mask := func(s string) string { return s }
	f.Fuzz(func(t *testing.T, text []byte) {
		c := newConverter(1, time.UTC, now)
		for i, line := range bytes.Split(text, []byte("\n")) {
			raw, err := masked(line, mask)
			if err != nil {
				continue
			}
			past, err := v0.ReadPast(raw)
			if err != nil {
				continue
			}
			if err := c.add(int64(i), past); err != nil {
				t.Fatalf("line %d: %v", i, err)
			}
		}
		c.settle()
		events := append([]session.Event{{At: now, Payload: session.Created{Owner: "ada"}}}, c.events...)
		events = append(events, session.Event{At: now, Payload: session.Stopped{}})
		_, st, err := session.Import("x", events)
		if err != nil {
			t.Fatal(err)
		}
		if st.Wants() || len(st.Open) > 0 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestMoment(t *testing.T) {
	west := time.FixedZone("", -5*60*60)
	for text, want := range map[string]string{
		"2025-10-01T10:00:01.120000":       "2025-10-01T15:00:01.12Z",
		"2025-10-01T10:00:01":              "2025-10-01T15:00:01Z",
		"2025-10-01 10:00:01.5":            "2025-10-01T15:00:01.5Z",
		"2025-10-01T10:00:01.120000+00:00": "2025-10-01T10:00:01.12Z",
		"2025-10-01T10:00:01Z":             "2025-10-01T10:00:01Z",
		"yesterday":                        "",
		"":                                 "",
		"0001-01-01T00:00:00":              "",
	} {
		got, ok := moment(text, west)
		if ok != (want != "") || ok && got.Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %v %v", text, got, ok)
		}
	}
}

func TestGaps(t *testing.T) {
	for want, numbers := range map[string][]int64{
		"": {0, 1, 2}, "0": {1}, "0 to 4, 6": {5, 7}, "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, and 2 more ranges": {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24},
	} {
		if got := gaps(numbers); got != want {
			t.Errorf("%v: %q", numbers, got)
		}
	}
}
