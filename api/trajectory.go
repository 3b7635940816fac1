package api

import "encoding/json"

// Trajectory is everything that happened in a conversation, to be kept or replayed.
type Trajectory struct {
	Trajectory []json.RawMessage `json:"trajectory" doc:"Events as described in docs/events.md, without screenshots and other browser content. Send the array as a string in replay_json to replay it."`
}
