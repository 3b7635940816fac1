package openai

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/llm"
)

// pieces are the calls of an answer while their fragments come in, in the order
// in which they began.
type pieces []*piece

type piece struct {
	index number
	id    string
	name  string
	args  strings.Builder
	extra jsontext.Value // what the provider wants to see again with the call
}

// fragment is a piece of a call, as the wire has it.
type fragment struct {
	Index    number `json:"index"`
	ID       text   `json:"id"`
	Function struct {
		Name      text `json:"name"`
		Arguments text `json:"arguments"`
	} `json:"function"`
	Extra jsontext.Value `json:"extra_content"`
}

// add takes a fragment. Fragments belong together by their index; servers that
// send none begin a call with each new id.
func (p *pieces) add(d fragment) {
	at := p.find(d)
	if d.ID != "" {
		at.id = string(d.ID)
	}
	if at.name == "" { // some repeat it in every fragment
		at.name = string(d.Function.Name)
	}
	at.args.WriteString(string(d.Function.Arguments))
	if len(d.Extra) > 0 && d.Extra.Kind() != 'n' {
		at.extra = d.Extra
	}
}

func (p *pieces) find(d fragment) *piece {
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
func (at *piece) another(d fragment) bool {
	if d.ID != "" && at.id != "" {
		return string(d.ID) != at.id
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
