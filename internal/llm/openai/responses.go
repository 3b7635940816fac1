package openai

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/llm"
)

// response is a model behind responses.
type response struct{ wire }

// Responses returns the model with this name behind responses. Nothing is stored at the
// provider: reasoning is sent back with the history, encrypted.
func Responses(c llm.Config, name string, o Options) llm.Model {
	return &response{newWire(c, name, o, "/openai/v1")}
}

// Stream implements llm.Model.
func (m *response) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		ctx, abort := context.WithCancel(ctx)
		defer abort()
		ctx, sent := llm.Sending(ctx)
		a := &responseAnswer{answer: answer{wire: m.wire, ctx: ctx, sent: sent, yield: yield, calling: req.Calling}}
		if m.err != nil {
			a.fail(&llm.Error{Class: llm.ClassRequest, Message: m.err.Error()})
			return
		}
		for data, err := range m.frames(ctx, "responses", m.body(req)) {
			var e responseEvent
			if err == nil {
				err = read(data, &e)
			}
			if err != nil {
				a.fail(a.classify(err, a.began))
				return
			}
			if !a.take(e) {
				return
			}
		}
		a.fail(a.cut(a.began))
	}
}

// responseEvent is the used part of an event, for all types.
type responseEvent struct {
	head
	Type         text         `json:"type"`
	Delta        text         `json:"delta"`
	SummaryIndex number       `json:"summary_index"`
	Message      text         `json:"message"`
	Code         text         `json:"code"`
	Item         responseItem `json:"item"`
	Response     outcome      `json:"response"`
}

// responseItem is an item of a response: a message, a call or reasoning.
type responseItem struct {
	Type      text           `json:"type"`
	ID        text           `json:"id"`
	CallID    text           `json:"call_id"`
	Name      text           `json:"name"`
	Arguments text           `json:"arguments"`
	Summary   jsontext.Value `json:"summary"`
	Encrypted text           `json:"encrypted_content"`
}

// outcome is the response at its end.
type outcome struct {
	Error struct {
		Message text `json:"message"`
		Code    text `json:"code"`
	} `json:"error"`
	Incomplete struct {
		Reason text `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input   number `json:"input_tokens"`
		Output  number `json:"output_tokens"`
		Details struct {
			CacheRead  number `json:"cached_tokens"`
			CacheWrite number `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

// responseAnswer assembles a response.
type responseAnswer struct {
	answer
	thoughts []thought
	waiting  []jsontext.Value // reasoning whose item has not arrived yet
	seen     map[string]bool  // ids of calls
}

// take handles the next event and reports whether to continue.
func (a *responseAnswer) take(e responseEvent) bool {
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		return e.Delta == "" || a.say(llm.Part{Text: string(e.Delta)})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return e.Delta == "" || a.say(llm.Part{Reasoning: string(e.Delta)})
	case "response.reasoning_summary_part.added":
		return e.SummaryIndex == 0 || a.say(llm.Part{Reasoning: "\n\n"})
	case "response.output_item.added":
		a.began = true
		if e.Item.Type == "function_call" {
			a.call(string(e.Item.Name))
		}
	case "response.output_item.done":
		return a.item(e.Item)
	case "response.completed", "response.incomplete":
		a.end(e.Response)
		return false
	case "response.failed":
		a.refuse(e.Response.Error.Message, e.Response.Error.Code)
		return false
	case "error":
		a.refuse(e.Message, e.Code)
		return false
	}
	return true
}

// refuse ends the response with an error in the stream.
func (a *responseAnswer) refuse(message, code text) {
	said := refusalText{message: string(message), code: string(code)}
	if said.message == "" {
		said.message = "the provider failed without a reason"
	}
	a.fail(&llm.Error{Class: said.class(0), Message: a.clean(said.message), Began: a.began})
}

// item handles a complete item.
func (a *responseAnswer) item(item responseItem) bool {
	switch item.Type {
	case "reasoning":
		if item.Encrypted != "" {
			t := sealed{Type: "reasoning", ID: string(item.ID), Summary: item.Summary, Encrypted: string(item.Encrypted)}
			if raw, err := json.Marshal(t); err == nil {
				a.waiting = append(a.waiting, raw)
			}
		}
	case "message":
		a.follows("")
	case "function_call":
		id := string(item.CallID)
		if id == "" || a.seen[id] {
			id = newID()
		}
		if a.seen == nil {
			a.seen = map[string]bool{}
		}
		a.seen[id] = true
		a.follows(id)
		return a.say(llm.Part{Call: &llm.Call{ID: id, Name: string(item.Name), Args: whole(string(item.Arguments))}})
	}
	return true
}

// end handles the end of the response.
func (a *responseAnswer) end(r outcome) {
	why := r.Incomplete.Reason
	if why == "content_filter" {
		a.fail(&llm.Error{Class: llm.ClassPolicy, Message: "the provider's content filter stopped the answer", Began: true})
		return
	}
	u := r.Usage
	a.say(llm.Part{Done: &llm.Done{
		Usage: llm.Usage{
			Input:      int64(u.Input),
			Output:     int64(u.Output),
			CacheRead:  int64(u.Details.CacheRead),
			CacheWrite: int64(u.Details.CacheWrite),
			Window:     a.opts.Window,
		},
		Cut: why == "max_output_tokens",
		Raw: a.keep(),
	}})
}

// sealed is a reasoning item as it is sent back.
type sealed struct {
	Type      string         `json:"type"`
	ID        string         `json:"id"`
	Summary   jsontext.Value `json:"summary"`
	Encrypted string         `json:"encrypted_content"`
}

// thought is a reasoning item and its result: a call, or the text if Call is empty. The
// provider rejects one without the other.
type thought struct {
	Call string         `json:"call,omitempty"`
	Item jsontext.Value `json:"item"`
}

// follows assigns pending reasoning to its result.
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
