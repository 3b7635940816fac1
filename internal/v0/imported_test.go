package v0_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// importedCases are events of the legacy server's own: they are shown as they were.
func importedCases() []oneCase {
	event := `{"source":"user","message":"Hi,\nthere","action":"message","args":{"content":"Hi,\nthere","file_urls":null,"image_urls":null,"wait_for_response":false,"security_risk":-1}}`
	return []oneCase{
		{"imported", v0.Event, session.Imported{Event: json.RawMessage(event), Said: &session.UserSaid{Text: "Hi,\nthere"}}},
		{"imported_for_the_model_alone", v0.None, session.Imported{Returned: &session.ToolReturned{ID: "c", Outcome: session.Unknown}}},
		{"imported_nonsense", v0.None, session.Imported{Event: json.RawMessage(`[1]`)}},
	}
}

func past(t *testing.T, raw string) v0.Past {
	t.Helper()
	p, err := v0.ReadPast([]byte(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return p
}

// What older versions stored is spelt as the newest one spells it.
func TestReadPastSpeltAnew(t *testing.T) {
	for name, c := range map[string]struct{ give, want string }{
		"images":           {`{"id":1,"timestamp":"x","source":"user","action":"message","args":{"content":"a","images_urls":["b"]}}`, `{"source":"user","action":"message","args":{"content":"a","image_urls":["b"]}}`},
		"both names":       {`{"action":"message","args":{"images_urls":["old"],"image_urls":["new"]}}`, `{"action":"message","args":{"image_urls":["new"]}}`},
		"confirmation":     {`{"action":"run","args":{"is_confirmed":"rejected","command":"x"}}`, `{"action":"run","args":{"command":"x","confirmation_state":"rejected"}}`},
		"python of a read": {`{"action":"read","args":{"path":"a","translated_ipython_code":"print()"}}`, `{"action":"read","args":{"path":"a"}}`},
		"alone":            {`{"action":"read","args":{"images_urls":null}}`, `{"action":"read","args":{"image_urls":null}}`},
		"exit code": {`{"cause":4,"observation":"run","content":"x","extras":{"command_id":7,"command":"ls","exit_code":2}}`,
			`{"observation":"run","content":"x","extras":{"command":"ls","metadata":{"exit_code":2,"pid":7,"username":"","hostname":"","working_dir":"","py_interpreter_path":"","prefix":"","suffix":""}}}`},
		"new": {`{"observation":"run","content":"x","extras":{"exit_code":1,"metadata":{"exit_code":3}}}`, `{"observation":"run","content":"x","extras":{"exit_code":1,"metadata":{"exit_code":3}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(past(t, c.give).Event); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

const response = `"tool_call_metadata":{"function_name":"execute_bash","tool_call_id":"c1","total_calls_in_response":3,"model_response":{"id":"r1","choices":[{"message":{"content":"Let me look.",
 "tool_calls":[{"id":"c1","function":{"name":"execute_bash","arguments":"{\"command\":\"ls\"}"}},{"id":"c2","function":{"name":"think","arguments":"no json"}},{"id":"c3","function":{"name":"finish","arguments":"{}"}}]}}]}}`

func TestReadPastMeaning(t *testing.T) {
	call := past(t, `{"source":"agent","action":"run","args":{"command":"ls"},`+response+`}`).Made
	want := &v0.PastCall{ID: "c1", Answer: "r1", Text: "Let me look.", Calls: []session.ToolCall{
		{ID: "c1", Name: "execute_bash", Args: json.RawMessage(`{"command":"ls"}`)}, {ID: "c2", Name: "think", Args: json.RawMessage(`"no json"`)}}}
	if !reflect.DeepEqual(call, want) {
		t.Errorf("got %+v", call)
	}
	bare := past(t, `{"source":"agent","action":"run_ipython","args":{"code":"1+1","thought":"Add."}}`).Made
	if bare == nil || bare.Text != "Add." || len(bare.Calls) != 1 || bare.Calls[0].Name != "execute_ipython_cell" || string(bare.Calls[0].Args) != `{"code":"1+1"}` {
		t.Errorf("an action without its answer: %+v", bare)
	}
	for name, raw := range map[string]string{
		"waits for the person": `{"source":"agent","action":"run","args":{"command":"ls","confirmation_state":"awaiting_confirmation"},` + response + `}`,
		"the person's own":     `{"source":"user","action":"run","args":{"command":"ls"}}`,
		"system":               `{"source":"agent","action":"system","args":{"content":"You are"}}`,
		"an unknown action":    `{"source":"agent","action":"teleport","args":{}}`,
		"a change of state":    `{"source":"environment","action":"change_agent_state","args":{"agent_state":"running"}}`,
	} {
		if p := past(t, raw); p.Made != nil || p.Words != "" || p.Said != nil {
			t.Errorf("%s: it means something: %+v", name, p)
		}
	}
	ran := past(t, `{"cause":4,"observation":"run","content":"no","extras":{"command":"ls","metadata":{"exit_code":2,"working_dir":"/w"}},`+response+`}`)
	if ran.Cause != 4 || ran.Result.ID != "c1" || ran.Result.Outcome != session.FailedRun || !strings.Contains(ran.Result.Output, "exit code 2") || !strings.Contains(ran.Result.Output, "/w") || !strings.Contains(ran.Note, "(ls)") {
		t.Errorf("%+v %+v", ran, ran.Result)
	}
	recall := past(t, `{"observation":"recall","content":"","extras":{"repo_name":"octo/app","repo_instructions":"Use make.","conversation_instructions":"Be brief.","microagent_knowledge":[{"name":"docker","content":"No daemon."}]}}`)
	if recall.Instructions != "Be brief." || !strings.Contains(recall.Note, "Use make.") || !strings.Contains(recall.Note, "No daemon.") || strings.Contains(recall.Note, "brief") {
		t.Errorf("%+v", recall)
	}
	spent := past(t, `{"source":"agent","action":"message","args":{"content":"hi"},"llm_metrics":{"accumulated_cost":0.0132,"accumulated_token_usage":{"model":"m","prompt_tokens":5,"completion_tokens":2}}}`)
	if spent.Words != "hi" || spent.Spent == nil || *spent.Spent != (session.Totals{Cost: 13_200_000, Input: 5, Output: 2, Model: "m"}) {
		t.Errorf("%+v", spent.Spent)
	}
	said := past(t, `{"source":"user","action":"message","args":{"content":"look","image_urls":["data:image/png;base64,AA==","file:///etc/passwd"]}}`).Said
	if said == nil || !slices.Equal(said.Images, []string{"data:image/png;base64,AA=="}) {
		t.Errorf("%+v", said)
	}
	forgets := past(t, `{"source":"agent","action":"condensation","args":{"forgotten_events_start_id":5,"forgotten_events_end_id":70,"summary":"much"}}`).Forgets
	if forgets == nil || forgets.From != 5 || forgets.To != 70 || forgets.Summary != "much" {
		t.Errorf("%+v", forgets)
	}
}

func TestHiddenImports(t *testing.T) {
	for raw, want := range map[string]int64{
		`{"observation":"run","content":"","extras":{"hidden":true}}`: 9,
		`{"action":"run","args":{"hidden":true}}`:                     14,
		`{"action":"run","args":{"command":"\"hidden\":true"}}`:       0,
		`{"action":"run","args":{"x":{"hidden":true}}}`:               0,
	} {
		n, ok := v0.HiddenCall(session.Event{Number: 14, Payload: session.Imported{Event: json.RawMessage(raw), Cause: 9}})
		if n != want || ok != (want > 0) {
			t.Errorf("%s: %d %v", raw, n, ok)
		}
	}
}

// Whatever a file holds, it is refused or shown as one line of JSON.
func FuzzReadPast(f *testing.F) {
	f.Add(`{"source":"agent","action":"run","args":{"command":"ls"},` + response + `}`)
	f.Add(`{"observation":"run","extras":{"exit_code":1,"command_id":{}}}`)
	f.Add(`{"action":"edit","args":{"start":2}}`)
	f.Add(`{"action":"condensation","args":{"forgotten_event_ids":[1,2]}}`)
	f.Add(`{"action":"message","args":[]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := v0.ReadPast([]byte(raw))
		if err != nil {
			return
		}
		frame, err := v0.Encode(convo, session.Event{Number: 3, At: moment, Payload: session.Imported{Event: p.Event}})
		if err != nil || frame.Kind != v0.Event || !json.Valid(frame.JSON) || strings.ContainsAny(string(frame.JSON), "\r\n") {
			t.Fatalf("%v %v %s", err, frame.Kind, frame.JSON)
		}
		if p.Made != nil {
			for _, c := range p.Made.Calls {
				if c.Name == "" || !json.Valid(c.Args) {
					t.Fatalf("%+v", c)
				}
			}
		}
	})
}
