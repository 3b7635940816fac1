// Package pull pulls images into a container engine. Callers that want the same image share one pull.
package pull

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/registry"
)

// Pulls are the images that are being pulled. A pull is cancelled when its last caller leaves.
type Pulls struct {
	Engine *client.Client
	// Words converts an error of the engine to a message for users.
	Words func(err error, image string) error
	// Registries returns the credentials for the registry of an image, and refuses some.
	Registries Rule

	mu sync.Mutex
	by map[string]*pull
}

// Rule decides which registries users may name.
type Rule = registry.Rule

type pull struct {
	cancel  context.CancelFunc
	done    chan struct{}
	err     error
	waiting map[*func(sandbox.Progress)]bool
	last    sandbox.Progress
}

// Pull pulls an image and reports the progress.
func (d *Pulls) Pull(ctx context.Context, name string, progress func(sandbox.Progress)) error {
	listener := &progress
	d.mu.Lock()
	p := d.by[name]
	if p == nil {
		p = &pull{done: make(chan struct{}), waiting: map[*func(sandbox.Progress)]bool{}}
		p.last = sandbox.Progress{Step: sandbox.Pulling, Message: "Pulling " + name}
		if d.by == nil {
			d.by = map[string]*pull{}
		}
		d.by[name] = p
		var running context.Context
		running, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go d.runPull(running, name, p)
	}
	p.waiting[listener] = true
	progress(p.last)
	d.mu.Unlock()

	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		d.mu.Lock()
		delete(p.waiting, listener)
		if len(p.waiting) == 0 {
			p.cancel()
			if d.by[name] == p { // the next one who wants it starts anew
				delete(d.by, name)
			}
		}
		d.mu.Unlock()
		return ctx.Err()
	}
}

func (d *Pulls) runPull(ctx context.Context, name string, p *pull) {
	err := d.pullOnce(ctx, name, func(message string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		p.last.Message = message
		for listener := range p.waiting {
			(*listener)(p.last)
		}
	})
	d.mu.Lock()
	if d.by[name] == p {
		delete(d.by, name)
	}
	d.mu.Unlock()
	p.cancel()
	p.err = err
	close(p.done)
}

// pullOnce asks the engine to pull and reads what it says about it.
func (d *Pulls) pullOnce(ctx context.Context, name string, say func(string)) error {
	auth, err := d.Registries.Auth(ctx, name)
	if err != nil {
		return d.Words(err, name)
	}
	stream, err := d.Engine.ImagePull(ctx, name, client.ImagePullOptions{RegistryAuth: auth})
	if err != nil {
		return d.Words(err, name)
	}
	defer stream.Close()
	type step struct {
		jsonstream.Message
		err error
	}
	steps := make(chan step)
	go func() { // ends with the stream, or with ctx
		defer close(steps)
		for message, err := range stream.JSONMessages(ctx) {
			select {
			case steps <- step{message, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	count := count{name: name}
	said := count.String()     // that has been told
	var pause <-chan time.Time // nil when something may be said
	for {
		over := false
		select {
		case s, more := <-steps:
			if s.err == nil && s.Error != nil {
				s.err = s.Error
			}
			if s.err != nil {
				return d.Words(s.err, name)
			}
			if over = !more; more {
				count.add(s.Message)
			}
		case <-pause:
			pause = nil
		}
		// The last word is always said, also when it comes just after another one.
		if text := count.String(); text != said && (pause == nil || over) {
			said, pause = text, time.After(pullPause)
			say(text)
		}
		if over {
			return ctx.Err()
		}
	}
}

// pullPause is the minimum time between two messages about a pull: the engine sends hundreds in
// a second.
const pullPause = 300 * time.Millisecond

// count adds up what the engine says about each layer.
type count struct {
	name   string
	layers map[string]*layer
}

type layer struct {
	done           bool
	current, total int64
}

func (c *count) add(m jsonstream.Message) {
	if m.ID == "" || strings.HasPrefix(m.Status, "Pulling from") {
		return // about the image as a whole
	}
	l := c.layers[m.ID]
	if l == nil {
		if c.layers == nil {
			c.layers = map[string]*layer{}
		}
		l = &layer{}
		c.layers[m.ID] = l
	}
	switch m.Status {
	case "Downloading":
		if m.Progress != nil {
			l.current, l.total = m.Progress.Current, max(l.total, m.Progress.Total)
		}
	case "Verifying Checksum", "Download complete", "Extracting":
		l.current = l.total
	case "Pull complete", "Already exists":
		l.done, l.current = true, l.total
	}
}

func (c *count) String() string {
	var done int
	var current, total int64
	for _, l := range c.layers {
		if l.done {
			done++
		}
		current += l.current
		total += l.total
	}
	if len(c.layers) == 0 {
		return "Pulling " + c.name
	}
	text := fmt.Sprintf("Pulling %s: %d of %d layers", c.name, done, len(c.layers))
	if total = megabytes(total); total > 0 {
		text += fmt.Sprintf(", %d of %d MB", megabytes(current), total)
	}
	return text
}

func megabytes(n int64) int64 { return (n + 5e5) / 1e6 }
