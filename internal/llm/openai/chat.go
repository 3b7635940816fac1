package openai

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/llm"
)

// chat is a model behind chat completions.
type chat struct{ wire }

// Chat returns the model with this name behind chat completions.
func Chat(c llm.Config, name string, o Options) llm.Model {
	return &chat{newWire(c, name, o, "/openai/deployments/"+name)}
}

// Stream implements llm.Model.
func (m *chat) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		ctx, abort := context.WithCancel(ctx)
		defer abort()
		ctx, sent := llm.Sending(ctx)
		a := &chatAnswer{answer: answer{wire: m.wire, ctx: ctx, sent: sent, yield: yield, calling: req.Calling}}
		if m.err != nil {
			a.fail(&llm.Error{Class: llm.ClassRequest, Message: m.err.Error()})
			return
		}
		for data, err := range m.frames(ctx, "chat/completions", m.body(req)) {
			var c chatChunk
			if err == nil {
				err = read(data, &c)
			}
			if err != nil {
				a.end(err)
				return
			}
			if !a.take(c) {
				return
			}
		}
		a.end(nil)
	}
}

// chatChunk is the used part of a chunk.
type chatChunk struct {
	head
	Choices []struct {
		Index        number    `json:"index"`
		Delta        chatDelta `json:"delta"`
		FinishReason text      `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Input   number `json:"prompt_tokens"`
		Output  number `json:"completion_tokens"`
		Details struct {
			CacheRead  number `json:"cached_tokens"`
			CacheWrite number `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// chatDelta is what a chunk adds to the response. Compatible servers add reasoning, each
// in its own field.
type chatDelta struct {
	Content          text             `json:"content"`
	Refusal          text             `json:"refusal"`
	Calls            []fragment       `json:"tool_calls"`
	ReasoningContent string           `json:"reasoning_content"`
	Reasoning        string           `json:"reasoning"`
	ReasoningDetails []jsontext.Value `json:"reasoning_details"`
}

// chatAnswer assembles a response.
type chatAnswer struct {
	answer
	calls   pieces
	thought strings.Builder
	field   string           // where the server writes what it thinks
	details []jsontext.Value // and the same in a form that it wants back
	reason  string           // why the answer ended, empty before its end
	closed  bool             // the chunk with the counts came, which is the last
	usage   llm.Usage
}

// take handles the next chunk and reports whether to continue.
func (a *chatAnswer) take(c chatChunk) bool {
	if u := c.Usage; u != nil {
		a.closed = len(c.Choices) == 0 // some count in every chunk
		a.usage = llm.Usage{
			Input:      int64(u.Input),
			Output:     int64(u.Output),
			CacheRead:  int64(u.Details.CacheRead),
			CacheWrite: int64(u.Details.CacheWrite),
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
			a.reason = string(choice.FinishReason)
		}
	}
	return true
}

func (a *chatAnswer) takeDelta(d chatDelta) bool {
	if thought := a.reasoning(d); thought != "" && !a.say(llm.Part{Reasoning: thought}) {
		return false
	}
	if said := string(d.Content + d.Refusal); said != "" && !a.say(llm.Part{Text: said}) {
		return false
	}
	for _, c := range d.Calls {
		a.began = true
		before := len(a.calls)
		a.calls.add(c)
		if len(a.calls) > before {
			a.call(string(c.Function.Name))
		}
	}
	return true
}

// reasoning returns the reasoning of a chunk.
func (a *chatAnswer) reasoning(d chatDelta) string {
	a.details = append(a.details, d.ReasoningDetails...)
	field, said := "reasoning_content", d.ReasoningContent
	if said == "" {
		field, said = "reasoning", d.Reasoning
	}
	if said != "" {
		a.field = field
		a.thought.WriteString(said)
	}
	return said
}

// end handles the end of the stream.
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

// chatKept is the Raw of a response: what the server needs to see again.
type chatKept struct {
	From   string                    `json:"from"`
	Model  string                    `json:"model"`
	Fields map[string]jsontext.Value `json:"fields,omitempty"`
	Calls  map[string]jsontext.Value `json:"calls,omitempty"`
}

const fromChat = "openai-chat"

// keep returns it. Some servers reject calls in a history without the reasoning that led
// to them.
func (a *chatAnswer) keep() json.RawMessage {
	k := chatKept{From: fromChat, Model: a.name, Fields: map[string]jsontext.Value{}, Calls: map[string]jsontext.Value{}}
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
