package connect

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"deckhand/internal/llm"
)

// fit makes up for what a model lacks and its provider does not say.
func fit(m llm.Model, info llm.Info) llm.Model { return &fitted{model: m, info: info} }

type fitted struct {
	model llm.Model
	info  llm.Info
}

// Stream implements llm.Model.
func (f *fitted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	if !f.info.Images {
		req.Messages = blind(req.Messages)
	}
	return func(yield func(llm.Part, error) bool) {
		for p, err := range f.model.Stream(ctx, req) {
			if p.Done != nil && p.Done.Usage.Window == 0 {
				d := *p.Done
				d.Usage.Window = f.info.Window
				p.Done = &d
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// blind replaces images by words: a provider refuses a whole request for one that
// its model cannot see. The same messages give the same words each time, so that
// prefixes stay the same.
func blind(messages []llm.Message) []llm.Message {
	out := messages
	for i, m := range messages {
		if len(m.Images) == 0 {
			continue
		}
		if &out[0] == &messages[0] {
			out = slices.Clone(messages)
		}
		note := "[An image is attached here, but you cannot see images. Say so if it matters.]"
		if n := len(m.Images); n > 1 {
			note = fmt.Sprintf("[%d images are attached here, but you cannot see images. Say so if it matters.]", n)
		}
		if m.Text != "" {
			note = m.Text + "\n\n" + note
		}
		out[i].Text, out[i].Images = note, nil
	}
	return out
}
