package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"deckhand/internal/llm"
)

// conversation is the history as the API wants it: user and assistant take
// turns, results come first in the message after their calls, and nothing is empty.
func (m *model) conversation(history []llm.Message) []sdk.MessageParam {
	var out []sdk.MessageParam
	for _, msg := range history {
		role, blocks := sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion(nil)
		switch msg.Role {
		case llm.Assistant:
			role, blocks = sdk.MessageParamRoleAssistant, m.said(msg)
		case llm.ToolResult:
			blocks = []sdk.ContentBlockParamUnion{result(msg)}
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
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	return out
}

// shown is what a person said.
func shown(msg llm.Message) []sdk.ContentBlockParamUnion {
	var blocks []sdk.ContentBlockParamUnion
	if strings.TrimSpace(msg.Text) != "" {
		blocks = append(blocks, sdk.NewTextBlock(msg.Text))
	}
	for _, url := range msg.Images {
		if mediaType, data, ok := llm.SplitDataURL(url); ok {
			blocks = append(blocks, sdk.NewImageBlockBase64(mediaType, data))
			continue
		}
		blocks = append(blocks, sdk.NewTextBlock(unreadable))
	}
	return blocks
}

// unreadable stands for an image that is not a data: URL.
const unreadable = "[There was an image here that could not be read.]"

// result is the result of a call.
func result(msg llm.Message) sdk.ContentBlockParamUnion {
	r := sdk.ToolResultBlockParam{ToolUseID: msg.Call}
	if msg.Failed {
		r.IsError = sdk.Bool(true)
	}
	for _, b := range shown(msg) {
		r.Content = append(r.Content, sdk.ToolResultBlockParamContentUnion{OfText: b.OfText, OfImage: b.OfImage})
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &r}
}

// said is what the model said. Where it thought, its blocks come in the order
// in which it wrote them.
func (m *model) said(msg llm.Message) []sdk.ContentBlockParamUnion {
	var blocks []sdk.ContentBlockParamUnion
	text := func(s string) {
		if strings.TrimSpace(s) != "" {
			blocks = append(blocks, sdk.NewTextBlock(s))
		}
	}
	left, calls := msg.Text, msg.Calls
	for _, r := range m.remembered(msg) {
		switch {
		case r.Redacted != "":
			blocks = append(blocks, sdk.NewRedactedThinkingBlock(r.Redacted))
		case r.Signature != "":
			blocks = append(blocks, sdk.NewThinkingBlock(r.Signature, r.Thinking))
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
func toolUse(c llm.Call) sdk.ContentBlockParamUnion {
	input := c.Args
	if !bytes.HasPrefix(input, []byte("{")) || !json.Valid(input) {
		wrapped, err := json.Marshal(map[string]string{"not_an_object": string(input)})
		if err != nil { // cannot be: a text is always JSON
			wrapped = []byte(`{}`)
		}
		input = wrapped
	}
	return sdk.NewToolUseBlock(c.ID, input, c.Name)
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
