package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"deckhand/bench/history"
	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/load"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/session"
	"deckhand/internal/store/sqlite"
)

// parts are the floor of a turn: what no turn can do without, done by itself
// with the same store, the same model and the same kind of sandbox.
type parts struct {
	ctx      context.Context
	db       *sqlite.DB
	books    []*history.Book
	commits  int // that a turn makes
	model    llm.Model
	requests []llm.Request // that a turn makes
	boxes    []*sandbox.Sandbox
	close    func()
}

// parts prepares the floor for n callers. The requests are those of the
// server's first turn.
func (b *bench) parts(n, commits int) (*parts, error) {
	p := &parts{ctx: b.ctx, commits: commits, close: func() {}}
	err := errors.Join(p.openModel(b.model), p.openStore(b, n), p.openBoxes(b, n))
	if err != nil {
		p.close()
	}
	return p, err
}

// also adds something to what close does.
func (p *parts) also(end func()) {
	before := p.close
	p.close = func() { end(); before() }
}

func (p *parts) openModel(m *instant) error {
	for _, a := range m.teacher.Asked() {
		r, err := again(a)
		if err != nil {
			return err
		}
		p.requests = append(p.requests, r)
	}
	if len(p.requests) != 2 {
		return fmt.Errorf("a turn makes two requests, and %d are known", len(p.requests))
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	p.also(client.CloseIdleConnections)
	var err error
	p.model, err = connect.Open(m.config(client), catalogue.New(nil))
	return err
}

// again is the request that the model was asked.
func again(a llmtest.Asked) (llm.Request, error) {
	var body struct {
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	r := llm.Request{Model: modelName, System: a.System, Messages: a.Messages, MaxOutput: 8192}
	err := json.Unmarshal(a.Body, &body)
	for _, t := range body.Tools {
		r.Tools = append(r.Tools, llm.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	return r, err
}

func (p *parts) openStore(b *bench, n int) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	if p.db, err = sqlite.Open(b.ctx, filepath.Join(dir, "parts.db"), sqlite.Options{}); err != nil {
		return err
	}
	p.also(func() { _ = p.db.Close() })
	for range n {
		k := history.Begin(p.db.NewID(), "admin", time.Now())
		if err := k.Flush(b.ctx, p.db); err != nil {
			return err
		}
		p.books = append(p.books, k)
	}
	return nil
}

func (p *parts) openBoxes(b *bench, n int) error {
	runner, err := b.runner()
	if err != nil {
		return err
	}
	dir, err := b.folder()
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the sandboxes' own users must get through
		return err
	}
	d, err := local.New(local.Options{Dir: filepath.Join(dir, "boxes"), Runner: runner})
	if err != nil {
		return err
	}
	p.also(func() { _ = d.Close() })
	for i := range n {
		box, h, err := startLocal(b.ctx, d, fmt.Sprint("part-", i))
		if box != nil {
			p.also(func() { box.Close(); _ = d.Destroy(context.WithoutCancel(b.ctx), h) })
		}
		if err != nil {
			return err
		}
		p.boxes = append(p.boxes, box)
	}
	return nil
}

// appendAll makes as many durable appends as a turn.
func (p *parts) appendAll(caller int) error {
	k := p.books[caller]
	for range p.commits {
		k.At = time.Now().UTC().Truncate(time.Microsecond)
		k.Add(session.Noted{ID: "n", Message: "A line of what happened."})
		if err := k.Flush(p.ctx, p.db); err != nil {
			return err
		}
	}
	return nil
}

// askAll makes the requests of a turn.
func (p *parts) askAll(int) error {
	for _, r := range p.requests {
		for _, err := range p.model.Stream(p.ctx, r) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// runAll runs the command of a turn.
func (p *parts) runAll(caller int) error {
	id := string(session.NewID())
	if err := run(p.ctx, p.boxes[caller], id, load.Command); err != nil {
		return err
	}
	return p.boxes[caller].Ack(p.ctx, id)
}

// all does everything that a turn consists of.
func (p *parts) all(caller int) error {
	return errors.Join(p.appendAll(caller), p.askAll(caller), p.runAll(caller))
}
