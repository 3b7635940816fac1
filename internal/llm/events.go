package llm

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// longestEvent is the maximum size of an event's data and of a line, in bytes. More ends
// the stream with bufio.ErrTooLong.
const longestEvent = 32 << 20

// Event is a server-sent event. Each line of its data ends with a newline.
type Event struct {
	Type string
	Data []byte
}

// Events reads server-sent events until the stream ends, which is not an error. An
// incomplete event at the end is dropped.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, longestEvent)
		var e Event
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				if (e.Type != "" || len(e.Data) > 0) && !yield(e, nil) {
					return
				}
				e = Event{} // with data of its own: readers may keep it
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			if len(value) > 0 && value[0] == ' ' {
				value = value[1:]
			}
			switch string(name) {
			case "event":
				e.Type = string(value)
			case "data":
				if len(e.Data)+len(value) >= longestEvent {
					yield(Event{}, bufio.ErrTooLong)
					return
				}
				e.Data = append(append(e.Data, value...), '\n')
			}
		}
		if err := lines.Err(); err != nil {
			yield(Event{}, err)
		}
	}
}
