package conversations

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestToldOfEvents(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"source":"agent","action":"run","args":{"command":"make","thought":"Build it."}}`: "The agent (run): Build it.\nmake",
		`{"source":"agent","observation":"run","content":"done","extras":{"hidden":false}}`: "The result (run): done",
		`{"source":"user","action":"message","args":{"content":"hi"}}`:                      "The user (message): hi",
		`{"source":"agent","action":"finish","message":"All done.","args":{}}`:              "The agent (finish): All done.",
		`{"source":"agent","action":"finish","args":{"final_thought":"It works."}}`:         "The agent (finish): It works.",
		`{"source":"agent","action":"run","args":{"command":"secret","hidden":true}}`:       "",
		`{"source":"agent","observation":"run","content":"x","extras":{"hidden":true}}`:     "",
		`{"source":"environment","observation":"agent_state_changed","content":""}`:         "",
		`{"source":"agent","action":"system","args":{"content":"You are"}}`:                 "",
		`{"source":"environment","observation":"null","content":""}`:                        "",
		`[]`: "",
	} {
		if got := told(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %q", raw, got)
		}
	}
	if got := told(json.RawMessage(`{"source":"user","action":"message","args":{"content":"` + strings.Repeat("é", 5000) + `"}}`)); len([]rune(got)) > rememberText+50 {
		t.Errorf("%d characters", len([]rune(got)))
	}
}
