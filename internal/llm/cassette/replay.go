package cassette

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"deckhand/internal/llm"
)

// maxLine is larger than any context window.
const maxLine = 64 << 20

// take is one recorded call.
type take struct {
	want   request // in normal form
	digest string
	answer answer
}

type player struct {
	redact func(string) string

	mu      sync.Mutex
	takes   []take
	next    int
	started bool
}

// Replay returns a model that responds with the recorded responses, in order. Each
// request must equal the recorded one; if not, the call fails with the first difference.
// The first request may be any recorded one, so that a conversation can be resumed.
// redact must be that of Record.
func Replay(r io.Reader, redact func(string) string) (llm.Model, error) {
	takes, err := read(r)
	if err != nil {
		return nil, err
	}
	return &player{takes: takes, redact: redact}, nil
}

// read reads a file and checks that it is complete.
func read(r io.Reader) ([]take, error) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	var takes []take
	var before request
	for n := 1; s.Scan(); n++ {
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		t, req, err := readLine(s.Bytes(), before)
		if err != nil {
			return nil, fmt.Errorf("line %d of the cassette: %w", n, err)
		}
		takes, before = append(takes, t), req
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("the cassette cannot be read: %w", err)
	}
	if len(takes) == 0 {
		return nil, errors.New("the cassette is empty")
	}
	return takes, nil
}

func readLine(b []byte, before request) (take, request, error) {
	var l line
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return take{}, before, fmt.Errorf("it is not what a recording has: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return take{}, before, errors.New("unexpected data after the JSON value")
	}
	if l.Version != version {
		return take{}, before, fmt.Errorf("its format is version %d, and this program plays version %d", l.Version, version)
	}
	if l.Keep < 0 || l.Keep > len(before.Messages) {
		return take{}, before, fmt.Errorf("it keeps %d messages of the %d before it; a line is missing", l.Keep, len(before.Messages))
	}
	req := before
	if l.System != nil {
		req.System = *l.System
	}
	if l.Tools != nil {
		req.Tools = *l.Tools
	}
	req.Messages = append(req.Messages[:l.Keep:l.Keep], l.Messages...)
	if err := l.answer.check(); err != nil {
		return take{}, before, err
	}
	t := take{want: req.normal(), digest: req.digest(), answer: l.answer}
	if l.Digest != "" && l.Digest != t.digest {
		return take{}, before, errors.New("its request was changed since; take out its digest if that is meant")
	}
	return t, req, nil
}

// check makes sure that the response ends exactly once.
func (a answer) check() error {
	ends := 0
	for i, p := range a.Parts {
		if p.Done != nil {
			ends++
			if i != len(a.Parts)-1 {
				return errors.New("its answer goes on after its end")
			}
		}
	}
	if a.Error != nil {
		ends++
	}
	if a.Stopped {
		ends++
	}
	if ends != 1 {
		return errors.New("its answer needs one end: a part that is done, an error, or stopped")
	}
	return nil
}

// Stream implements llm.Model.
func (p *player) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		a, err := p.find(essentials(req, p.redact).normal())
		if err != nil {
			yield(llm.Part{}, err)
			return
		}
		for _, x := range a.Parts {
			if err := ctx.Err(); err != nil {
				yield(llm.Part{}, err)
				return
			}
			if !yield(x.part(), nil) {
				return
			}
		}
		switch {
		case a.Error != nil:
			yield(llm.Part{}, a.Error.err())
		case a.Stopped: // aborted in the recording, too
			<-ctx.Done()
			yield(llm.Part{}, ctx.Err())
		}
	}
}

// find returns the next response if the request matches.
func (p *player) find(got request) (answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		for i, t := range p.takes {
			if same(t.want, got) {
				p.next = i
				break
			}
		}
	}
	if p.next >= len(p.takes) {
		return answer{}, &llm.Error{Class: llm.ClassRequest, Unsent: true, Message: fmt.Sprintf("the cassette has ended: it holds %d calls, and this is one more", len(p.takes))}
	}
	t := p.takes[p.next]
	if d := difference(t.want, got); d != "" {
		return answer{}, &llm.Error{Class: llm.ClassRequest, Unsent: true, Message: fmt.Sprintf("call %d is not what was recorded: %s", p.next+1, d)}
	}
	p.started = true
	p.next++
	return t.answer, nil
}

func (f *failure) err() error {
	if f.Class == "" {
		return errors.New(f.Message)
	}
	return &llm.Error{Class: f.Class, Message: f.Message, RetryAfter: f.RetryAfter, Began: f.Began, Unsent: f.Unsent}
}
