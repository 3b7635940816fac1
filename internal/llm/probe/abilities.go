package probe

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"deckhand/internal/llm"
)

// note is a tool that does nothing.
var note = llm.Tool{Name: "note", Description: "Notes a word. It changes nothing.",
	Schema: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string","description":"The word."}},"required":["word"]}`)}

// useTools finds out whether the model calls tools, and several at once.
func (p *prober) useTools(ctx context.Context) {
	r := p.ask(ctx, llm.Request{Tools: []llm.Tool{note}, Messages: []llm.Message{{Role: llm.User,
		Text: "Call the tool note twice in one answer: once with the word apple and once with the word pear. Say nothing else."}}})
	good := 0
	for _, c := range r.calls {
		var args struct{ Word string }
		if c.Name == note.Name && json.Unmarshal(c.Args, &args) == nil && args.Word != "" {
			good++
		}
	}
	how := "natively"
	if !p.info.Tools {
		how = "described in its instructions, and written as text"
	}
	switch {
	case good > 1:
		p.usable = true
		p.add(Tools, &yes, "The model calls tools (%s), several at once.", how)
	case good == 1:
		p.usable = true
		p.add(Tools, &yes, "The model calls tools (%s), one at a time.", how)
	case r.err != nil && passing(r.err):
		p.usable = true // nothing says that it cannot
		p.add(Tools, nil, "Unknown: %s", explain(r.err))
	case r.err != nil:
		p.add(Tools, &no, "The model does not support tools, which agents need: %s%s", explain(r.err), p.instead())
	case len(r.calls) > 0:
		p.add(Tools, &no, "The model calls tools with invalid arguments. Agents cannot use it.")
	default:
		p.add(Tools, &no, "The model did not call the requested tool. Agents cannot use it.%s", p.instead())
	}
}

// instead is what to do about a model without native tools.
func (p *prober) instead() string {
	if !p.info.Tools {
		return ""
	}
	return " If the model has no native tool calling, set tools: text for it in the config file, under models."
}

// passing reports failures that say nothing about the model.
func passing(err error) bool {
	var e *llm.Error
	return errors.Is(err, context.Canceled) || errors.As(err, &e) && (e.Retry() || e.Class == llm.ClassCredit)
}

// red is a picture of 16 by 16 red pixels.
const red = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg=="

// picture is red as a message has it.
func picture() string { return "data:image/png;base64," + red }

// look finds out whether the model sees what it is shown.
func (p *prober) look(ctx context.Context) {
	if !p.info.Images {
		p.add(Images, nil, "Not tested: the model is not known to support images. If it does, set images: true for it in the config file, under models.")
		return
	}
	r := p.ask(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "What colour is this picture? Answer with one word.", Images: []string{picture()}}}})
	switch {
	case r.err != nil && passing(r.err):
		p.add(Images, nil, "Unknown: %s", explain(r.err))
	case r.err != nil:
		p.add(Images, &no, "The model does not support images: %s", explain(r.err))
	case strings.Contains(strings.ToLower(r.text), "red"):
		p.add(Images, &yes, "The model supports images.")
	case r.text == "" || r.cut:
		p.add(Images, nil, "Unknown: the model did not describe the image.")
	default:
		p.add(Images, &no, "The model accepts images, but did not recognise a red one.")
	}
}
