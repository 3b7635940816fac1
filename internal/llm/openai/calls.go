package openai

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"deckhand/internal/llm"
)

// pieces are the calls of an answer while their fragments come in, in the order
// in which they began.
type pieces []*piece

type piece struct {
	index int64
	id    string
	name  string
	args  strings.Builder
	extra json.RawMessage // what the provider wants to see again with the call
}

// add takes a fragment. Fragments belong together by their index; servers that
// send none begin a call with each new id.
func (p *pieces) add(d sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	at := p.find(d)
	if d.ID != "" {
		at.id = d.ID
	}
	if at.name == "" { // some repeat it in every fragment
		at.name = d.Function.Name
	}
	at.args.WriteString(d.Function.Arguments)
	if f, ok := d.JSON.ExtraFields["extra_content"]; ok && f.Raw() != "null" {
		at.extra = json.RawMessage(f.Raw())
	}
}

func (p *pieces) find(d sdk.ChatCompletionChunkChoiceDeltaToolCall) *piece {
	for _, at := range slices.Backward(*p) {
		if at.index == d.Index {
			if at.another(d) {
				break
			}
			return at
		}
	}
	at := &piece{index: d.Index}
	*p = append(*p, at)
	return at
}

// another reports that a fragment with the index of a call is not of that call:
// servers that do not count send one whole call after the other under index 0.
func (at *piece) another(d sdk.ChatCompletionChunkChoiceDeltaToolCall) bool {
	if d.ID != "" && at.id != "" {
		return d.ID != at.id
	}
	return d.Function.Name != "" && at.name != "" &&
		isObject([]byte(d.Function.Arguments)) && isObject([]byte(at.args.String()))
}

// calls are the whole calls, each with an id of its own.
func (p pieces) calls() []llm.Call {
	seen := map[string]bool{}
	calls := make([]llm.Call, 0, len(p))
	for _, at := range p {
		if at.name == "" && at.args.Len() == 0 {
			continue
		}
		if at.id == "" || seen[at.id] {
			at.id = newID()
		}
		seen[at.id] = true
		calls = append(calls, llm.Call{ID: at.id, Name: at.name, Args: whole(at.args.String())})
	}
	return calls
}

// newID makes up the id of a call.
func newID() string { return "call_" + rand.Text() }
