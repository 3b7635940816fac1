// Package ledgertest is the conformance suite for every egress.Ledger, with a ledger in
// memory.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"deckhand/internal/sandbox/egress"
)

// noon is a time that every ledger can keep.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Run runs the suite. open gives a new, empty ledger for each test and closes it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) egress.Ledger) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, egress.Ledger)
	}{
		{"Keeps", keeps},
		{"Pages", pagesOf},
		{"Apart", apart},
		{"Forget", forget},
		{"Bound", bound},
		{"Concurrent", concurrent},
		{"Given up", givenUp},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func entry(n int) egress.Entry {
	return egress.Entry{
		At: noon.Add(time.Duration(n) * time.Second), Took: time.Duration(n) * time.Millisecond, Call: fmt.Sprint("call_", n),
		Method: "GET", Host: "example.org", Port: 443, Sent: int64(n), Received: math.MaxInt64 - int64(n), Verdict: egress.Allowed,
	}
}

func same(t *testing.T, got, want egress.Entry) {
	t.Helper()
	if !got.At.Equal(want.At) {
		t.Errorf("got the time %v, want %v", got.At, want.At)
	}
	got.At, got.ID, want.At, want.ID = time.Time{}, 0, time.Time{}, 0
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func read(t *testing.T, l egress.Ledger, id string, before int64, limit int) []egress.Entry {
	t.Helper()
	got, err := l.Entries(t.Context(), id, before, limit)
	must(t, err)
	return got
}

// keeps checks that every field comes back, also where it is empty or strange.
func keeps(t *testing.T, l egress.Ledger) {
	if got := read(t, l, "unknown", 0, 10); len(got) != 0 {
		t.Errorf("an unknown sandbox has %d entries", len(got))
	}
	want := []egress.Entry{
		entry(1),
		{At: noon, Verdict: egress.Failed},
		{At: noon, Method: "CONNECT", Host: "xn--bcher-kva.example", Port: 65535, Verdict: egress.Refused, Reason: `egress policy "off" – nothing'); --`},
	}
	want[1].ID = 77 // what callers say of it does not count
	must(t, l.Record(t.Context(), "box", want))
	must(t, l.Record(t.Context(), "box", nil))
	got := read(t, l, "box", 0, 10)
	if len(got) != len(want) {
		t.Fatalf("got %d entries, want %d", len(got), len(want))
	}
	slices.Reverse(got)
	for i := range got {
		same(t, got[i], want[i])
		if i > 0 && got[i].ID <= got[i-1].ID {
			t.Errorf("the ID %d follows %d", got[i].ID, got[i-1].ID)
		}
	}
}

// pagesOf reads backwards in pages of every size.
func pagesOf(t *testing.T, l egress.Ledger) {
	const n = 25
	for i := range n {
		must(t, l.Record(t.Context(), "box", []egress.Entry{entry(i)}))
	}
	for _, size := range []int{1, 7, n, n + 1} {
		next, before := n, int64(0)
		for {
			page := read(t, l, "box", before, size)
			if len(page) > size {
				t.Fatalf("got %d entries, asked for %d", len(page), size)
			}
			for _, e := range page {
				next--
				same(t, e, entry(next))
				before = e.ID
			}
			if len(page) < size {
				break
			}
		}
		if next != 0 {
			t.Errorf("pages of %d end with %d entries unseen", size, next)
		}
	}
	for _, limit := range []int{0, -1} {
		if got := read(t, l, "box", 0, limit); len(got) != 0 {
			t.Errorf("limit %d gives %d entries", limit, len(got))
		}
	}
}

// apart checks that sandboxes do not see each other, whatever they are called.
func apart(t *testing.T, l egress.Ledger) {
	ids := []string{"a", "A", "ab", "a%", "a_"}
	for i, id := range ids {
		must(t, l.Record(t.Context(), id, []egress.Entry{entry(i)}))
	}
	for i, id := range ids {
		got := read(t, l, id, 0, 10)
		if len(got) != 1 {
			t.Fatalf("%s has %d entries", id, len(got))
		}
		same(t, got[0], entry(i))
	}
}

func forget(t *testing.T, l egress.Ledger) {
	var many []egress.Entry
	for i := range 2500 {
		many = append(many, entry(i))
	}
	must(t, l.Record(t.Context(), "gone", many))
	must(t, l.Record(t.Context(), "kept", many[:1]))
	for range 2 {
		must(t, l.Forget(t.Context(), "gone"))
		if got := read(t, l, "gone", 0, 10); len(got) != 0 {
			t.Errorf("%d entries are left", len(got))
		}
	}
	must(t, l.Forget(t.Context(), "never was"))
	if got := read(t, l, "kept", 0, 10); len(got) != 1 {
		t.Errorf("another sandbox has %d entries, want 1", len(got))
	}
	must(t, l.Record(t.Context(), "gone", many[:2]))
	if got := read(t, l, "gone", 0, 10); len(got) != 2 || got[0].ID <= got[1].ID {
		t.Errorf("recorded anew: %+v", got)
	}
}

// bound fills a ledger beyond what it keeps, in batches of all sizes.
func bound(t *testing.T, l egress.Ledger) {
	const extra = 137
	must(t, l.Record(t.Context(), "other", []egress.Entry{entry(1)}))
	n := 0
	for _, size := range []int{1, 999, 4000, 5000, extra} {
		var batch []egress.Entry
		for range size {
			batch = append(batch, entry(n))
			n++
		}
		must(t, l.Record(t.Context(), "box", batch))
	}
	got := read(t, l, "box", 0, 2*egress.KeptEntries)
	if len(got) != egress.KeptEntries {
		t.Fatalf("%d entries are kept, want %d", len(got), egress.KeptEntries)
	}
	same(t, got[0], entry(n-1))
	same(t, got[len(got)-1], entry(extra))
	if got := read(t, l, "other", 0, 10); len(got) != 1 {
		t.Errorf("another sandbox has %d entries, want 1", len(got))
	}
}

func concurrent(t *testing.T, l egress.Ledger) {
	var all sync.WaitGroup
	const writers, each = 8, 20
	for w := range writers {
		all.Go(func() {
			for i := range each {
				batch := []egress.Entry{entry(2 * i), entry(2*i + 1)}
				if err := l.Record(t.Context(), fmt.Sprint("box ", w%2), batch); err != nil {
					t.Error(err)
				}
				if _, err := l.Entries(t.Context(), "box 0", 0, 10); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for b := range 2 {
		got := read(t, l, fmt.Sprint("box ", b), 0, 1000)
		if len(got) != writers/2*each*2 {
			t.Fatalf("got %d entries, want %d", len(got), writers/2*each*2)
		}
		for i := 0; i < len(got); i += 2 { // a batch stays together
			if got[i].Sent != got[i+1].Sent+1 || got[i].ID <= got[i+1].ID {
				t.Errorf("%+v follows %+v", got[i], got[i+1])
			}
		}
	}
}

func givenUp(t *testing.T, l egress.Ledger) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Record(ctx, "box", []egress.Entry{entry(1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := read(t, l, "box", 0, 10); len(got) != 0 {
		t.Errorf("%d entries were recorded all the same", len(got))
	}
}
