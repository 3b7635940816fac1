package v0_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

func TestJoinShows(t *testing.T) {
	join := v0.Join{End: 10, State: 7}
	for _, c := range []struct {
		name, frame string
		number      int64
		want        string // "" is nothing, "=" the frame itself
	}{
		{"a message", `{"id":3,"source":"user","message":"x","action":"message","args":{"source":"environment"}}`, 3, "="},
		{"a null action", `{"id":3,"source":"user","action":"null"}`, 3, ""},
		{"a null observation", `{"id":3,"source":"agent","observation":"null"}`, 3, ""},
		{"a new null action", `{"id":13,"source":"agent","action":"null"}`, 13, ""},
		{"a recall action", `{"id":3,"source":"user","action":"recall"}`, 3, "="},
		{"a recall observation", `{"id":3,"source":"agent","observation":"recall"}`, 3, "="},
		{"an old state", `{"id":3,"source":"environment","observation":"agent_state_changed","extras":{}}`, 3, ""},
		{"the last state", `{"id":7,"source":"environment","message":"a \"source\":\"environment\"","observation":"agent_state_changed","extras":{}}`, 7,
			`{"id":7,"source":"agent","message":"a \"source\":\"environment\"","observation":"agent_state_changed","extras":{}}`},
		{"a new state", `{"id":11,"source":"environment","observation":"agent_state_changed"}`, 11, `{"id":11,"source":"agent","observation":"agent_state_changed"}`},
		{"a run of the environment", `{"observation":"run", "source" : "environment" , "content":""}`, 4, `{"observation":"run", "source" : "agent" , "content":""}`},
		{"a recall of the environment", `{"source":"environment","observation":"recall"}`, 4, `{"source":"agent","observation":"recall"}`},
		{"an error of the environment", `{"source":"environment","observation":"error"}`, 14, `{"source":"agent","observation":"error"}`},
		{"another action of the environment", `{"source":"environment","action":"change_agent_state"}`, 4, "="},
		{"the agent's own", `{"source":"agent","observation":"run"}`, 4, "="},
		{"a status", `{"status_update":true,"type":"info","id":"STATUS$READY","message":"agent_state_changed"}`, 4, "="},
		{"a title", `{"status_update":true,"type":"info","message":"c","conversation_title":"t"}`, 4, "="},
		{"what is no string", `{"source":1,"action":null,"observation":{"a":[1]}}`, 4, "="},
		{"no object", `[]`, 4, "="},
		{"no JSON", `{"action"`, 4, "="},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.frame
			got, shown := join.Show(c.number, []byte(c.frame))
			want := c.want
			if want == "=" {
				want = c.frame
			}
			if shown != (want != "") || string(got) != want {
				t.Errorf("%t %s, want %s", shown, got, want)
			}
			if c.frame != before {
				t.Error("the frame, which others read too, was changed")
			}
		})
	}
}

// Whatever the encoder writes, the rules recognise.
func TestJoinKnowsOurFrames(t *testing.T) {
	for _, c := range allCases() {
		f, err := v0.Encode(convo, c.event())
		if err != nil || f.Kind == v0.None {
			continue
		}
		var e struct{ Observation, Action, Source string }
		if err := json.Unmarshal(f.JSON, &e); err != nil {
			t.Fatal(err)
		}
		state := e.Observation == "agent_state_changed"
		if v0.TellsState(f.JSON) != state {
			t.Errorf("%s: it tells a state: %t", c.name, !state)
		}
		if got, shown := (v0.Join{End: 99}).Show(14, f.JSON); shown == (state || e.Action == "null") {
			t.Errorf("%s: shown %t: %.200s", c.name, shown, got)
		}
		got, shown := v0.Join{End: 99, State: 14}.Show(14, f.JSON)
		if !shown && e.Action != "null" && e.Observation != "null" {
			t.Errorf("%s is not shown", c.name)
		}
		if shown && state {
			var a struct{ Source string }
			if json.Unmarshal(got, &a) != nil || a.Source != "agent" {
				t.Errorf("%s: %.200s", c.name, got)
			}
		}
	}
}

func TestProblem(t *testing.T) {
	if got := string(v0.Problem("no", "REQUEST$BAD")); got != `{"error":true,"message":"no","msg_id":"REQUEST$BAD"}` {
		t.Error(got)
	}
	if got := string(v0.Problem("a \"b\"\n", "")); got != `{"error":true,"message":"a \"b\"\n"}` {
		t.Error(got)
	}
}

func FuzzJoinShow(f *testing.F) {
	f.Add([]byte(`{"id":3,"source":"environment","observation":"agent_state_changed"}`))
	f.Add([]byte(`{"source":"environment","observation":"run","source":"user"}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		given := bytes.Clone(frame)
		got, shown := v0.Join{End: 9, State: 3}.Show(3, frame)
		if !bytes.Equal(given, frame) {
			t.Fatal("the frame was changed")
		}
		if shown && json.Valid(frame) && !json.Valid(got) {
			t.Fatalf("%q became %q", frame, got)
		}
	})
}

// A client with many sockets pays for what is read of each frame.
func BenchmarkJoinShow(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		frame, err := v0.Encode(convo, session.Event{Number: 14, At: moment, Payload: session.UserSaid{Text: string(bytes.Repeat([]byte("x"), size))}})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v0.Join{}.Show(14, frame.JSON)
			}
		})
	}
}
