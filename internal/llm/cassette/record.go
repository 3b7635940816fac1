// Package cassette records model calls and replays them without a model: for tests with
// real responses, and for debugging conversations. docs/cassettes.md describes the
// format.
package cassette

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"deckhand/internal/llm"
)

// Record returns a model whose calls are written to w, one line each, when they end.
// redact hides secrets in the recording; nil hides nothing. If a call cannot be recorded,
// it fails, because an incomplete recording cannot be replayed.
func Record(m llm.Model, w io.Writer, redact func(string) string) llm.Model {
	one := &tape{w: w}
	return &recorder{model: m, redact: redact, to: func(string) (*tape, error) { return one, nil }, tapes: map[string]*tape{}}
}

// tape is a recording in progress.
type tape struct {
	w io.Writer
	// last is the previous request; a line omits what is unchanged. The first line omits
	// nothing, because the file may have earlier lines.
	last  request
	begun bool
}

type recorder struct {
	model  llm.Model
	redact func(string) string
	// to opens the tape of a conversation.
	to func(conversation string) (*tape, error)

	mu    sync.Mutex
	tapes map[string]*tape
}

// Stream implements llm.Model.
func (r *recorder) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		var a answer
		for p, err := range r.model.Stream(ctx, req) {
			switch {
			case err != nil && ctx.Err() != nil:
				a.Stopped = true
			case err != nil:
				a.Error = failed(err)
			default:
				a.Parts = append(a.Parts, partOf(p))
			}
			if p.Done != nil || err != nil { // before the consumer acts on it
				if lost := r.write(req, a); lost != nil {
					yield(llm.Part{}, lost)
					return
				}
				yield(p, err)
				return
			}
			if !yield(p, err) {
				a.Stopped = true
				_ = r.write(req, a) // the consumer has stopped
				return
			}
		}
	}
}

func (r *recorder) write(req llm.Request, a answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tapes[req.Conversation]
	if t == nil {
		var err error
		if t, err = r.to(req.Conversation); err != nil {
			return err
		}
		r.tapes[req.Conversation] = t
	}
	next := t.line(essentials(req, r.redact), a.hidden(r.redact))
	if _, err := t.w.Write(append(encode(next), '\n')); err != nil {
		return &llm.Error{Class: llm.ClassRequest, Message: "the call could not be recorded: " + err.Error()}
	}
	return nil
}

// line is what is written of a call.
func (t *tape) line(req request, a answer) line {
	l := line{Version: version, Digest: req.digest(), answer: a}
	if req.System != t.last.System || !t.begun {
		l.System = &req.System
	}
	if !same(req.Tools, t.last.Tools) || !t.begun {
		l.Tools = &req.Tools
	}
	for l.Keep < min(len(req.Messages), len(t.last.Messages)) && same(req.Messages[l.Keep], t.last.Messages[l.Keep]) {
		l.Keep++
	}
	l.Messages = req.Messages[l.Keep:]
	t.last, t.begun = req, true
	return l
}

func same(a, b any) bool { return bytes.Equal(encode(a), encode(b)) }

// failed is an error as it is kept.
func failed(err error) *failure {
	var e *llm.Error
	if !errors.As(err, &e) {
		return &failure{Message: err.Error()}
	}
	return &failure{Class: e.Class, Message: e.Message, RetryAfter: e.RetryAfter, Began: e.Began, Unsent: e.Unsent}
}
