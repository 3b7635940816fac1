package api

import "encoding/json"

// Trajectory is everything that happened in a conversation, to be kept or replayed.
type Trajectory struct {
	Trajectory []json.RawMessage `json:"trajectory" doc:"Events as docs/events.md describes them, without screenshots and what else a browser saw. The array, as a string, is what replay_json takes."`
}
