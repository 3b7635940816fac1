package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"deckhand/bench/floor"
	"deckhand/internal/load"
)

// town is a data folder with users, made once and copied for each server: a user's settings
// name the model, and the limits of one user's requests stay as they are by default.
type town struct {
	dir  string
	keys []string
}

// Settings of the users: of the built-in model, or of the instant one.
const demoSettings = `{"llm_model":"scripted/demo"}`

// townsfolk is how many users there are: at 50 requests per second each, more than any server
// here can answer.
const townsfolk = 1024

// town makes the folder for a program and settings, or returns the one that was made.
func (b *bench) town(settings string) (*town, error) {
	id := b.server + " " + settings
	if t := b.towns[id]; t != nil {
		return t, nil
	}
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	s, err := load.Serve(b.ctx, b.dir, b.server, dir, nil)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	if err := s.Store(s.Key, settings); err != nil {
		return nil, err
	}
	keys, err := s.Users(townsfolk, settings)
	if err != nil {
		return nil, err
	}
	b.towns[id] = &town{dir, keys}
	return b.towns[id], nil
}

// settle starts the server on a copy of the folder and waits until its start is over.
func (b *bench) settle(t *town, args ...string) (*load.Server, error) {
	s, err := b.settleUnder(nil, t, args...)
	if err == nil {
		s.Rest(b.ctx)
	}
	return s, err
}

// settleUnder starts it as the argument of another program.
func (b *bench) settleUnder(tracer []string, t *town, args ...string) (*load.Server, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	if out, err := exec.Command("cp", "-a", t.dir+"/.", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cp: %w: %s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the sandboxes' own users must get through
		return nil, err
	}
	return load.Serve(b.ctx, b.dir, b.server, dir, tracer, args...)
}

// fresh starts the server with the demo model, and returns the users' keys.
func (b *bench) fresh(args ...string) (*load.Server, []string, error) {
	t, err := b.town(demoSettings)
	if err != nil {
		return nil, nil, err
	}
	s, err := b.settle(t, args...)
	return s, t.keys, err
}

// bare starts the floor.
func (b *bench) bare(loose bool) (*load.Server, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	addr, err := load.FreeAddr()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s, err := load.Start(b.ctx, b.dir, addr, self, "-floor", addr, "-floor-file", filepath.Join(dir, "raw.db"), fmt.Sprintf("-floor-loose=%t", loose))
	if err == nil {
		s.Key = floor.Key
	}
	return s, err
}

// office is the real server with the instant model and sandboxes of this machine.
type office struct {
	*load.Server
	keys []string
	// metrics is the address of its own for metrics and profiles, if it has one.
	metrics string

	mu     sync.Mutex
	opened int
	chats  []*load.Chat
}

// office starts one whose start is over.
func (b *bench) office() (*office, error) {
	o, err := b.coldOffice()
	if err == nil {
		o.Rest(b.ctx)
	}
	return o, err
}

// coldOffice starts one that has just become healthy.
func (b *bench) coldOffice() (*office, error) {
	t, err := b.town(load.Settings(modelName, b.model.web.URL+"/v1"))
	if err != nil {
		return nil, err
	}
	o := &office{keys: t.keys}
	args := []string{"--sandbox", "local"}
	if b.profiles != "" {
		if o.metrics, err = load.FreeAddr(); err != nil {
			return nil, err
		}
		args = append(args, "--metrics-addr", o.metrics)
	}
	o.Server, err = b.settleUnder(nil, t, args...)
	return o, err
}
