package takeover_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/takeover"
	"deckhand/internal/v0"
)

const legacy = "testdata/legacy"

// One import, looked at from all sides.
func TestTakenOver(t *testing.T) {
	h := build(t)
	r := h.take(legacy)
	t.Run("events are as they were", func(t *testing.T) { eventsAreAsTheyWere(t, h) })
	t.Run("the conversation is what it was", func(t *testing.T) { conversationIsWhatItWas(t, h, r) })
	t.Run("the model sees a well-formed history", func(t *testing.T) { modelSeesAWellFormedHistory(t, h) })
	t.Run("the trajectory can be replayed", func(t *testing.T) { trajectoryCanBeReplayed(t, h) })
	t.Run("secrets are nowhere", func(t *testing.T) { secretsAreNowhere(t, h, r) })
}

// Clients see every event of both conversations as it was: kind, source, args, extras.
func eventsAreAsTheyWere(t *testing.T, h *house) {
	for id, invented := range map[session.ID]int{newer: 1, older: 0} {
		files, err := filepath.Glob(filepath.Join(legacy, "sessions", string(id), "events", "*.json"))
		if err != nil || len(files) < 15 {
			t.Fatal(len(files), err)
		}
		got := h.shown(id)
		numbers := map[int64]int64{}
		at := 0
		for n := range len(files) {
			raw, err := os.ReadFile(filepath.Join(legacy, "sessions", string(id), "events", fmt.Sprint(n, ".json")))
			if err != nil {
				t.Fatal(err)
			}
			want := parse(t, []byte(h.masker.String(string(raw))))
			if want.kind() == "null" {
				continue
			}
			for invented > 0 && got[at].Extras["error_id"] == "AGENT_ERROR$OUTCOME_UNKNOWN" {
				invented, at = invented-1, at+1
			}
			e := got[at]
			at++
			numbers[want.ID] = e.ID
			modern(want)
			if e.kind() != want.kind() || e.Source != want.Source || e.Content != want.Content || !reflect.DeepEqual(e.Args, want.Args) || !reflect.DeepEqual(e.Extras, want.Extras) {
				t.Errorf("%s event %d:\ngot  %+v\nwant %+v", id, n, e, want)
			}
			if (e.Cause == nil) != (want.Cause == nil) || e.Cause != nil && *e.Cause != numbers[*want.Cause] {
				t.Errorf("%s event %d has the cause %v", id, n, e.Cause)
			}
		}
		if at != len(got) || invented != 0 {
			t.Errorf("%s: %d events are shown beside those that were, and %d are missing", id, len(got)-at, invented)
		}
	}
}

// modern spells an event of testdata as the newest legacy server would.
func modern(s shape) {
	for old, new := range map[string]string{"images_urls": "image_urls", "is_confirmed": "confirmation_state", "keep_prompt": "", "translated_ipython_code": ""} {
		if v, ok := s.Args[old]; ok {
			delete(s.Args, old)
			if new != "" {
				s.Args[new] = v
			}
		}
	}
	if code, ok := s.Extras["exit_code"]; ok && s.Observation == "run" {
		s.Extras["metadata"] = map[string]any{"exit_code": code, "pid": s.Extras["command_id"], "username": "", "hostname": "", "working_dir": "", "py_interpreter_path": "", "prefix": "", "suffix": ""}
		delete(s.Extras, "exit_code")
		delete(s.Extras, "command_id")
	}
}

func conversationIsWhatItWas(t *testing.T, h *house, r takeover.Report) {
	c := find(t, r, "sessions/"+string(newer))
	if c.State != takeover.Imported || c.ID != string(newer) || c.Title != "Write the README" || len(c.Problems)+len(c.Notes) > 0 {
		t.Errorf("%+v", c)
	}
	row, err := h.db.Row(t.Context(), newer)
	if err != nil {
		t.Fatal(err)
	}
	want := session.Row{ID: newer, Owner: "ada", Title: "Write the README", Status: session.Halted, Agent: session.AgentStopped, Trigger: "gui",
		Repository: "octo/app", Branch: "main", Provider: "github", CreatedAt: time.Date(2025, 10, 1, 9, 58, 0, 250e6, time.UTC), UpdatedAt: time.Date(2025, 10, 1, 10, 30, 0, 500e6, time.UTC),
		Reason: row.Reason, Last: row.Last, Totals: session.Totals{Cost: 13_200_000, Input: 5120, Output: 210, Model: "test-model"},
		Requests: []session.RequestOpened{{Provider: "github", Repository: "octo/app", Number: 42}}}
	if !reflect.DeepEqual(row, want) {
		t.Errorf("got  %+v\nwant %+v", row, want)
	}
	st := h.fold(newer)
	if st.Wants() || st.Pending() || len(st.Open) > 0 || st.Created.Instructions != "Answer in one sentence." {
		t.Errorf("%+v", st)
	}
	if st := h.fold(older); st.Title != session.DefaultTitle(older) || st.Created.Trigger != "openhands_api" {
		t.Errorf("%+v", st.Created)
	}
	if c := find(t, r, "users/u-1/conversations/7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a"); c.State != takeover.Imported || c.Title != "Of another user" {
		t.Errorf("%+v", c)
	}
}

// Defect 18 of the legacy server: its times have no zone. Ours have, and mean the same moment.
func TestDefect18ImportedTimestampsHaveAZone(t *testing.T) {
	h := build(t)
	h.take(legacy)
	got := h.shown(newer)
	if first := got[0].Timestamp; first != "2025-10-01T09:58:02.001007Z" {
		t.Errorf("the first event is of %s", first)
	}
	if !slices.IsSortedFunc(got, func(a, b shape) int { return strings.Compare(a.Timestamp, b.Timestamp) }) {
		t.Error("time goes backwards")
	}
	other := build(t)
	other.take(legacy, func(m *takeover.Import) { m.Zone = time.UTC })
	if first := other.shown(newer)[0].Timestamp; first != "2025-10-01T11:58:02.001007Z" {
		t.Errorf("in another zone it is of %s", first)
	}
}

// The history that the model sees: each call once, with one result, before the next answer.
func modelSeesAWellFormedHistory(t *testing.T, h *house) {
	var story []string
	open := map[string]bool{}
	for _, e := range h.events(newer) {
		p, ok := e.Payload.(session.Imported)
		if !ok {
			continue
		}
		switch m := p.Means().(type) {
		case session.UserSaid:
			story = append(story, "said "+m.Text)
		case session.ModelAnswered:
			line := "answered " + m.Text
			for _, c := range m.ToolCalls {
				open[c.ID] = true
				line += " [" + c.Name + " " + c.ID + "]"
			}
			story = append(story, line)
		case session.ToolReturned:
			if !open[m.ID] {
				t.Errorf("%s has a result and was not called, or has two", m.ID)
			}
			delete(open, m.ID)
			story = append(story, "returned "+m.ID+" "+string(m.Outcome))
		case session.Nudged:
			line, _, _ := strings.Cut(m.Text, "\n")
			story = append(story, "told "+line)
		}
	}
	want := []string{
		"said Add a README", "told The repository:",
		"answered Let me look. [execute_bash call_1] [think call_2]", "returned call_1 ok", "returned call_2 ok",
		"answered  [execute_bash call_3]", "returned call_3 failed",
		"answered  [str_replace_editor call_4]", "returned call_4 ok",
		"answered  [task_tracker call_5]", "returned call_5 ok",
		"answered  [fetch_page call_6]", "returned call_6 ok",
		"answered  [execute_ipython_cell call_7]", "returned call_7 ok",
		"answered  [browser call_8]", "returned call_8 ok",
		"answered  [execute_bash call_9]", "returned call_9 rejected",
		"answered  [execute_bash call_10]", "told What came of error: The runtime was restarted.", "said Go on",
		"told What came of loop_detection: The agent repeats itself.", "returned call_10 unknown",
		"answered The README is written.",
	}
	if !slices.Equal(story, want) || len(open) > 0 {
		t.Errorf("got  %s\nwant %s\nopen %v", strings.Join(story, "\n     "), strings.Join(want, "\n     "), open)
	}
}

// What is exported can be replayed, though the first event of the agent is its briefing.
func trajectoryCanBeReplayed(t *testing.T, h *house) {
	for id, commands := range map[session.ID][]string{newer: {"ls", "make test"}, older: {"ls"}} {
		var trajectory []json.RawMessage
		hidden := map[int64]bool{}
		events := h.events(id)
		for _, e := range events {
			if n, ok := v0.HiddenCall(e); ok {
				hidden[n], hidden[e.Number] = true, true
			}
		}
		for _, e := range events {
			raw, err := v0.Export(id, e)
			if err != nil {
				t.Fatal(err)
			}
			if raw != nil && !hidden[e.Number] {
				trajectory = append(trajectory, raw)
			}
		}
		text, err := json.Marshal(trajectory)
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{"dom_object", "export X=1"} {
			if strings.Contains(string(text), gone) {
				t.Errorf("%s: the trajectory has %s", id, gone)
			}
		}
		steps, err := v0.ParseReplay(string(text))
		if err != nil {
			t.Fatal(err)
		}
		all, err := json.Marshal(steps)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			if !strings.Contains(string(all), c) {
				t.Errorf("%s: %q is not replayed: %s", id, c, all)
			}
		}
	}
}

// A second run finds everything there; what is only reported is not stored.
func TestRunAgain(t *testing.T) {
	h := build(t)
	r := h.take(legacy, dry)
	if r.Count(takeover.Imported) != 3 || !r.DryRun {
		t.Errorf("%+v", r)
	}
	if _, err := h.db.Row(t.Context(), newer); err == nil {
		t.Fatal("a dry run stores")
	}
	h.take(legacy)
	before := h.events(newer)
	if _, err := session.New(h.db).Update(t.Context(), older, session.State.Delete); err != nil {
		t.Fatal(err)
	}
	r = h.take(legacy)
	if r.Count(takeover.Present) != 3 || len(r.Settings.Imported) > 0 {
		t.Errorf("%+v", r)
	}
	if c := find(t, r, "sessions/"+string(older)); len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "deleted") {
		t.Errorf("%+v", c)
	}
	if len(h.events(newer)) != len(before) {
		t.Error("it grew")
	}
}

func TestOneLegacyUser(t *testing.T) {
	h := build(t)
	r := h.take(legacy, func(m *takeover.Import) { m.LegacyUser = "u-1" })
	if len(r.Conversations) != 1 || r.Conversations[0].Title != "Of another user" || r.Settings.Found {
		t.Errorf("%+v", r)
	}
}
