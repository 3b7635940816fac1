package v0_test

import (
	"encoding/json"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// taken is an event of the legacy server's that has no counterpart here, and the
// event that caused it if it is an observation.
func taken(event string, cause int64) session.Imported {
	return session.Imported{Event: json.RawMessage(event), Cause: cause}
}

// legacyCases are the kinds that our agent never makes. They are only in conversations
// that were taken over, and clients that know them find them as they were.
func legacyCases() []oneCase {
	return []oneCase{
		{"legacy_write", v0.Event, taken(`{"source":"user","message":"Writing file: /workspace/notes.txt","action":"write",`+
			`"args":{"path":"/workspace/notes.txt","content":"one\n","start":0,"end":-1,"thought":"","security_risk":-1}}`, 0)},
		{"legacy_written", v0.Event, taken(`{"source":"agent","message":"I wrote to the file /workspace/notes.txt.","observation":"write","content":"","extras":{"path":"/workspace/notes.txt"}}`, 13)},
		{"legacy_run_hidden", v0.Event, taken(`{"source":"user","message":"Running command: pwd","action":"run","args":{"command":"pwd","is_input":false,"thought":"","blocking":true,`+
			`"is_static":false,"cwd":null,"hidden":true,"confirmation_state":"confirmed","security_risk":-1},"timeout":60}`, 0)},
		{"legacy_reject", v0.Event, taken(`{"source":"agent","message":"Task is rejected by the agent. Reason: no network","action":"reject","args":{"outputs":{"reason":"no network"},"thought":""}}`, 0)},
		{"legacy_recall", v0.Event, taken(`{"source":"user","message":"Retrieving content for: Fix the build","action":"recall",`+
			`"args":{"recall_type":"knowledge","query":"Fix the build","thought":""}}`, 0)},
		{"legacy_change_agent_state", v0.Event, taken(`{"source":"environment","message":"Agent state changed to paused","action":"change_agent_state","args":{"agent_state":"paused","thought":""}}`, 0)},
		{"legacy_success", v0.Event, taken(`{"source":"agent","message":"saved","observation":"success","content":"saved","extras":{}}`, 13)},
		{"legacy_condense", v0.Event, taken(`{"source":"agent","message":"So far: a README.","observation":"condense","content":"So far: a README.","extras":{}}`, 0)},
		{"legacy_download", v0.Event, taken(`{"source":"agent","message":"A file was downloaded.","observation":"download","content":"A file was downloaded.","extras":{"file_path":"/workspace/report.pdf"}}`, 13)},
		{"legacy_null_action", v0.None, taken(`{"source":"environment","message":"No action","action":"null","args":{}}`, 0)},
		{"legacy_null_observation", v0.None, taken(`{"source":"environment","observation":"null","content":"","extras":{}}`, 13)},
		{"legacy_error", v0.Event, taken(`{"source":"agent","message":"Missing argument","observation":"error","content":"Missing argument","extras":{"error_id":"AGENT_ERROR$BAD_ACTION"}}`, 13)},
	}
}
