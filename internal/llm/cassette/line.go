package cassette

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"deckhand/internal/llm"
)

// version is that of the format.
const version = 1

// line is one call in a file.
type line struct {
	Version int    `json:"v"`
	Digest  string `json:"digest,omitempty"`
	// System and Tools are left out when they are those of the line before; Keep
	// is how many messages are.
	System   *string   `json:"system,omitempty"`
	Tools    *[]tool   `json:"tools,omitempty"`
	Keep     int       `json:"keep,omitempty"`
	Messages []message `json:"messages,omitempty"`
	answer
}

// request is what of a request must be the same when it is played.
type request struct {
	System   string    `json:"system"`
	Tools    []tool    `json:"tools"`
	Messages []message `json:"messages"`
}

type tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      string `json:"schema,omitempty"`
}

type message struct {
	Role   llm.Role `json:"role"`
	Text   string   `json:"text,omitempty"`
	Images []string `json:"images,omitempty"` // digests
	Calls  []call   `json:"calls,omitempty"`
	Call   string   `json:"call,omitempty"`
	Name   string   `json:"name,omitempty"`
	Failed bool     `json:"failed,omitempty"`
}

type call struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// answer is what came back.
type answer struct {
	Parts []part   `json:"parts,omitempty"`
	Error *failure `json:"error,omitempty"`
	// Stopped says that we did not wait for the end.
	Stopped bool `json:"stopped,omitempty"`
}

type part struct {
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Call      *call  `json:"call,omitempty"`
	Done      *done  `json:"done,omitempty"`
}

type done struct {
	Input      int64           `json:"input,omitempty"`
	Output     int64           `json:"output,omitempty"`
	CacheRead  int64           `json:"cache_read,omitempty"`
	CacheWrite int64           `json:"cache_write,omitempty"`
	Window     int64           `json:"window,omitempty"`
	Cut        bool            `json:"cut,omitempty"`
	Raw        json.RawMessage `json:"raw,omitempty"`
}

type failure struct {
	Class      llm.Class     `json:"class,omitempty"`
	Message    string        `json:"message"`
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
	Began      bool          `json:"began,omitempty"`
	Unsent     bool          `json:"unsent,omitempty"`
}

// essentials reduces a request to what is compared, without its secrets.
func essentials(req llm.Request, redact func(string) string) request {
	hide := hider(redact)
	out := request{System: hide(req.System), Tools: []tool{}}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, tool{Name: hide(t.Name), Description: hide(t.Description), Schema: hide(canonical(t.Schema))})
	}
	for _, m := range req.Messages {
		c := message{Role: m.Role, Text: hide(m.Text), Call: hide(m.Call), Name: hide(m.Name), Failed: m.Failed}
		for _, i := range m.Images {
			sum := sha256.Sum256([]byte(i))
			c.Images = append(c.Images, "sha256:"+hex.EncodeToString(sum[:8]))
		}
		for _, x := range m.Calls {
			c.Calls = append(c.Calls, call{hide(x.ID), hide(x.Name), hideJSON(json.RawMessage(canonical(x.Args)), hide)})
		}
		out.Messages = append(out.Messages, c)
	}
	return out
}

// digest is a fingerprint of the normal form, so that two recordings of the same
// conversation have the same.
func (r request) digest() string {
	sum := sha256.Sum256(encode(r.normal()))
	return hex.EncodeToString(sum[:8])
}

func partOf(p llm.Part) part {
	out := part{Text: p.Text, Reasoning: p.Reasoning}
	if p.Call != nil {
		out.Call = &call{p.Call.ID, p.Call.Name, p.Call.Args}
	}
	if d := p.Done; d != nil {
		u := d.Usage
		out.Done = &done{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Window, d.Cut, d.Raw}
	}
	return out
}

func (p part) part() llm.Part {
	out := llm.Part{Text: p.Text, Reasoning: p.Reasoning}
	if p.Call != nil {
		out.Call = &llm.Call{ID: p.Call.ID, Name: p.Call.Name, Args: p.Call.Args}
	}
	if d := p.Done; d != nil {
		out.Done = &llm.Done{Usage: llm.Usage{Input: d.Input, Output: d.Output, CacheRead: d.CacheRead, CacheWrite: d.CacheWrite, Window: d.Window}, Cut: d.Cut, Raw: d.Raw}
	}
	return out
}

// hidden is the answer without secrets. Fragments are joined first, for a secret
// may be cut in two by them.
func (a answer) hidden(redact func(string) string) answer {
	hide := hider(redact)
	out := answer{Stopped: a.Stopped}
	if a.Error != nil {
		e := *a.Error
		e.Message = hide(e.Message)
		out.Error = &e
	}
	out.Parts = hideParts(a.Parts, hide)
	return out
}

// hideParts leaves the fragments as they came when nothing in them is hidden.
func hideParts(parts []part, hide func(string) string) []part {
	var out []part
	for i := 0; i < len(parts); {
		end, text, reasoning := i, "", ""
		for end < len(parts) && parts[end].kind() == parts[i].kind() && parts[i].kind() != 0 {
			text, reasoning = text+parts[end].Text, reasoning+parts[end].Reasoning
			end++
		}
		switch hidText, hidReasoning := hide(text), hide(reasoning); {
		case end == i:
			out = append(out, parts[i].hidden(hide))
			end++
		case hidText == text && hidReasoning == reasoning:
			out = append(out, parts[i:end]...)
		default:
			out = append(out, part{Text: hidText, Reasoning: hidReasoning})
		}
		i = end
	}
	return out
}

// kind tells text from reasoning; all else is 0.
func (p part) kind() int {
	switch {
	case p.Call != nil || p.Done != nil:
		return 0
	case p.Reasoning != "":
		return 1
	}
	return 2
}

func (p part) hidden(hide func(string) string) part {
	if p.Call != nil {
		c := *p.Call
		c.Args = hideJSON(c.Args, hide)
		p.Call = &c
	}
	if p.Done != nil {
		d := *p.Done
		d.Raw = hideJSON(d.Raw, hide)
		p.Done = &d
	}
	return p
}

// hideJSON keeps what it hides secrets in valid, or drops it.
func hideJSON(b json.RawMessage, hide func(string) string) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	if out := json.RawMessage(hide(string(b))); json.Valid(out) {
		return json.RawMessage(encode(out))
	}
	return json.RawMessage("null")
}

// canonical writes JSON in one way; what is none stays as it is.
func canonical(b json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return string(b)
	}
	return string(encode(v))
}

// encode writes JSON on one line, readable where the standard library would escape
// for web pages. What is encoded here cannot fail to be.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// hider makes texts such that they are the same after they were written and read.
func hider(redact func(string) string) func(string) string {
	return func(s string) string {
		if redact != nil {
			s = redact(s)
		}
		return strings.ToValidUTF8(s, "\ufffd")
	}
}
