package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"

	"deckhand/internal/llm"
)

// wire is one provider's format. The server does what all have in common:
// it waits, breaks, counts and keeps the requests.
type wire interface {
	// serves reports whether a path, without a query, is this wire's.
	serves(path string) bool
	// read understands a request: Wire, Model, Stream, System, Messages and Tools
	// of Asked. The server sets the rest. An error is answered with status 400.
	read(r *http.Request, body []byte) (Asked, error)
	// stream is the streamed answer to a request, frame by frame.
	stream(a Asked, r Reply) []frame
	// whole is the body of the answer to a request that wants it at once.
	whole(a Asked, r Reply) []byte
	// failure is the body of an error: Status, Code and Message of the reply. An
	// empty Code is the one that the provider usually has with the status.
	failure(r Reply) []byte
	// late is an error inside a stream that began well.
	late(r Reply) frame
}

// wires are the formats that the server speaks.
var wires = []wire{
	chatWire{},
	responsesWire{},
	anthropicWire{},
	geminiWire{},
}

// frame is an event of a stream. Event may be empty: not all wires name them.
type frame struct {
	event string
	data  []byte
}

// jsonFrame is a frame with a value in it.
func jsonFrame(event string, v any) frame { return frame{event, mustJSON(v)} }

// mustJSON encodes what this package made up itself.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("llmtest: %v", err))
	}
	return b
}

// fragments cuts a text into pieces of about Fragment bytes, never inside a
// character. An empty text has none.
func (r Reply) fragments(text string) []string {
	size := r.Fragment
	if size <= 0 {
		size = 8
	}
	parts := make([]string, 0, len(text)/size+1)
	for len(text) > size {
		n := size
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		parts = append(parts, text[:n])
		text = text[n:]
	}
	if text != "" {
		parts = append(parts, text)
	}
	return parts
}

// usage is what the reply says, and for what it does not say four bytes are a token.
func (r Reply) usage(a Asked) llm.Usage {
	u := r.Usage
	if u.Input == 0 {
		u.Input = u.CacheRead + u.CacheWrite + int64(len(a.Body)/4) + 1
	}
	if u.Output == 0 {
		n := len(r.Text) + len(r.Reasoning)
		for _, c := range r.Calls {
			n += len(c.Name) + len(c.Args)
		}
		u.Output = int64(n/4) + 1
	}
	return u
}

// args are the arguments of a call as a model writes them: a JSON string that
// stands for something else than JSON is written as what it stands for.
func args(c llm.Call) string {
	var text string
	if json.Unmarshal(c.Args, &text) == nil {
		return text
	}
	return string(c.Args)
}
