package openai

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"deckhand/internal/llm"
)

// chat is a model reached over chat completions.
type chat struct {
	wire
	service sdk.ChatCompletionService
}

// Chat reaches the model of this name over chat completions.
func Chat(c llm.Config, name string, o Options) llm.Model {
	w := newWire(c, name, o, "/openai/deployments/"+name)
	return &chat{wire: w, service: sdk.NewChatCompletionService(w.request...)}
}

// Stream implements llm.Model.
func (m *chat) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		ctx, abort := context.WithCancel(ctx)
		defer abort()
		ctx, sent := llm.Sending(ctx)
		a := &chatAnswer{answer: answer{wire: m.wire, ctx: ctx, sent: sent, yield: yield}}
		if m.err != nil {
			a.fail(&llm.Error{Class: llm.ClassRequest, Message: m.err.Error()})
			return
		}
		stream := m.service.NewStreaming(ctx, m.params(req))
		defer stream.Close()
		for stream.Next() {
			if !a.take(stream.Current()) {
				return
			}
		}
		a.end(stream.Err())
	}
}

// chatAnswer puts an answer together.
type chatAnswer struct {
	answer
	calls   pieces
	thought strings.Builder
	field   string            // where the server writes what it thinks
	details []json.RawMessage // and the same in a form that it wants back
	reason  string            // why the answer ended, empty before its end
	closed  bool              // the chunk with the counts came, which is the last
	usage   llm.Usage
}

// take takes the next chunk, and reports whether to go on.
func (a *chatAnswer) take(c sdk.ChatCompletionChunk) bool {
	if c.JSON.Usage.Valid() {
		a.closed = len(c.Choices) == 0 // some count in every chunk
		a.usage = llm.Usage{
			Input:      c.Usage.PromptTokens,
			Output:     c.Usage.CompletionTokens,
			CacheRead:  c.Usage.PromptTokensDetails.CachedTokens,
			CacheWrite: c.Usage.PromptTokensDetails.CacheWriteTokens,
		}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if !a.takeDelta(choice.Delta) {
			return false
		}
		if choice.FinishReason != "" {
			a.reason = choice.FinishReason
		}
	}
	return true
}

func (a *chatAnswer) takeDelta(d sdk.ChatCompletionChunkChoiceDelta) bool {
	if text := a.reasoning(d); text != "" && !a.say(llm.Part{Reasoning: text}) {
		return false
	}
	if text := d.Content + d.Refusal; text != "" && !a.say(llm.Part{Text: text}) {
		return false
	}
	for _, c := range d.ToolCalls {
		a.began = true
		a.calls.add(c)
	}
	return true
}

// reasoning is what compatible servers add to OpenAI's wire, each in its own field.
func (a *chatAnswer) reasoning(d sdk.ChatCompletionChunkChoiceDelta) string {
	var details []json.RawMessage
	if json.Unmarshal([]byte(d.JSON.ExtraFields["reasoning_details"].Raw()), &details) == nil {
		a.details = append(a.details, details...)
	}
	for _, field := range []string{"reasoning_content", "reasoning"} {
		var text string
		if json.Unmarshal([]byte(d.JSON.ExtraFields[field].Raw()), &text) == nil && text != "" {
			a.field = field
			a.thought.WriteString(text)
			return text
		}
	}
	return ""
}

// end says what comes after the last chunk.
func (a *chatAnswer) end(err error) {
	switch {
	case a.reason == "" && err != nil:
		a.fail(a.classify(err, a.began))
		return
	case a.reason == "" && !a.closed:
		a.fail(a.cut(a.began))
		return
	case a.reason == "content_filter":
		a.fail(&llm.Error{Class: llm.ClassPolicy, Message: "the provider's content filter stopped the answer", Began: true})
		return
	}
	for _, c := range a.calls.calls() {
		if !a.say(llm.Part{Call: &c}) {
			return
		}
	}
	a.usage.Window = a.opts.Window
	a.say(llm.Part{Done: &llm.Done{Usage: a.usage, Cut: a.reason == "length", Raw: a.keep()}})
}

// chatKept is the Raw of an answer: what the server wants to see again.
type chatKept struct {
	From   string                     `json:"from"`
	Model  string                     `json:"model"`
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
	Calls  map[string]json.RawMessage `json:"calls,omitempty"`
}

const fromChat = "openai-chat"

// keep collects it. Some servers refuse calls in a history without the reasoning
// that led to them.
func (a *chatAnswer) keep() json.RawMessage {
	k := chatKept{From: fromChat, Model: a.name, Fields: map[string]json.RawMessage{}, Calls: map[string]json.RawMessage{}}
	if len(a.calls) > 0 && a.thought.Len() > 0 {
		k.Fields[a.field], _ = json.Marshal(a.thought.String())
	}
	if len(a.details) > 0 {
		k.Fields["reasoning_details"], _ = json.Marshal(a.details)
	}
	for _, c := range a.calls {
		if c.extra != nil {
			k.Calls[c.id] = c.extra
		}
	}
	if len(k.Fields)+len(k.Calls) == 0 {
		return nil
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return nil
	}
	return raw
}
