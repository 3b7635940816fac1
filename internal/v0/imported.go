package v0

import (
	"bytes"
	"encoding/json"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/v0/form"
)

// imported shows an event of the legacy server unchanged, except for its number and a
// time with a zone.
func imported(e session.Event, p session.Imported) Frame {
	kind := form.Details[struct {
		Action      string `json:"action"`
		Observation string `json:"observation"`
	}](p.Event)
	if kind.Action == "" && kind.Observation == "" || kind.Action == "null" || kind.Observation == "null" {
		return Frame{} // clients never get a null
	}
	w := newWriter(128 + len(p.Event))
	w.Open("", '{')
	w.Num("id", e.Number)
	w.Key("timestamp")
	w.B = append(w.B, '"')
	w.B = e.At.In(time.UTC).AppendFormat(w.B, form.Stamp)
	w.B = append(w.B, '"')
	if p.Cause > 0 {
		w.Num("cause", p.Cause)
	}
	inner := newWriter(len(p.Event) + 8)
	inner.Raw("e", p.Event) // on one line, in UTF-8
	w.B = append(w.B, ',')
	w.B = append(w.B, inner.B[len(`"e":{`):]...)
	return Frame{Kind: Event, JSON: w.B}
}

// hiddenImport is HiddenCall for imported events: both the hidden command and its result
// have the flag.
func hiddenImport(number int64, p session.Imported) (int64, bool) {
	if !bytes.Contains(p.Event, []byte(`"hidden":true`)) {
		return 0, false
	}
	e := form.Details[struct {
		Args   struct{ Hidden bool } `json:"args"`
		Extras struct{ Hidden bool } `json:"extras"`
	}](p.Event)
	switch {
	case e.Args.Hidden:
		return number, true
	case e.Extras.Hidden:
		return p.Cause, true
	}
	return 0, false
}

// Lost returns the observation that replaces a result that was not recorded, and its text
// for the model.
func Lost() (event json.RawMessage, text string) {
	w := newWriter(384)
	w.Open("", '{')
	w.Str("source", fromAgent)
	w.Str("message", textUnknown)
	w.Observation("error", textUnknown, 0)
	w.Str("error_id", errorUnknown)
	w.B = append(w.B, "}}"...)
	return w.B, textUnknown
}
