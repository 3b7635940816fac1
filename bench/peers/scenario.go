package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"deckhand/internal/load"
	"deckhand/internal/load/process"
)

// Figure is one result of the scenario.
type Figure struct {
	Name, Unit string
	Value      float64
	More       bool // more is better
}

// Size is how much of the scenario is run.
type Size struct {
	Turns  int           // one after the other
	AtOnce int           // conversations that work at the same time
	During time.Duration // of a round with many at once
}

// settleTime is how long a server may take to give back what its start needed.
const settleTime = 5 * time.Second

// creators is how many clients create conversations at once.
const creators = 64

// Measure starts a peer below dir and runs the scenario: cold start, creates, first turns, warm turns.
func (p Peer) Measure(ctx context.Context, dir string, size Size) (figures []Figure, err error) {
	model, err := load.StartModel()
	if err != nil {
		return nil, err
	}
	defer model.Close()
	data := filepath.Join(dir, "peer-"+p.Name)
	if err := os.Mkdir(data, 0o755); err != nil {
		return nil, err
	}
	r, err := p.Run(ctx, data, model.URL)
	if err != nil {
		return nil, err
	}
	defer r.Stop()
	add := func(name, unit string, value float64, more bool) {
		figures = append(figures, Figure{name, unit, value, more})
	}
	add("cold start to the first answer", "ms", load.Percentile([]time.Duration{r.Took}, 50), false)
	if err := r.Prepare(ctx, model.URL); err != nil {
		return figures, fmt.Errorf("preparing: %w", err)
	}
	select { // a start takes memory that is given back
	case <-time.After(settleTime):
	case <-ctx.Done():
		return figures, ctx.Err()
	}
	add("memory when idle", "MB", process.TreePSS(), false)

	alone, err := load.Hammer(1, size.During/2, func(int) error { return r.Create(ctx) })
	if err != nil {
		return figures, fmt.Errorf("creating: %w", err)
	}
	add("create, one at a time, p50", "ms", load.Rounds{alone}.Delay(50), false)
	many, err := load.Hammer(creators, size.During, func(int) error { return r.Create(ctx) })
	if err != nil {
		return figures, fmt.Errorf("creating: %w", err)
	}
	add(fmt.Sprintf("creates, %d at once", creators), "/s", many.Rate(), true)
	add(fmt.Sprintf("create, %d at once, p99", creators), "ms", load.Rounds{many}.Delay(99), false)
	turns, err := measureTurns(ctx, r, size)
	return append(figures, turns...), err
}

func measureTurns(ctx context.Context, api API, size Size) (figures []Figure, err error) {
	var mu sync.Mutex
	var all []Conversation
	defer func() {
		_, _ = load.Share(8, len(all), time.Minute, func(_, i int) error { all[i].Close(); return nil })
	}()
	begin := func(int, int) error {
		c, err := api.Begin(ctx)
		if c != nil && err == nil {
			mu.Lock()
			all = append(all, c)
			mu.Unlock()
		}
		return err
	}
	add := func(name, unit string, value float64, more bool) {
		figures = append(figures, Figure{name, unit, value, more})
	}
	first, err := load.Share(1, max(size.Turns/4, 1), time.Minute, begin)
	if err != nil {
		return figures, err
	}
	add("first turn, one at a time, p50", "ms", load.Rounds{first}.Delay(50), false)
	warm, err := load.Share(1, size.Turns, time.Minute, func(_, i int) error { return all[i%len(all)].Turn(ctx) })
	if err != nil {
		return figures, err
	}
	add("warm turn, one at a time, p50", "ms", load.Rounds{warm}.Delay(50), false)
	more, err := load.Share(size.AtOnce, max(size.AtOnce-len(all), 0), 2*time.Minute, begin)
	if err != nil {
		return figures, err
	}
	if len(more.Delays) > 0 {
		add(fmt.Sprintf("first turns, %d at once", size.AtOnce), "/s", more.Rate(), true)
	}
	if len(all) < size.AtOnce {
		return figures, errors.New("not all conversations began within two minutes")
	}
	before := process.TreeCPU()
	busy, err := load.Hammer(size.AtOnce, size.During, func(caller int) error { return all[caller].Turn(ctx) })
	if err != nil {
		return figures, err
	}
	busy.CPU = process.TreeCPU() - before
	add(fmt.Sprintf("warm turns, %d at once", size.AtOnce), "/s", busy.Rate(), true)
	add(fmt.Sprintf("processor time for each warm turn, %d at once", size.AtOnce), "µs", load.Rounds{busy}.CPU(), false)
	add(fmt.Sprintf("memory with %d conversations", len(all)), "MB", process.TreePSS(), false)
	return figures, nil
}
