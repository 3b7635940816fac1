package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"deckhand/internal/llm"
)

// messages writes the history, of which what was written before is kept. It reports whether
// the model may think now: a chain of tool calls that began without it, with another model
// perhaps, must end without it.
func (m *model) messages(b *llm.Body, history []llm.Message) (begun bool) {
	added := m.conversation(history, b.Messages())
	final := mark(added)
	chain := b.Note
	for i, msg := range added {
		if i == final {
			b.Note = chain
			b.Keep(msg.first)
		}
		b.Item("")
		b.Encode(msg)
		chain = msg.chain(chain)
	}
	return chain != unthought
}

// mark says what to keep in the cache: what is there so far. The mark on the message before the
// last is where the request before had its own, and finds what that one kept. final is how many
// messages come before both marks: later messages neither move into them nor mark them.
func mark(messages []message) (final int) {
	marks := 2
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != roleUser {
			continue
		}
		switch last := messages[i].Content[len(messages[i].Content)-1].(type) {
		case *textBlock:
			last.Cache = ephemeral
		case *imageBlock:
			last.Cache = ephemeral
		case *resultBlock:
			last.Cache = ephemeral
		}
		if marks--; marks == 0 {
			return i
		}
	}
	return 0
}

// How the chain of tool calls at the end of a history began; "" if it has no answer yet.
const (
	thought   = "with thinking"
	unthought = "without thinking"
)

// chain is how the chain began that the history with this message ends with. before is the same
// without the message.
func (msg message) chain(before string) string {
	began := unthought
	switch msg.Content[0].(type) {
	case *resultBlock:
		return before
	case *thinkingBlock, *redactedBlock:
		began = thought
	}
	switch {
	case msg.Role == roleUser:
		return ""
	case before == "":
		return began
	}
	return before
}

// conversation is the history from a message on as the API wants it: user and assistant take
// turns, results come first in the message after their calls, and nothing is empty.
func (m *model) conversation(history []llm.Message, first int) []message {
	var out []message
	for i, msg := range history[first:] {
		role, blocks := roleUser, []any(nil)
		switch msg.Role {
		case llm.Assistant:
			role, blocks = roleAssistant, m.said(msg)
		case llm.ToolResult:
			blocks = []any{result(msg)}
		default:
			blocks = shown(msg)
		}
		if len(blocks) == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Content = append(out[last].Content, blocks...)
			continue
		}
		out = append(out, message{Role: role, Content: blocks, first: first + i})
	}
	return out
}

// shown is what a person said.
func shown(msg llm.Message) []any {
	var blocks []any
	if strings.TrimSpace(msg.Text) != "" {
		blocks = append(blocks, newText(msg.Text))
	}
	for _, url := range msg.Images {
		if mediaType, data, ok := llm.SplitDataURL(url); ok {
			blocks = append(blocks, &imageBlock{Source: imageSource{Data: data, MediaType: mediaType, Type: "base64"}, Type: "image"})
			continue
		}
		blocks = append(blocks, newText(unreadable))
	}
	return blocks
}

// unreadable stands for an image that is not a data: URL.
const unreadable = "[There was an image here that could not be read.]"

// result is the result of a call.
func result(msg llm.Message) *resultBlock {
	return &resultBlock{Call: msg.Call, Failed: msg.Failed, Content: shown(msg), Type: "tool_result"}
}

// said is what the model said. Where it thought, its blocks come in the order
// in which it wrote them.
func (m *model) said(msg llm.Message) []any {
	var blocks []any
	text := func(s string) {
		if strings.TrimSpace(s) != "" {
			blocks = append(blocks, newText(s))
		}
	}
	left, calls := msg.Text, msg.Calls
	for _, r := range m.remembered(msg) {
		switch {
		case r.Redacted != "":
			blocks = append(blocks, &redactedBlock{Data: r.Redacted, Type: "redacted_thinking"})
		case r.Signature != "":
			blocks = append(blocks, &thinkingBlock{Signature: r.Signature, Thinking: r.Thinking, Type: "thinking"})
		case r.Call && len(calls) > 0:
			blocks = append(blocks, toolUse(calls[0]))
			calls = calls[1:]
		default:
			text(left[:r.Text])
			left = left[r.Text:]
		}
	}
	text(left)
	for _, c := range calls {
		blocks = append(blocks, toolUse(c))
	}
	return blocks
}

// toolUse is a call. What was not an object is wrapped, for the API takes only objects.
func toolUse(c llm.Call) *callBlock {
	input := c.Args
	if !bytes.HasPrefix(input, []byte("{")) || !json.Valid(input) {
		wrapped, err := json.Marshal(map[string]string{"not_an_object": string(input)})
		if err != nil { // cannot be: a text is always JSON
			wrapped = []byte(`{}`)
		}
		input = wrapped
	}
	return &callBlock{ID: c.ID, Input: input, Name: c.Name, Type: "tool_use"}
}

// from is how Done.Raw begins to be recognised.
const from = "anthropic"

// raw is the content of Done.Raw: the order of an answer's blocks, and the
// thinking among them. Texts and calls are in the message already.
type raw struct {
	From   string  `json:"from"`
	Model  string  `json:"model"`
	Blocks []block `json:"blocks"`
}

// block is one of them. Text is how many bytes of the message's text it is.
type block struct {
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
	Text      int    `json:"text,omitempty"`
	Call      bool   `json:"call,omitempty"`
}

// remembered are the blocks of an answer that this model gave, if the message
// still is that answer.
func (m *model) remembered(msg llm.Message) []block {
	var r raw
	if json.Unmarshal(msg.Raw, &r) != nil || r.From != from || r.Model != m.name {
		return nil
	}
	text, calls := 0, 0
	for _, b := range r.Blocks {
		if b.Text < 0 {
			return nil
		}
		text += b.Text
		if b.Call {
			calls++
		}
	}
	if text != len(msg.Text) || calls != len(msg.Calls) {
		return nil
	}
	return r.Blocks
}
