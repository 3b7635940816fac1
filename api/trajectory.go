package api

import "encoding/json"

// Trajectory is all events of a conversation, to archive or replay.
type Trajectory struct {
	Trajectory []json.RawMessage `json:"trajectory" doc:"Events as described in docs/events.md, without screenshots and other browser content. Send the array as a string in replay_json to replay it."`
}
