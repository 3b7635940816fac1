package logtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
)

// row: what Append is given is what Row returns, field for field, and the next
// Append replaces all of it.
func row(t *testing.T, s Store) {
	first := session.Row{
		ID: "a", Owner: "maria", Title: "A title", Status: session.Running, Agent: session.AgentRunning, ErrorID: "E$1", Reason: "because",
		Trigger: "gui", Repository: "maria/parser", Branch: "main", Provider: "github", CreatedAt: noon, UpdatedAt: after(1), Last: 1,
		Wants: true, Holder: "loop-1", Totals: session.Totals{Cost: 1, Input: 2, Output: 3, CacheRead: 4, CacheWrite: 5, Model: "scripted/demo"},
	}
	must(t, s.Append(t.Context(), plain(first)))
	is(t, s, first)
	progress := first
	progress.Title, progress.Agent, progress.ErrorID, progress.Reason = "Another", session.AgentFinished, "", "done"
	progress.UpdatedAt, progress.Last, progress.Totals, progress.Holder = after(2), 2, session.Totals{Cost: 9}, "loop-2"
	progress.Requests = []session.RequestOpened{{Provider: "github", Repository: "maria/parser", Number: 7, URL: "https://github.com/maria/parser/pull/7", Title: "Parse", Source: "a", Target: "b"}}
	again(t, s, progress)
	bare := session.Row{ID: "a", Owner: "maria", Title: "B", Status: session.Halted, CreatedAt: noon, UpdatedAt: after(3), Last: 3}
	again(t, s, bare)
	full := first
	full.UpdatedAt, full.Last = after(4), 4
	again(t, s, full)
}

// again appends one event with a row.
func again(t *testing.T, s Store, r session.Row) {
	t.Helper()
	must(t, s.Append(t.Context(), session.Batch{
		ID: r.ID, After: r.Last - 1, Row: r, Events: []session.Event{{Number: r.Last, At: r.UpdatedAt, Payload: note(0)}},
	}))
	is(t, s, r)
}

func is(t *testing.T, s Store, want session.Row) {
	t.Helper()
	got, err := s.Row(t.Context(), want.ID)
	must(t, err)
	same(t, "row", got, want)
}

// paging: every page size gives the same list, though creation times tie.
func paging(t *testing.T, s Store) {
	var rows []session.Row
	for i := range 25 {
		r := session.Row{
			ID: session.ID(fmt.Sprintf("s%02d", i*7%25)), Owner: "maria", Title: "t", Status: session.Starting,
			CreatedAt: after(i / 4), UpdatedAt: after(100 - i), Last: 1,
		}
		rows = append(rows, r)
		must(t, s.Append(t.Context(), plain(r)))
	}
	want := listed(rows, session.Query{Owner: "maria"})
	for _, size := range []int{1, 3, 4, 7, 25, 100} {
		same(t, fmt.Sprint("pages of ", size), pages(t, s, session.Query{Owner: "maria", Limit: size}), want)
	}
	// A cursor is a place, not a row: it may be between two, or before or behind all.
	for _, c := range []session.Cursor{
		{CreatedAt: after(3), ID: "s"}, {CreatedAt: after(3), ID: "s99"}, {CreatedAt: after(-5), ID: "x"}, {CreatedAt: after(99), ID: "x"},
		{CreatedAt: after(2).Add(time.Microsecond), ID: "x"},
	} {
		q := session.Query{Owner: "maria", Before: &c, Limit: 100}
		got, err := s.Rows(t.Context(), q)
		must(t, err)
		same(t, fmt.Sprint("before ", c), ids(got), listed(rows, q))
	}
}

// filters tries every combination, in small pages: a page is full as long as
// there are matches, so filters apply before the limit.
func filters(t *testing.T, s Store) {
	var (
		repositories = []string{"", "maria/parser", "maria/lexer"}
		triggers     = []string{"", "gui", "api"}
		statuses     = []session.Status{"", session.Starting, session.Running, session.Halted}
		texts        = []string{"", "fix", "a PARSER", "Maria/P", "S01", "nothing like it"}
		rows         []session.Row
	)
	for i := range 120 {
		r := session.Row{
			ID: session.ID(fmt.Sprintf("s%03d", i)), Owner: "maria", Title: fmt.Sprint([]string{"Fix the lexer ", "Write a parser "}[i%2], i),
			Repository: repositories[i%3], Trigger: triggers[i/3%3], Status: statuses[1+i/9%3], Step: []string{"", "starting"}[i/27%2],
			CreatedAt: after(i / 5), UpdatedAt: noon, Last: 1, Deleted: i%11 == 0,
		}
		rows = append(rows, r)
		must(t, s.Append(t.Context(), plain(r)))
	}
	for _, repository := range repositories {
		for _, trigger := range triggers {
			for _, status := range statuses {
				for _, text := range texts {
					q := session.Query{Owner: "maria", Repository: repository, Trigger: trigger, Status: status, Text: text, Limit: 3}
					same(t, fmt.Sprintf("%+v", q), pages(t, s, q), listed(rows, q))
				}
			}
		}
	}
}

// text: a part of the title, the repository or the id is looked for as it is
// written, but in upper or lower case.
func text(t *testing.T, s Store) {
	var rows []session.Row
	for i, r := range []session.Row{
		{Title: "100% done"}, {Title: "100x done"}, {Title: "snake_case"}, {Title: "snakeXcase"}, {Title: `back\slash`}, {Title: "ÄRGER über Bücher"},
		{Title: "it's \"quoted\""}, {Title: "日本語のタイトル"}, {Title: "Conversation 12345"}, {Title: "300 \u212a"}, // the sign for Kelvin is a k
		{Title: "one", Repository: "Acme/Snake_Charmer"}, {Title: "two", Repository: "équipe/Bücher"}, {Title: "three", Repository: "acme/bare"},
	} {
		r.ID, r.Owner, r.Status = session.ID(fmt.Sprint("Row-", i, "-ID")), "maria", session.Starting
		r.CreatedAt, r.UpdatedAt, r.Last = after(i), noon, 1
		rows = append(rows, r)
		must(t, s.Append(t.Context(), plain(r)))
	}
	for query, want := range map[string]int{
		"100": 2, "100%": 1, "%": 1, "_": 2, "SNAKE_": 2, "snake": 3, "DONE": 2, `\`: 1, "ärger": 1, "ÜBER": 1, "'": 1, `"QUOTED"`: 1,
		"語の": 1, "conversation": 1, "nothing like it": 0, " ": 6, "300 k": 1, "\u212a": 5, "BÜCHER": 2, "ACME/": 2, "acme/snake_charmer": 1, "ÉQUIPE": 1,
		"row-7": 1, "-id": 13, "ROW-12-ID": 1, "row-12-idx": 0, "doneacme": 0, "charmerrow": 0,
	} {
		q := session.Query{Owner: "maria", Text: query, Limit: 100}
		got, err := s.Rows(t.Context(), q)
		must(t, err)
		same(t, fmt.Sprintf("rows with %q", query), ids(got), listed(rows, q))
		if len(got) != want {
			t.Errorf("%q: %d rows, want %d", query, len(got), want)
		}
	}
}

func owners(t *testing.T, s Store) {
	for i, owner := range []string{"maria", "Maria", "maria2", "mari", "otto"} {
		must(t, s.Append(t.Context(), plain(session.Row{
			ID: session.ID(fmt.Sprint("s", i)), Owner: owner, Title: "t", Status: session.Starting, CreatedAt: noon, UpdatedAt: noon,
		})))
	}
	for owner, want := range map[string][]session.ID{"maria": {"s0"}, "Maria": {"s1"}, "otto": {"s4"}, "unknown": nil, "": nil, "%": nil} {
		for _, q := range []session.Query{{Owner: owner, Limit: 10}, {Owner: owner, Limit: 10, Text: "T"}, {Owner: owner, Limit: 10, Status: session.Starting}} {
			got, err := s.Rows(t.Context(), q)
			must(t, err)
			same(t, "rows of "+owner, ids(got), want)
		}
	}
}

// Wanting lists the sessions that an index says want a loop, the first limit of them.
func Wanting(t testing.TB, s session.Index, held []string, limit int) []session.ID {
	t.Helper()
	var found []session.Waiting
	for w, err := range s.Wanting(t.Context(), held) {
		if err != nil {
			t.Fatal(err)
		}
		if found = append(found, w); len(found) == limit {
			break
		}
	}
	var ids []session.ID
	for _, w := range found {
		if row, err := s.Row(t.Context(), w.ID); err != nil || row.Owner != w.Owner {
			t.Errorf("%+v, but the row is %+v: %v", w, row, err)
		}
		ids = append(ids, w.ID)
	}
	return ids
}

func wanting(t *testing.T, s Store) {
	for i := range 20 {
		must(t, s.Append(t.Context(), plain(session.Row{
			ID: session.ID(fmt.Sprintf("s%02d", i)), Owner: fmt.Sprint("o", i%3), Title: "t", Status: session.Starting,
			CreatedAt: noon, UpdatedAt: after(-i / 2), Wants: i%2 == 0,
		})))
	}
	same(t, "wanting", Wanting(t, s, nil, 100), []session.ID{"s18", "s16", "s14", "s12", "s10", "s08", "s06", "s04", "s02", "s00"})
	same(t, "the first three", Wanting(t, s, nil, 3), []session.ID{"s18", "s16", "s14"})
	// One is served, one begins to want, one changes and so becomes the newest.
	again(t, s, session.Row{ID: "s18", Owner: "o0", Title: "t", Status: session.Running, CreatedAt: noon, UpdatedAt: after(1), Last: 2})
	again(t, s, session.Row{ID: "s01", Owner: "o1", Title: "t", Status: session.Running, CreatedAt: noon, UpdatedAt: after(1), Last: 2, Wants: true})
	again(t, s, session.Row{ID: "s16", Owner: "o1", Title: "t", Status: session.Starting, CreatedAt: noon, UpdatedAt: after(2), Last: 2, Wants: true})
	same(t, "wanting", Wanting(t, s, nil, 100), []session.ID{"s14", "s12", "s10", "s08", "s06", "s04", "s02", "s00", "s01", "s16"})
}

// held: a session that a live member holds is listed for that member only. What
// matters is the holder of the last append, also after a restart.
func held(t *testing.T, s Store) {
	holders := []string{"", "loop-1", "loop-2", "loop-3"}
	for i := range 8 {
		must(t, s.Append(t.Context(), plain(session.Row{
			ID: session.ID(fmt.Sprint("s", i)), Owner: "maria", Title: "t", Status: session.Running,
			CreatedAt: noon, UpdatedAt: after(i), Wants: i != 7, Holder: holders[i%4],
		})))
	}
	listed := func(limit int, held []string, want ...session.ID) {
		t.Helper()
		same(t, fmt.Sprintf("wanting, held by %q", held), Wanting(t, s, held, limit), want)
	}
	listed(100, nil, "s0", "s1", "s2", "s3", "s4", "s5", "s6")
	listed(100, []string{"loop-1"}, "s0", "s2", "s3", "s4", "s6")
	listed(100, []string{"loop-1", "loop-3"}, "s0", "s2", "s4", "s6")
	listed(2, []string{"loop-1"}, "s0", "s2") // the limit counts what is listed
	listed(100, []string{"", "LOOP-1", "loop", "%"}, "s0", "s1", "s2", "s3", "s4", "s5", "s6")
	// One is claimed, one changes hands, one is left.
	row := session.Row{Owner: "maria", Title: "t", Status: session.Running, CreatedAt: noon, Last: 2, Wants: true}
	for i, change := range []struct {
		id     session.ID
		holder string
	}{{"s0", "loop-1"}, {"s1", "loop-2"}, {"s2", ""}} {
		row.ID, row.Holder, row.UpdatedAt = change.id, change.holder, after(10+i)
		again(t, s, row)
	}
	if r, ok := s.(Reopener); ok {
		s = r.Reopen(t)
	}
	listed(100, []string{"loop-1"}, "s3", "s4", "s6", "s1", "s2")
	listed(100, []string{"loop-2"}, "s3", "s4", "s5", "s0", "s2")
}

func idle(t *testing.T, s Store) {
	statuses := []session.Status{session.Running, session.Running, session.Starting, session.Halted}
	for i := range 16 {
		must(t, s.Append(t.Context(), plain(session.Row{
			ID: session.ID(fmt.Sprintf("s%02d", i)), Owner: "maria", Title: "t", Status: statuses[i%4],
			CreatedAt: noon, UpdatedAt: after(-i), Wants: i%4 == 1,
		})))
	}
	for _, test := range []struct {
		before time.Time
		limit  int
		want   []session.ID
	}{
		{after(1), 100, []session.ID{"s12", "s08", "s04", "s00"}},
		{after(0), 100, []session.ID{"s12", "s08", "s04"}}, // not the one that changed just then
		{after(-4).Add(time.Microsecond), 100, []session.ID{"s12", "s08", "s04"}},
		{after(1), 2, []session.ID{"s12", "s08"}},
		{after(-12), 100, nil},
	} {
		got, err := s.Idle(t.Context(), test.before, test.limit)
		must(t, err)
		same(t, fmt.Sprint("idle before ", test.before), got, test.want)
	}
	again(t, s, session.Row{ID: "s12", Owner: "maria", Title: "t", Status: session.Halted, CreatedAt: noon, UpdatedAt: after(-20), Last: 2})
	again(t, s, session.Row{ID: "s08", Owner: "maria", Title: "t", Status: session.Running, CreatedAt: noon, UpdatedAt: after(5), Last: 2})
	got, err := s.Idle(t.Context(), after(1), 100)
	must(t, err)
	same(t, "idle", got, []session.ID{"s04", "s00"})
}

func unchanged(t *testing.T, s Store) {
	for i, status := range []session.Status{session.Running, session.Halted, session.Halted, session.Starting} {
		must(t, s.Append(t.Context(), plain(session.Row{
			ID: session.ID(fmt.Sprint("s", i)), Owner: fmt.Sprint("user", i), Title: "t", Status: status, CreatedAt: noon, UpdatedAt: after(i), Wants: i == 3,
		})))
	}
	found := func(before time.Time) (all []session.ID) {
		for id, err := range s.Unchanged(t.Context(), before) {
			must(t, err)
			all = append(all, id)
		}
		slices.Sort(all)
		return all
	}
	same(t, "unchanged since the start", found(noon), []session.ID(nil))
	same(t, "unchanged since one of them changed", found(after(2)), []session.ID{"s0", "s1"})
	same(t, "unchanged", found(after(10)), []session.ID{"s0", "s1", "s2", "s3"})
	again(t, s, session.Row{ID: "s0", Owner: "user0", Title: "t", Status: session.Running, CreatedAt: noon, UpdatedAt: after(9), Last: 2})
	again(t, s, session.Row{ID: "s1", Owner: "user1", Title: "t", Status: session.Halted, CreatedAt: noon, UpdatedAt: after(5), Deleted: true, Last: 2})
	same(t, "unchanged after changes", found(after(8)), []session.ID{"s2", "s3"})
	for range s.Unchanged(t.Context(), after(10)) { // a caller may stop early
		break
	}
}

// pages reads a list to its end, page by page.
func pages(t *testing.T, s Store, q session.Query) []session.ID {
	t.Helper()
	var got []session.ID
	for {
		rows, err := s.Rows(t.Context(), q)
		must(t, err)
		if len(rows) > q.Limit {
			t.Fatalf("a page of %d rows, want at most %d", len(rows), q.Limit)
		}
		got = append(got, ids(rows)...)
		if len(rows) < q.Limit {
			return got
		}
		last := rows[len(rows)-1]
		q.Before = &session.Cursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}

// listed is what a query must find, said as plainly as possible.
func listed(rows []session.Row, q session.Query) []session.ID {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r session.Row) bool {
		shown := r.Status
		if r.Step != "" && shown == session.Running {
			shown = session.Starting
		}
		return r.Deleted || r.Owner != q.Owner ||
			q.Repository != "" && r.Repository != q.Repository ||
			q.Trigger != "" && r.Trigger != q.Trigger ||
			q.Status != "" && shown != q.Status ||
			!slices.ContainsFunc([]string{r.Title, r.Repository, string(r.ID)}, func(s string) bool {
				if s == string(r.ID) && len(s) == 32 && len(q.Text) < 8 {
					return false
				}
				return strings.Contains(strings.ToLower(s), strings.ToLower(q.Text))
			}) ||
			q.Before != nil && newestFirst(r, session.Row{ID: q.Before.ID, CreatedAt: q.Before.CreatedAt}) <= 0
	})
	slices.SortFunc(rows, newestFirst)
	return ids(rows)
}

func newestFirst(a, b session.Row) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

func ids(rows []session.Row) []session.ID {
	var out []session.ID
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}
