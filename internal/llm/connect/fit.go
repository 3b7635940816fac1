package connect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"deckhand/internal/llm"
)

// fit makes up for what a model lacks and its provider does not say. strict says
// that the provider refuses ids of calls that are not like its own.
func fit(m llm.Model, info llm.Info, strict bool) llm.Model {
	return &fitted{model: m, info: info, strict: strict}
}

type fitted struct {
	model  llm.Model
	info   llm.Info
	strict bool
}

// Stream implements llm.Model.
func (f *fitted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	req.Messages = acceptable(req.Messages, f.strict, req.Written)
	if f.strict {
		req.Fitted += "/strict"
	}
	if !f.info.Images {
		req.Messages = blind(req.Messages, "you cannot see images")
		req.Fitted += "/blind"
	}
	return func(yield func(llm.Part, error) bool) {
		for p, err := range f.model.Stream(ctx, req) {
			if refusesImages(req, err) {
				req.Messages = blind(req.Messages, "the provider of the model refused it")
				req.Written = nil
				f.pass(f.model.Stream(ctx, req), yield)
				return
			}
			if !yield(f.windowed(p), err) {
				return
			}
		}
	}
}

func (f *fitted) pass(parts iter.Seq2[llm.Part, error], yield func(llm.Part, error) bool) {
	for p, err := range parts {
		if !yield(f.windowed(p), err) {
			return
		}
	}
}

// windowed adds the size of the window to the end of an answer.
func (f *fitted) windowed(p llm.Part) llm.Part {
	if p.Done != nil && p.Done.Usage.Window == 0 {
		d := *p.Done
		d.Usage.Window = f.info.Window
		p.Done = &d
	}
	return p
}

// refusesImages reports that a request was refused for an image in it: one that
// is damaged, or has too many pixels. It stays in the history, so every later
// request would be refused too. Asking once more without images is another
// request, not a retry; the refused one was not worked on and costs nothing.
func refusesImages(req llm.Request, err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Class == llm.ClassRequest && !e.Began && strings.Contains(strings.ToLower(e.Message), "image") &&
		slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return len(m.Images) > 0 })
}

// blind replaces images by words: a provider refuses a whole request for one that
// its model cannot see. The same messages give the same words each time, so that
// prefixes stay the same.
func blind(messages []llm.Message, why string) []llm.Message {
	out := messages
	for i, m := range messages {
		if len(m.Images) == 0 {
			continue
		}
		if &out[0] == &messages[0] {
			out = slices.Clone(messages)
		}
		note := "[An image is attached here, but " + why + ". Say so if it matters.]"
		if n := len(m.Images); n > 1 {
			note = fmt.Sprintf("[%d images are attached here, but %s. Say so if it matters.]", n, strings.Replace(why, "refused it", "refused them", 1))
		}
		if m.Text != "" {
			note = m.Text + "\n\n" + note
		}
		out[i].Text, out[i].Images = note, nil
	}
	return out
}
