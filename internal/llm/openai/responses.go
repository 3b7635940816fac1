package openai

import (
	"context"
	"encoding/json"
	"iter"

	sdk "github.com/openai/openai-go/v3/responses"

	"deckhand/internal/llm"
)

// response is a model reached over responses.
type response struct {
	wire
	service sdk.ResponseService
}

// Responses reaches the model of this name over responses. Nothing is stored at
// the provider: what the model thought travels with the history, sealed.
func Responses(c llm.Config, name string, o Options) llm.Model {
	w := newWire(c, name, o, "/openai/v1")
	return &response{wire: w, service: sdk.NewResponseService(w.request...)}
}

// Stream implements llm.Model.
func (m *response) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		ctx, abort := context.WithCancel(ctx)
		defer abort()
		ctx, sent := llm.Sending(ctx)
		a := &responseAnswer{answer: answer{wire: m.wire, ctx: ctx, sent: sent, yield: yield}}
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
		if err := stream.Err(); err != nil {
			a.fail(a.classify(err, a.began))
			return
		}
		a.fail(a.cut(a.began))
	}
}

// responseAnswer puts an answer together.
type responseAnswer struct {
	answer
	thoughts []thought
	waiting  []json.RawMessage // thoughts whose item has not come yet
	seen     map[string]bool   // ids of calls
}

// take takes the next event, and reports whether to go on.
func (a *responseAnswer) take(e sdk.ResponseStreamEventUnion) bool {
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		return e.Delta == "" || a.say(llm.Part{Text: e.Delta})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return e.Delta == "" || a.say(llm.Part{Reasoning: e.Delta})
	case "response.reasoning_summary_part.added":
		return e.SummaryIndex == 0 || a.say(llm.Part{Reasoning: "\n\n"})
	case "response.output_item.added":
		a.began = true
	case "response.output_item.done":
		return a.item(e.Item)
	case "response.completed", "response.incomplete":
		a.end(e.Response)
		return false
	case "response.failed":
		said := refusalText{message: e.Response.Error.Message, code: string(e.Response.Error.Code)}
		a.refuse(said)
		return false
	case "error":
		a.refuse(refusalText{message: e.Message, code: e.Code})
		return false
	}
	return true
}

// refuse ends the answer with what the provider said inside the stream.
func (a *responseAnswer) refuse(said refusalText) {
	if said.message == "" {
		said.message = "the provider failed and did not say why"
	}
	a.fail(&llm.Error{Class: said.class(0), Message: a.clean(said.message), Began: a.began})
}

// item takes an item that is whole.
func (a *responseAnswer) item(item sdk.ResponseOutputItemUnion) bool {
	switch item.Type {
	case "reasoning":
		var t sealed
		if json.Unmarshal([]byte(item.RawJSON()), &t) == nil && t.Encrypted != "" {
			if raw, err := json.Marshal(t); err == nil {
				a.waiting = append(a.waiting, raw)
			}
		}
	case "message":
		a.follows("")
	case "function_call":
		call := item.AsFunctionCall()
		if call.CallID == "" || a.seen[call.CallID] {
			call.CallID = newID()
		}
		if a.seen == nil {
			a.seen = map[string]bool{}
		}
		a.seen[call.CallID] = true
		a.follows(call.CallID)
		return a.say(llm.Part{Call: &llm.Call{ID: call.CallID, Name: call.Name, Args: whole(call.Arguments)}})
	}
	return true
}

// end says what comes after the last item.
func (a *responseAnswer) end(r sdk.Response) {
	why := r.IncompleteDetails.Reason
	if why == "content_filter" {
		a.fail(&llm.Error{Class: llm.ClassPolicy, Message: "the provider's content filter stopped the answer", Began: true})
		return
	}
	u := r.Usage
	a.say(llm.Part{Done: &llm.Done{
		Usage: llm.Usage{
			Input:      u.InputTokens,
			Output:     u.OutputTokens,
			CacheRead:  u.InputTokensDetails.CachedTokens,
			CacheWrite: u.InputTokensDetails.CacheWriteTokens,
			Window:     a.opts.Window,
		},
		Cut: why == "max_output_tokens",
		Raw: a.keep(),
	}})
}

// sealed is a reasoning item as it is sent back.
type sealed struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

// thought is a reasoning item and what it led to: a call, or the text if Call is
// empty. The provider refuses one without the other.
type thought struct {
	Call string          `json:"call,omitempty"`
	Item json.RawMessage `json:"item"`
}

// follows says to what the thoughts that wait have led.
func (a *responseAnswer) follows(call string) {
	for _, item := range a.waiting {
		a.thoughts = append(a.thoughts, thought{Call: call, Item: item})
	}
	a.waiting = nil
}

// responseKept is the Raw of an answer.
type responseKept struct {
	From     string    `json:"from"`
	Model    string    `json:"model"`
	Thoughts []thought `json:"thoughts"`
}

const fromResponses = "openai-responses"

func (a *responseAnswer) keep() json.RawMessage {
	if len(a.thoughts) == 0 {
		return nil
	}
	raw, err := json.Marshal(responseKept{From: fromResponses, Model: a.name, Thoughts: a.thoughts})
	if err != nil {
		return nil
	}
	return raw
}
