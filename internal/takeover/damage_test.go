package takeover_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/takeover"
)

const (
	hello = `{"id":0,"timestamp":"2025-01-01T10:00:00.000000","source":"user","message":"hello","action":"message","args":{"content":"hello"}}`
	hi    = `{"id":1,"timestamp":"2025-01-01T10:00:01.000000","source":"agent","message":"hi","action":"message","args":{"content":"hi","wait_for_response":true}}`
	about = `{"title":"Greetings","created_at":"2025-01-01T09:00:00+00:00","last_updated_at":"2025-01-01T09:00:02+00:00"}`
)

// What is damaged is said, and everything else is taken over.
func TestDamage(t *testing.T) {
	cases := map[string]struct {
		files  map[string]string
		events int
		says   string // the one problem
	}{
		"whole":             {map[string]string{"metadata.json": about, "events/0.json": hello, "events/1.json": hi}, 2, ""},
		"cut off":           {map[string]string{"metadata.json": about, "events/0.json": hello, "events/1.json": hi[:60]}, 1, "skipped event 1: not valid JSON"},
		"empty":             {map[string]string{"metadata.json": about, "events/0.json": hello, "events/1.json": ""}, 1, "skipped event 1"},
		"no event":          {map[string]string{"metadata.json": about, "events/0.json": hello, "events/1.json": `{"status_update":true}`}, 1, "skipped event 1: it is neither"},
		"more behind it":    {map[string]string{"metadata.json": about, "events/0.json": hello, "events/1.json": hi + "x"}, 1, "skipped event 1"},
		"a gap":             {map[string]string{"metadata.json": about, "events/2.json": hello, "events/5.json": hi}, 2, "events are missing: 0 to 1, 3 to 4"},
		"no metadata":       {map[string]string{"events/0.json": hello, "events/1.json": hi}, 2, "cannot read metadata.json"},
		"bad metadata":      {map[string]string{"metadata.json": about[:30], "events/0.json": hello}, 1, "cannot read metadata.json"},
		"a wrong type":      {map[string]string{"metadata.json": `{"title":7,"trigger":"gui"}`, "events/0.json": hello}, 1, "skipped a field"},
		"hostile names":     {map[string]string{"metadata.json": `{"selected_repository":"../../etc","selected_branch":"--upload-pack=x"}`, "events/0.json": hello}, 1, "selected_repository"},
		"a hostile branch":  {map[string]string{"metadata.json": `{"selected_repository":"a/b","selected_branch":"--upload-pack=x"}`, "events/0.json": hello}, 1, "selected_branch"},
		"a lonely request":  {map[string]string{"metadata.json": `{"pr_number":[3]}`, "events/0.json": hello}, 1, "pull request 3"},
		"nothing":           {map[string]string{"TASKS.md": "x"}, 0, "cannot read metadata.json"},
		"only metadata":     {map[string]string{"metadata.json": about}, 0, ""},
		"odd files":         {map[string]string{"metadata.json": about, "events/0.json": hello, "events/01.json": hi, "events/-1.json": hi, "events/x.json": hi, "events/99999999999999999999.json": hi}, 1, ""},
		"a far number":      {map[string]string{"metadata.json": about, "events/0.json": hello, "events/2000000000.json": hi}, 2, "events are missing: 1 to 1999999999"},
		"half a character":  {map[string]string{"metadata.json": about, "events/0.json": strings.ReplaceAll(hello, "hello", `\ud83d`)}, 1, ""},
		"the same id twice": {map[string]string{"metadata.json": about, "events/0.json": hello, "events/1.json": hello}, 2, ""},
		"in a page":         {map[string]string{"metadata.json": about, "events/0.json": hello[:20], "event_cache/0-25.json": "[" + hello + "," + hi + "]"}, 2, ""},
		"a bad page":        {map[string]string{"metadata.json": about, "events/0.json": hello, "events/1.json": hi[:20], "event_cache/0-25.json": "[" + hello}, 1, "skipped event 1"},
	}
	all := map[string]string{}
	folder := func(name string) string { return "sessions/" + strings.ReplaceAll(name, " ", "-") }
	for name, c := range cases {
		for f, text := range c.files {
			all[folder(name)+"/"+f] = text
		}
	}
	h := build(t)
	r := h.take(write(t, all))
	if len(r.Conversations) != len(cases) || r.Clean() {
		t.Errorf("%d conversations of %d", len(r.Conversations), len(cases))
	}
	for name, c := range cases {
		got := find(t, r, folder(name))
		if got.Events != c.events || c.says == "" && len(got.Problems) > 0 || c.says != "" && (len(got.Problems) == 0 || !strings.Contains(got.Problems[0], c.says)) {
			t.Errorf("%s: %+v", name, got)
		}
		if got.State != takeover.Imported {
			continue
		}
		if st := h.fold(session.ID(got.ID)); st.Status() != session.Halted || len(h.shown(st.ID)) != c.events {
			t.Errorf("%s: %d events are shown: %+v", name, len(h.shown(st.ID)), st)
		}
	}
}

// A folder may be called what no conversation is, and two may be called the same.
func TestHostileAndDoubleIDs(t *testing.T) {
	files := map[string]string{}
	long := strings.Repeat("a", 150)
	odd := []string{"sessions/..a", "sessions/a b", "sessions/" + long, "sessions/\x1b[31mred", "users/x/conversations/same"}
	for _, dir := range append(odd, "sessions/same") {
		files[dir+"/metadata.json"], files[dir+"/events/0.json"] = about, hello
	}
	h := build(t)
	dir := write(t, files)
	if _, err := session.New(h.db).Create(t.Context(), "of-bob", session.Created{Owner: "bob"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "sessions/of-bob"), os.DirFS(filepath.Join(dir, "sessions/same"))); err != nil {
		t.Fatal(err)
	}
	first := h.take(dir)
	if n := first.Count(takeover.Imported); n != 7 || !first.Clean() {
		t.Fatalf("%d of them were imported: %+v", n, first)
	}
	renamed := 0
	for _, c := range first.Conversations {
		if strings.ContainsRune(c.From, 0x1b) {
			t.Errorf("%q could be printed", c.From)
		}
		if len(c.Notes) == 1 && strings.Contains(c.Notes[0], c.ID) {
			renamed++
		}
		if row, err := h.db.Row(t.Context(), session.ID(c.ID)); err != nil || row.Owner != "ada" || row.Title != "Greetings" {
			t.Errorf("%+v %v", row, err)
		}
	}
	if renamed != 6 {
		t.Errorf("%d have another id: %+v", renamed, first.Conversations)
	}
	again := h.take(dir)
	if again.Count(takeover.Present) != 7 {
		t.Errorf("the second run: %+v", again)
	}
}

// Nothing outside of the folder is read, nothing waits for a pipe, nothing is changed.
func TestLinksAndPipes(t *testing.T) {
	outside := write(t, map[string]string{"events/0.json": hello, "metadata.json": about, "secret.json": `{"llm_model":"a/b"}`})
	dir := write(t, map[string]string{"sessions/one/metadata.json": about, "sessions/one/events/0.json": hello, "sessions/huge/metadata.json": about})
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(outside, "sessions/linked")
	link(filepath.Join(outside, "secret.json"), "settings.json")
	link("0.json", "sessions/one/events/1.json")
	if err := syscall.Mkfifo(filepath.Join(dir, "sessions/one/events/2.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "sessions/huge/events/0.json")
	if err := os.MkdirAll(filepath.Dir(big), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 100<<20); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	h := build(t)
	r := h.take(dir)
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "sessions/linked: symbolic link") || len(r.Settings.Refused) != 1 || len(r.Settings.Imported) > 0 {
		t.Errorf("%+v", r)
	}
	one := find(t, r, "sessions/one")
	if one.Events != 1 || len(one.Problems) != 2 || !strings.Contains(one.Problems[0], "link") || !strings.Contains(one.Problems[1], "link") {
		t.Errorf("%+v", one)
	}
	if huge := find(t, r, "sessions/huge"); len(huge.Problems) != 1 || !strings.Contains(huge.Problems[0], "104857600 bytes") {
		t.Errorf("%+v", huge)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the folder was changed:\n%s\n%s", before, after)
	}
}

// tree is all names, sizes and times below a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNothingThere(t *testing.T) {
	h := build(t)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := takeover.Import{Root: root, User: "ada", Store: h.db, Settings: h.settings, Masker: h.masker}
	if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no legacy server data") {
		t.Error(err)
	}
}

// A condensation stands for the same events as before, and separates no call from its result.
func TestCondensation(t *testing.T) {
	events := []string{hello}
	for i := 1; i < 20; i += 2 {
		events = append(events,
			fmt.Sprintf(`{"id":%d,"source":"agent","action":"run","args":{"command":"c%d"}}`, i, i),
			fmt.Sprintf(`{"id":%d,"source":"agent","cause":%d,"observation":"run","content":"o","extras":{"command":"c","metadata":{"exit_code":0}}}`, i+1, i))
	}
	at := len(events) // 21
	events = append(events, fmt.Sprintf(`{"id":%d,"source":"agent","action":"condensation","args":{"forgotten_event_ids":null,"forgotten_events_start_id":2,"forgotten_events_end_id":9,"summary":"much was done","summary_offset":1}}`, at),
		fmt.Sprintf(`{"id":%d,"source":"agent","action":"condensation","args":{"forgotten_event_ids":[11,12,13,14],"forgotten_events_start_id":null,"forgotten_events_end_id":null,"summary":null,"summary_offset":null}}`, at+1),
		fmt.Sprintf(`{"id":%d,"source":"agent","action":"condensation","args":{"forgotten_event_ids":[1,20],"summary":"not in one stretch"}}`, at+2))
	files := map[string]string{"sessions/c/metadata.json": `{}`}
	for i, e := range events {
		files[fmt.Sprintf("sessions/c/events/%d.json", i)] = e
	}
	h := build(t)
	if r := h.take(write(t, files)); !r.Clean() {
		t.Fatalf("%+v", r)
	}
	var got []session.Condensed
	var shown []string
	for _, e := range h.events("c") {
		p, ok := e.Payload.(session.Imported)
		if ok && bytes.Contains(p.Event, []byte(`"condensation"`)) {
			var v struct {
				Args struct {
					Start, End *int64
					IDs        []int64
				}
			}
			text := strings.NewReplacer("forgotten_events_start_id", "start", "forgotten_events_end_id", "end", "forgotten_event_ids", "ids").Replace(string(p.Event))
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			if v.Args.Start != nil {
				shown = append(shown, fmt.Sprint(*v.Args.Start, " to ", *v.Args.End))
			} else {
				shown = append(shown, fmt.Sprint(v.Args.IDs))
			}
			if p.Condensed != nil {
				got = append(got, *p.Condensed)
			}
		}
	}
	// Legacy event n is number n+2 here: the conversation's creation comes first.
	want := []session.Condensed{{From: 5, To: 10, Summary: "much was done"}, {From: 13, To: 16, Summary: "No summary was made of it."}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !slices.Equal(shown, []string{"4 to 11", "[13 14 15 16]", "[3 22]"}) {
		t.Errorf("clients are shown %q", shown)
	}
}
