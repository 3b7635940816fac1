// Package cassette records what was said between Deckhand and a model, and plays
// it again without one: for tests that want a real model's answers, and for
// looking into a conversation that went wrong. docs/cassettes.md has the format.
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

// Record gives a model whose calls are written to w, one line each, when they
// end. redact hides secrets in all that is written; nil hides nothing. A call
// whose recording cannot be written fails, since a recording with a hole in it
// cannot be played.
func Record(m llm.Model, w io.Writer, redact func(string) string) llm.Model {
	one := &tape{w: w}
	return &recorder{model: m, redact: redact, to: func(string) (*tape, error) { return one, nil }, tapes: map[string]*tape{}}
}

// tape is one recording that is being made.
type tape struct {
	w io.Writer
	// last is the request before, of which a line leaves out what is the same. The
	// first line leaves out nothing: there may be others before it in the file.
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
			if p.Done != nil || err != nil { // before anybody acts on it
				if lost := r.write(req, a); lost != nil {
					yield(llm.Part{}, lost)
					return
				}
				yield(p, err)
				return
			}
			if !yield(p, err) {
				a.Stopped = true
				_ = r.write(req, a) // nobody is there to be told
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
