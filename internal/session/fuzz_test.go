package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"deckhand/internal/session"
)

// fixed is a Log that holds whatever it was given.
type fixed []session.Event

func (fixed) Append(context.Context, session.Batch) error { return session.ErrConflict }
func (l fixed) Read(_ context.Context, _ session.ID, after int64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for _, e := range l {
			if e.Number > after && !yield(e, nil) {
				return
			}
		}
	}
}

// eventsFrom makes events of bytes: one byte for the kind, two for the number
// (or 0 for the next), two for the length of the JSON, then the JSON.
func eventsFrom(b []byte) []session.Event {
	kinds := session.Payloads()
	var out []session.Event
	for len(b) >= 5 && len(out) < 1000 {
		kind := kinds[int(b[0])%len(kinds)].Kind()
		number := int64(int16(binary.BigEndian.Uint16(b[1:])))
		size := min(int(binary.BigEndian.Uint16(b[3:])), len(b)-5)
		p, err := session.Decode(kind, b[5:5+size])
		b = b[5+size:]
		if err != nil {
			continue
		}
		if number == 0 {
			number = int64(len(out)) + 1
		}
		out = append(out, session.Event{Number: number, At: time.Unix(number, 0).UTC(), Payload: p})
	}
	return out
}

// bytesFrom is the way back, for the seeds.
func bytesFrom(t testing.TB, stage payloads) []byte {
	var out []byte
	for _, p := range stage {
		b, err := session.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range session.Payloads() {
			if k.Kind() == p.Kind() {
				out = append(out, byte(i), 0, 0)
			}
		}
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(b))), b...)
	}
	return out
}

// FuzzFold: Apply takes anything, and Fold either says what is wrong or gives
// a state that the auditor has nothing against.
func FuzzFold(f *testing.F) {
	for _, r := range rules {
		f.Add(bytesFrom(f, with(r.stage, r.next)))
	}
	for _, d := range decisions {
		f.Add(bytesFrom(f, d.stage))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		events := eventsFrom(b)
		st := session.State{ID: "a-session"}
		for _, e := range events {
			before := st
			open, announced, grants, patterns := slices.Clone(before.Open), slices.Clone(before.Announced), slices.Clone(before.Grants), slices.Clone(before.Allowed)
			st = st.Apply(e)
			if !reflect.DeepEqual(before.Open, open) || !reflect.DeepEqual(before.Announced, announced) ||
				!reflect.DeepEqual(before.Grants, grants) || !reflect.DeepEqual(before.Allowed, patterns) {
				t.Fatal("Apply changed the state it was called on")
			}
			_, _, _ = st.Status(), st.Wants(), st.Row()
		}
		folded, err := session.Fold(t.Context(), fixed(events), session.State{ID: "a-session"})
		if err != nil {
			if !errors.Is(err, session.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if folded.Deleted && int(folded.Last) != len(events) {
			return // a tombstone whose history is gone has none to audit
		}
		var allowed []session.Event
		for _, e := range events {
			if e.Number == int64(len(allowed))+1 {
				allowed = append(allowed, e)
			}
		}
		a, err := auditRaw(allowed)
		if totalsInvented(allowed) { // what an event says of itself is not checked by the fold
			return
		}
		if err != nil {
			t.Fatalf("Fold accepts what the auditor does not: %v", err)
		}
		if folded.Status() != a.status() && a.last > 0 || folded.Wants() != a.wants() {
			t.Fatalf("%+v does not fit", folded)
		}
	})
}

// totalsInvented is true when an event claims sums that are not the sums.
func totalsInvented(events []session.Event) bool {
	var sum session.Money
	for _, e := range events {
		switch p := e.Payload.(type) {
		case session.ModelAnswered:
			if sum += p.Cost; p.Totals.Cost != sum {
				return true
			}
		case session.ModelFailed:
			if sum += p.Cost; p.Totals.Cost != sum {
				return true
			}
		case session.Settled:
			if sum += p.Cost; p.Totals.Cost != sum {
				return true
			}
		}
	}
	return false
}

// FuzzDecode: what decodes is encoded to something that decodes to the same.
func FuzzDecode(f *testing.F) {
	for _, p := range session.Payloads() {
		b, err := session.Encode(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(p.Kind()), b)
	}
	f.Add("unheard_of", []byte(`{}`))
	f.Add("user_said", []byte(`{"text":1}`))
	f.Fuzz(func(t *testing.T, kind string, b []byte) {
		p, err := session.Decode(session.Kind(kind), b)
		if err != nil {
			if !errors.Is(err, session.ErrCorrupt) && !errors.Is(err, session.ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		if string(p.Kind()) != kind {
			t.Fatalf("a %s became a %s", kind, p.Kind())
		}
		once, err := session.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := session.Decode(p.Kind(), once)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := session.Encode(again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%s\n%s\n%v", once, twice, err)
		}
	})
}

func TestPayloadsAreComplete(t *testing.T) {
	seen := map[session.Kind]bool{}
	for _, p := range session.Payloads() {
		if seen[p.Kind()] {
			t.Errorf("%s is there twice", p.Kind())
		}
		seen[p.Kind()] = true
		b, err := session.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := session.Decode(p.Kind(), b)
		if err != nil || reflect.TypeOf(back) != reflect.TypeOf(p) {
			t.Errorf("%s comes back as %T, %v", p.Kind(), back, err)
		}
	}
}

func TestIDs(t *testing.T) {
	long := make([]byte, session.MaxIDLength+1)
	for i := range long {
		long[i] = 'a'
	}
	for id, ok := range map[session.ID]bool{
		"a": true, "A-z_9": true, session.ID(long[1:]): true, session.NewID(): true,
		"": false, session.ID(long): false, "a b": false, "a/b": false, "ä": false, "a.b": false, "a\x00": false,
	} {
		if err := id.Check(); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}
