package openai

import (
	"encoding/json"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"deckhand/internal/llm"
)

// params is a request as chat completions want it.
func (m *chat) params(req llm.Request) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{
		Model:           m.name,
		Messages:        m.messages(req),
		StreamOptions:   sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
		ReasoningEffort: shared.ReasoningEffort(m.opts.Effort),
		Stop:            sdk.ChatCompletionNewParamsStopUnion{OfStringArray: req.Stop},
	}
	switch {
	case req.MaxOutput <= 0:
	case m.opts.Compatible:
		p.MaxTokens = param.NewOpt(req.MaxOutput)
	default:
		p.MaxCompletionTokens = param.NewOpt(req.MaxOutput)
	}
	if m.own && req.Conversation != "" {
		p.PromptCacheKey = param.NewOpt(req.Conversation)
	}
	for _, t := range req.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: parameters(t.Schema)}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	return p
}

func (m *chat) messages(req llm.Request) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	if req.System != "" {
		out = append(out, sdk.SystemMessage(req.System))
	}
	// Images of results: a tool message has no place for them, and nobody may
	// speak between two results.
	var shown []sdk.ChatCompletionContentPartUnionParam
	for _, msg := range req.Messages {
		if msg.Role == llm.ToolResult {
			out = append(out, sdk.ToolMessage(msg.Text, msg.Call))
			if len(msg.Images) > 0 {
				shown = append(shown, sdk.TextContentPart("Images from the result of "+msg.Name+" (call "+msg.Call+"):"))
				shown = append(shown, images(msg.Images)...)
			}
			continue
		}
		if shown != nil {
			out = append(out, sdk.UserMessage(shown))
			shown = nil
		}
		switch {
		case msg.Role == llm.Assistant && (msg.Text != "" || len(msg.Calls) > 0):
			out = append(out, m.assistant(msg))
		case msg.Role == llm.User && len(msg.Images) > 0:
			var parts []sdk.ChatCompletionContentPartUnionParam
			if msg.Text != "" {
				parts = append(parts, sdk.TextContentPart(msg.Text))
			}
			out = append(out, sdk.UserMessage(append(parts, images(msg.Images)...)))
		case msg.Role == llm.User && msg.Text != "":
			out = append(out, sdk.UserMessage(msg.Text))
		}
	}
	if shown != nil {
		out = append(out, sdk.UserMessage(shown))
	}
	return out
}

func images(urls []string) []sdk.ChatCompletionContentPartUnionParam {
	var parts []sdk.ChatCompletionContentPartUnionParam
	for _, u := range urls {
		parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: u}))
	}
	return parts
}

// assistant is what the model said before, with what its server wants to see again.
func (m *chat) assistant(msg llm.Message) sdk.ChatCompletionMessageParamUnion {
	var kept chatKept
	if json.Unmarshal(msg.Raw, &kept) != nil || kept.From != fromChat || kept.Model != m.name {
		kept = chatKept{}
	}
	out := &sdk.ChatCompletionAssistantMessageParam{}
	if msg.Text != "" {
		out.Content.OfString = param.NewOpt(msg.Text)
	}
	for _, c := range msg.Calls {
		call := &sdk.ChatCompletionMessageFunctionToolCallParam{ID: c.ID}
		call.Function.Name, call.Function.Arguments = c.Name, sent(c.Args)
		if extra, ok := kept.Calls[c.ID]; ok {
			call.SetExtraFields(map[string]any{"extra_content": extra})
		}
		out.ToolCalls = append(out.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
	}
	if len(kept.Fields) > 0 {
		fields := map[string]any{}
		for name, value := range kept.Fields {
			fields[name] = value
		}
		out.SetExtraFields(fields)
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: out}
}
