package v0

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Join decides what a client is shown that joins a conversation over Socket.IO: first
// the part that was there when it came, then what is new.
//
// Of the states of the agent in the first part only the last is told, for the others are
// over. It is told in its place and not after everything else, as the legacy server did:
// a client that is cut off names the newest event it has, and would never learn of a
// state that stands before it.
type Join struct {
	// End is the number of the last event of the first part.
	End int64
	// State is the number of the last event in it that tells a state, 0 if none does.
	State int64
}

// Show makes of a stored frame what travels; false if nothing does. Frames are shown
// alike whether they are new or not.
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

// TellsState reports whether a frame is about a state of the agent.
func TellsState(frame []byte) bool { return headOf(frame).observation == stateChanged }

const stateChanged = "agent_state_changed"

// asAgent are the observations of the environment that front ends look for among the agent's.
var asAgent = map[string]bool{"run": true, stateChanged: true, "recall": true, "error": true}

// head is what tells the kinds of events apart.
type head struct {
	action, observation, source string
	from, to                    int64 // where the source stands
}

// headOf reads no further than it must: what is long comes later. Of a status, which is
// no event, it finds nothing.
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
		key := name.String() // the token is good until the next read
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

// Problem is what a client is told when what it asked for cannot be done. code names the reason for machines; "" leaves it
// out.
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

// Why a message with images is refused: the operator said so, or the model is known to
// see none.
const (
	ImagesDisabled    = "Support for images is disabled for this model, so send the message without them."
	ImagesUnsupported = "Model does not support image upload, so choose another one or send the message without images."
)
