package sqlite

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
)

func FuzzUnpack(f *testing.F) {
	f.Add(packed.Append(packed.Append(nil, session.KindCreated, 0, []byte(`{}`)), session.KindUserSaid, -3, []byte(`{"text":"hi"}`)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := packed.Events(b)
		if err != nil {
			return
		}
		var again []byte
		for _, e := range events {
			again = packed.Append(again, e.Kind, e.Delay, e.Body)
		}
		if more, err := packed.Events(again); err != nil || len(more) != len(events) {
			t.Fatalf("%d events became %d: %v", len(events), len(more), err)
		}
	})
}

// A batch that is cut in two keeps its good half, and what is cut off can be read.
func TestRepair(t *testing.T) {
	db := openNew(t)
	b := newSession() // two events in one row
	must(t, db.Append(t.Context(), b))
	must(t, db.Append(t.Context(), batch(b, 2, 3)))
	cut, err := db.Dump(t.Context(), b.ID, 3)
	must(t, err)
	if n := bytes.Count(cut, []byte("\n")); n != 1 || !strings.Contains(string(cut), `"last":5`) {
		t.Fatalf("dump: %s", cut)
	}
	row, err := db.Row(t.Context(), b.ID)
	must(t, err)
	row.Last = 3
	must(t, db.Repair(t.Context(), b.ID, 3, row))
	verify(t, db, b.ID, 0, 3)
	must(t, db.Append(t.Context(), batch(b, 3, 1)))
	verify(t, db, b.ID, 0, 4)
}

func TestRowRoundTrip(t *testing.T) {
	want := newSession().Row
	want.Title, want.Reason, want.Deleted = "Ünïcode", "because", true
	want.Totals = session.Totals{Cost: 5, Input: 1 << 40, Output: -1, CacheRead: 3, CacheWrite: 4, Model: "m"}
	b := packed.Row(want)
	if got, err := packed.ReadRow(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v %v", got, err)
	}
	want.Requests = []session.RequestOpened{{Provider: "github", Repository: "octo/app", Number: 7, URL: "https://github.com/octo/app/pull/7", Title: "Ünïcode", Source: "fix", Target: "main"}}
	more := packed.Row(want)
	if got, err := packed.ReadRow(more); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v %v", got, err)
	}
	want.Holder = "loop-1"
	held := packed.Row(want)
	if got, err := packed.ReadRow(held); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v %v", got, err)
	}
	want.Requests = nil
	if got, err := packed.ReadRow(packed.Row(want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v %v", got, err)
	}
	for _, b := range [][]byte{b, more, held} {
		for n := range b {
			if _, err := packed.ReadRow(b[:n]); err == nil {
				t.Errorf("a row cut off at %d is taken for whole", n)
			}
		}
	}
}

// A row of the version before, which rows without a holder and without pull requests still have.
func TestRowOfBefore(t *testing.T) {
	want := newSession().Row
	b := packed.Row(want)
	if got, err := packed.ReadRow(b); b[0] != 2 || err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("version %d: %+v %v", b[0], got, err)
	}
}

func FuzzUnpackRow(f *testing.F) {
	f.Add(packed.Row(newSession().Row))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = packed.ReadRow(b) })
}
