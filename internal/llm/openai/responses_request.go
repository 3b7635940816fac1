package openai

import (
	"encoding/json"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"deckhand/internal/llm"
)

// params is a request as responses want it.
func (m *response) params(req llm.Request) sdk.ResponseNewParams {
	p := sdk.ResponseNewParams{
		Model: m.name,
		Store: param.NewOpt(false),
		Input: sdk.ResponseNewParamsInputUnion{OfInputItemList: m.input(req.Messages)},
	}
	if req.System != "" {
		p.Instructions = param.NewOpt(req.System)
	}
	if req.MaxOutput > 0 {
		p.MaxOutputTokens = param.NewOpt(req.MaxOutput)
	}
	if m.own && req.Conversation != "" {
		p.PromptCacheKey = param.NewOpt(req.Conversation)
	}
	if m.opts.Thinks { // models that do not think refuse these
		p.Include = []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}
		p.Reasoning = shared.ReasoningParam{Summary: shared.ReasoningSummaryAuto, Effort: shared.ReasoningEffort(m.opts.Effort)}
	}
	for _, t := range req.Tools {
		f := sdk.ToolParamOfFunction(t.Name, parameters(t.Schema), false)
		if t.Description != "" {
			f.OfFunction.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, f)
	}
	return p
}

func (m *response) input(messages []llm.Message) sdk.ResponseInputParam {
	var out sdk.ResponseInputParam
	for _, msg := range messages {
		switch msg.Role {
		case llm.User:
			if content := parts(msg); len(content) > 0 {
				out = append(out, sdk.ResponseInputItemParamOfMessage(content, sdk.EasyInputMessageRoleUser))
			}
		case llm.Assistant:
			out = append(out, m.assistant(msg)...)
		case llm.ToolResult:
			out = append(out, result(msg))
		}
	}
	return out
}

// parts is what a person said and shows.
func parts(msg llm.Message) sdk.ResponseInputMessageContentListParam {
	var out sdk.ResponseInputMessageContentListParam
	if msg.Text != "" {
		out = append(out, sdk.ResponseInputContentParamOfInputText(msg.Text))
	}
	for _, u := range msg.Images {
		image := sdk.ResponseInputContentParamOfInputImage(sdk.ResponseInputImageDetailAuto)
		image.OfInputImage.ImageURL = param.NewOpt(u)
		out = append(out, image)
	}
	return out
}

// assistant is what the model said before: its text and its calls, each after
// the thoughts that led to it.
func (m *response) assistant(msg llm.Message) []sdk.ResponseInputItemUnionParam {
	var kept responseKept
	if json.Unmarshal(msg.Raw, &kept) != nil || kept.From != fromResponses || kept.Model != m.name || !m.opts.Thinks {
		kept = responseKept{}
	}
	var out []sdk.ResponseInputItemUnionParam
	think := func(call string) {
		for _, t := range kept.Thoughts {
			if t.Call == call {
				out = append(out, param.Override[sdk.ResponseInputItemUnionParam](t.Item))
			}
		}
	}
	if msg.Text != "" {
		think("")
		out = append(out, sdk.ResponseInputItemParamOfMessage(msg.Text, sdk.EasyInputMessageRoleAssistant))
	}
	for _, c := range msg.Calls {
		think(c.ID)
		out = append(out, sdk.ResponseInputItemParamOfFunctionCall(sent(c.Args), c.ID, c.Name))
	}
	return out
}

// result is what a call gave.
func result(msg llm.Message) sdk.ResponseInputItemUnionParam {
	if len(msg.Images) == 0 {
		out := sdk.ResponseInputItemParamOfFunctionCallOutput(msg.Text)
		out.OfFunctionCallOutput.CallID = param.NewOpt(msg.Call)
		return out
	}
	var list sdk.ResponseFunctionCallOutputItemListParam
	if msg.Text != "" {
		list = append(list, sdk.ResponseFunctionCallOutputItemParamOfInputText(msg.Text))
	}
	for _, u := range msg.Images {
		image := &sdk.ResponseInputImageContentParam{ImageURL: param.NewOpt(u)}
		list = append(list, sdk.ResponseFunctionCallOutputItemUnionParam{OfInputImage: image})
	}
	out := sdk.ResponseInputItemParamOfFunctionCallOutput(list)
	out.OfFunctionCallOutput.CallID = param.NewOpt(msg.Call)
	return out
}
