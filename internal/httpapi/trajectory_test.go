package httpapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

// append adds to a conversation what a loop would have.
func (r *rig) append(id string, payloads ...session.Payload) {
	r.t.Helper()
	row, err := r.log.Row(r.t.Context(), session.ID(id))
	if err != nil {
		r.t.Fatal(err)
	}
	b := session.Batch{ID: row.ID, After: row.Last}
	for i, p := range payloads {
		b.Events = append(b.Events, session.Event{Number: row.Last + int64(i) + 1, At: time.Unix(1, 0).UTC(), Payload: p})
	}
	row.Last += int64(len(payloads))
	b.Row = row
	if err := r.log.Append(r.t.Context(), b); err != nil {
		r.t.Fatal(err)
	}
}

func TestTrajectory(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	id := r.create(`{"initial_user_msg":"Add a README"}`)
	row, err := r.log.Row(t.Context(), session.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	runs := func(call, command string) session.ToolCalled {
		args, _ := json.Marshal(map[string]string{"command": command})
		return session.ToolCalled{ToolCall: session.ToolCall{ID: call, Name: "execute_bash", Args: args}, Answer: 1, InAnswer: 1}
	}
	n := row.Last
	r.append(id,
		session.Claimed{By: "x"},
		runs("c1", "ls"),
		session.ToolReturned{ID: "c1", Name: "execute_bash", Cause: n + 2, Outcome: session.Succeeded, Output: "a.txt", Details: json.RawMessage(`{"exit_code":0}`)},
		runs("c2", "peek-in-secret"),
		session.ToolReturned{ID: "c2", Name: "execute_bash", Cause: n + 4, Outcome: session.Succeeded, Output: "unseen", Details: json.RawMessage(`{"exit_code":0,"hidden":true}`)},
		session.ToolReturned{ID: "c3", Name: "browser", Cause: n + 4, Outcome: session.Succeeded, Details: json.RawMessage(`{"url":"http://localhost/","screenshot":"data:image/png;base64,iVBO"}`)},
		session.ModelAnswered{Text: "Done.", Final: true},
	)
	got, err := r.clientOf("ada").Trajectory(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := json.Marshal(got)
	for _, want := range []string{"Add a README", `"command":"ls"`, "a.txt", "http://localhost/", "Done."} {
		if !strings.Contains(string(all), want) {
			t.Errorf("%q is missing in %s", want, all)
		}
	}
	for _, gone := range []string{"peek-in-secret", "unseen", "iVBO", "screenshot\""} {
		if strings.Contains(string(all), gone) {
			t.Errorf("%q is in %s", gone, all)
		}
	}
	var saved bytes.Buffer
	if err := r.clientOf("ada").SaveTrajectory(t.Context(), id, &saved); err != nil {
		t.Fatal(err)
	}
	var again api.Trajectory
	if err := json.Unmarshal(saved.Bytes(), &again); err != nil || len(again.Trajectory) != len(got.Trajectory) {
		t.Errorf("%v: %s", err, saved.Bytes())
	}
	steps, err := v0.ParseReplay(saved.String())
	if err != nil || len(steps) != 3 || steps[1].Calls[0].ID != "c1" || !steps[2].Ends {
		t.Errorf("%v: %+v", err, steps)
	}
	for user, id := range map[string]string{"bob": id, "ada": "nothing"} {
		if _, err := r.clientOf(user).Trajectory(t.Context(), id); !client.IsNotFound(err) {
			t.Errorf("%s sees %s: %v", user, id, err)
		}
	}
}

// A long log goes out whole, with its events in order.
func TestLongTrajectory(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{}`)
	text := strings.Repeat("x", 4<<10)
	for range 20 {
		many := make([]session.Payload, 100)
		for i := range many {
			many[i] = session.ModelAnswered{Text: text}
		}
		r.append(id, many...)
	}
	got, err := r.clientOf("ada").Trajectory(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	last, messages := int64(0), 0
	for _, raw := range got.Trajectory {
		var e api.LegacyEvent
		if err := json.Unmarshal(raw, &e); err != nil || e.ID <= last {
			t.Fatalf("%v: %d after %d", err, e.ID, last)
		}
		last = e.ID
		if e.Message == text {
			messages++
		}
	}
	if messages != 2000 {
		t.Errorf("%d messages of 2000", messages)
	}
}
