package v0

import (
	"bytes"
	"encoding/json"
	"time"

	"deckhand/internal/session"
)

// imported shows an event of the legacy server as it was, under its number here and
// at a time with a zone.
func imported(e session.Event, p session.Imported) Frame {
	kind := details[struct {
		Action      string `json:"action"`
		Observation string `json:"observation"`
	}](p.Event)
	if kind.Action == "" && kind.Observation == "" || kind.Action == "null" || kind.Observation == "null" {
		return Frame{} // no client was ever sent a null
	}
	w := newWriter(128 + len(p.Event))
	w.open("", '{')
	w.num("id", e.Number)
	w.key("timestamp")
	w.b = append(w.b, '"')
	w.b = e.At.In(time.UTC).AppendFormat(w.b, stamp)
	w.b = append(w.b, '"')
	if p.Cause > 0 {
		w.num("cause", p.Cause)
	}
	inner := newWriter(len(p.Event) + 8)
	inner.raw("e", p.Event) // on one line, in UTF-8
	w.b = append(w.b, ',')
	w.b = append(w.b, inner.b[len(`"e":{`):]...)
	return Frame{Kind: Event, JSON: w.b}
}

// hiddenImport is HiddenCall for what was taken over: both the hidden command and its
// result say so themselves.
func hiddenImport(number int64, p session.Imported) (int64, bool) {
	if !bytes.Contains(p.Event, []byte(`"hidden":true`)) {
		return 0, false
	}
	e := details[struct {
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

// Lost is the observation that stands for a result that nobody recorded, and the
// words with which the model is told.
func Lost() (event json.RawMessage, text string) {
	w := newWriter(384)
	w.open("", '{')
	w.str("source", fromAgent)
	w.str("message", textUnknown)
	w.observation("error", textUnknown, 0)
	w.str("error_id", errorUnknown)
	w.b = append(w.b, "}}"...)
	return w.b, textUnknown
}

// name writes a name that somebody else chose.
func (w *writer) name(k string) {
	w.comma()
	w.b = append(appendString(w.b, k), ':')
}
