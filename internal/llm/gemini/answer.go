package gemini

import (
	"bytes"
	"crypto/rand"
	"encoding/json"

	"deckhand/internal/llm"
)

// answer is what came so far.
type answer struct {
	model  string
	window int64
	began  bool
	finish string
	// explained is what the provider said about the end.
	explained string
	blocked   string
	usage     *usage
	pieces    []piece
	ids       map[string]bool
}

// add takes in a chunk and returns what is new in it.
func (a *answer) add(c chunk) []llm.Part {
	a.began = true
	if c.Usage != nil {
		a.usage = c.Usage
	}
	if f := c.Feedback; f.BlockReason != "" {
		a.blocked, a.explained = f.BlockReason, f.BlockMessage
	}
	if len(c.Candidates) == 0 {
		return nil
	}
	first := c.Candidates[0]
	if first.FinishReason != "" {
		a.finish, a.explained = first.FinishReason, first.FinishMessage
	}
	if first.Content == nil {
		return nil
	}
	var parts []llm.Part
	for _, p := range first.Content.Parts {
		switch {
		case p == nil:
		case p.Call != nil:
			parts = append(parts, llm.Part{Call: a.called(p.Call)})
			a.pieces = append(a.pieces, piece{Call: true, Signature: p.Signature})
		case p.Thought:
			if p.Text != "" {
				parts = append(parts, llm.Part{Reasoning: p.Text})
			}
		default:
			a.wrote(p)
			if p.Text != "" {
				parts = append(parts, llm.Part{Text: p.Text})
			}
		}
	}
	return parts
}

// wrote remembers a piece of text. Pieces without a signature are one.
func (a *answer) wrote(p *part) {
	last := len(a.pieces) - 1
	grows := last >= 0 && !a.pieces[last].Call && a.pieces[last].Signature == nil
	switch {
	case grows && (p.Text == "" || p.Signature == nil):
		// A signature that comes alone, at the end, is for what came before it.
		a.pieces[last].Text += len(p.Text)
		a.pieces[last].Signature = p.Signature
	case p.Text != "":
		a.pieces = append(a.pieces, piece{Text: len(p.Text), Signature: p.Signature})
	}
}

// called is a call. Where the model gave it no id, or one that it gave before, it
// gets one that no other call has, in this answer or any other.
func (a *answer) called(f *functionCall) *llm.Call {
	c := &llm.Call{ID: f.ID, Name: f.Name, Args: arguments(f.Args)}
	if c.ID == "" || a.ids[c.ID] {
		c.ID = "call_" + rand.Text()
	}
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	a.ids[c.ID] = true
	return c
}

func arguments(args map[string]any) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage(`{}`)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)                 // commands are full of these characters, and people read them
	if err := e.Encode(args); err != nil { // cannot be: it was JSON before
		return json.RawMessage(`{}`)
	}
	return bytes.TrimSpace(b.Bytes())
}

func (a *answer) done() *llm.Done {
	d := &llm.Done{Cut: a.finish == "MAX_TOKENS", Raw: a.raw(), Usage: llm.Usage{Window: a.window}}
	if u := a.usage; u != nil {
		d.Usage.Input = int64(u.Prompt + u.ToolPrompt)
		d.Usage.Output = int64(u.Answer + u.Thoughts)
		d.Usage.CacheRead = int64(u.Cached)
	}
	return d
}

// from is how Done.Raw begins to be recognised.
const from = "gemini"

// raw is the content of Done.Raw: the order of an answer's pieces and their
// signatures. Texts and calls are in the message already.
type raw struct {
	From   string  `json:"from"`
	Model  string  `json:"model"`
	Pieces []piece `json:"pieces"`
}

// piece is one of them. Text is how many bytes of the message's text it is.
type piece struct {
	Text      int    `json:"text,omitempty"`
	Call      bool   `json:"call,omitempty"`
	Signature []byte `json:"signature,omitempty"`
}

// raw is what the API wants to see again. There is something only if it signed something.
func (a *answer) raw() json.RawMessage {
	signed := false
	for _, p := range a.pieces {
		signed = signed || p.Signature != nil
	}
	if !signed {
		return nil
	}
	b, err := json.Marshal(raw{From: from, Model: a.model, Pieces: a.pieces})
	if err != nil { // cannot be: it is made of texts and numbers
		return nil
	}
	return b
}

// remembered are the pieces of an answer that this model gave, if the message
// still is that answer.
func remembered(name string, msg llm.Message) ([]piece, bool) {
	var r raw
	if json.Unmarshal(msg.Raw, &r) != nil || r.From != from || r.Model != name {
		return nil, false
	}
	text, calls := 0, 0
	for _, p := range r.Pieces {
		if p.Text < 0 || p.Call && p.Text > 0 {
			return nil, false
		}
		text += p.Text
		if p.Call {
			calls++
		}
	}
	return r.Pieces, text == len(msg.Text) && calls == len(msg.Calls)
}
