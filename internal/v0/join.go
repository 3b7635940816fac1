package v0

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Join decides what a client that joins a conversation over Socket.IO is shown: first the
// history up to that point, then new events.
//
// Of the agent states in the history, only the last one is shown, because the others are
// over. It is shown in its place and not at the end, unlike the legacy server: a client
// that reconnects names the newest event it has, and would never learn of an earlier
// state.
type Join struct {
	// End is the number of the last event of the history.
	End int64
	// State is the number of the last state event in it, or 0.
	State int64
}

// Show returns what is sent for a stored frame; false for nothing. New and old frames are
// shown alike.
func (j Join) Show(number int64, frame []byte) ([]byte, bool) {
	h := headOf(frame)
	switch {
	case h.action == "null", h.observation == "null":
		return nil, false
	case h.observation == stateChanged && number <= j.End && number != j.State:
		return nil, false
	case h.source == fromEnvironment && asAgent[h.observation]:
		out := make([]byte, 0, len(frame))
		out = append(append(out, frame[:h.from]...), `"`+fromAgent+`"`...)
		return append(out, frame[h.to:]...), true
	}
	return frame, true
}

// TellsState reports whether a frame is a state change of the agent.
func TellsState(frame []byte) bool { return headOf(frame).observation == stateChanged }

const stateChanged = "agent_state_changed"

// asAgent are the observations of the environment that front ends expect from the agent.
var asAgent = map[string]bool{"run": true, stateChanged: true, "recall": true, "error": true}

// head identifies the kind of an event.
type head struct {
	action, observation, source string
	from, to                    int64 // where the source stands
}

// headOf reads no more than necessary, because long values come later. It is empty for a
// status.
func headOf(frame []byte) head {
	var h head
	d := jsontext.NewDecoder(bytes.NewBuffer(frame))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return h
	}
	for h.source == "" || h.action == "" && h.observation == "" {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			break
		}
		key := name.String() // valid until the next read
		if key != "action" && key != "observation" && key != "source" {
			if d.SkipValue() != nil {
				break
			}
			continue
		}
		v, err := d.ReadValue()
		if err != nil {
			break
		}
		switch s := text(v); key {
		case "action":
			h.action = s
		case "observation":
			h.observation = s
		default:
			h.source, h.to = s, d.InputOffset()
			h.from = h.to - int64(len(v))
		}
	}
	return h
}

// Problem returns the notice to a client whose request failed. code is machine-readable; "" omits it.
func Problem(message, code string) []byte {
	w := newWriter(64 + len(message) + len(code))
	w.Open("", '{')
	w.Flag("error", true)
	w.Str("message", message)
	if code != "" {
		w.Str("msg_id", code)
	}
	w.Shut('}')
	return w.B
}

// Why a message with images is rejected: images are disabled by the operator, or not
// supported by the model.
const (
	ImagesDisabled    = "Support for images is disabled for this model, so send the message without them."
	ImagesUnsupported = "Model does not support image upload, so choose another one or send the message without images."
)
