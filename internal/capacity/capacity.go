// Package capacity is deckhand bench: it finds out how many agents this machine can carry.
package capacity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"deckhand/internal/load"
	"deckhand/internal/load/process"
	"deckhand/internal/machine"
)

// Bounds end the measurement when one of them is passed.
type Bounds struct {
	Latency time.Duration // of a turn, p99
	Memory  float64       // MB of server and sandboxes
	Until   time.Time     // when the last round has to begin
}

// growth is how much more turns a doubled load must bring to count as growth.
const growth = 1.05

// levels are how many conversations work at once, round by round.
var levels = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}

// roundTime is how long each number of conversations is measured.
const roundTime = 2500 * time.Millisecond

// Step is a round of turns with a number of conversations at once.
type Step struct {
	Conversations int     `json:"conversations"`
	Rate          float64 `json:"turns_per_second"`
	P50           float64 `json:"p50_ms"`
	P99           float64 `json:"p99_ms"`
	Cores         float64 `json:"cores"`     // used by server and sandboxes
	Memory        float64 `json:"memory_mb"` // of server and sandboxes
}

// climb raises the load until it brings nothing more. round measures one number of
// conversations; errStop from it means that there is no time left. The reason is for people.
func climb(b Bounds, round func(conversations int) (Step, error)) (steps []Step, reason string, err error) {
	best, flat := 0.0, 0
	for _, n := range levels {
		if len(steps) > 0 && !time.Now().Before(b.Until) {
			return steps, "the time is over", nil
		}
		s, err := round(n)
		if errors.Is(err, errStop) && len(steps) > 0 {
			return steps, "the time is over", nil
		}
		if err != nil {
			return steps, "", err
		}
		steps = append(steps, s)
		if flat++; s.Rate >= best*growth {
			flat = 0
		}
		best = max(best, s.Rate)
		switch {
		case s.P99 > float64(b.Latency.Milliseconds()):
			return steps, fmt.Sprintf("more than one of 100 turns took longer than %v", b.Latency), nil
		case s.Memory > b.Memory:
			return steps, fmt.Sprintf("server and sandboxes use more than %.0f MB", b.Memory), nil
		case flat >= 3: // one round may be spoilt by what else the machine does
			return steps, "more conversations at once bring no more turns", nil
		}
	}
	return steps, "no bound was reached", nil
}

var errStop = errors.New("there is no time left")

// rig is a server of its own with a model that answers at once.
type rig struct {
	dir    string
	server *load.Server
	model  *load.Model
	keys   [][]string // of each user
	chats  []*load.Chat
	turns  int
	first  load.Sample // first turns, all together
}

// users is how many the load comes from. Each uses several keys, since a single agent in a
// hurry would meet the limit of one.
const users = 64

// start runs the server in a new folder below dir. It is ended by close only, not by ctx. When it ends, also because this process
// was killed, it removes the sandboxes.
func start(ctx context.Context, program, dir, sandbox string) (r *rig, err error) {
	r = &rig{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.dir, err = os.MkdirTemp(dir, "deckhand-bench-"); err != nil {
		return r, err
	}
	if err = os.Chmod(r.dir, 0o755); err != nil { // the sandboxes' own users must get through
		return r, err
	}
	if r.model, err = load.StartModel(); err != nil {
		return r, err
	}
	if r.server, err = load.Serve(context.WithoutCancel(ctx), r.dir, program, filepath.Join(r.dir, "data"), nil, "--sandbox", sandbox, "--remove-sandboxes"); err != nil {
		return r, err
	}
	r.server.Rest(ctx)
	keys, err := r.server.Users(users, load.Settings(load.ModelName, r.model.URL))
	if err != nil {
		return r, err
	}
	r.keys = make([][]string, users)
	_, err = load.Share(8, users, time.Minute, func(_, i int) (err error) {
		r.keys[i], err = r.server.AllKeys(keys[i])
		return err
	})
	return r, err
}

// close deletes what the measurement made: conversations and their sandboxes, the server, the folder.
func (r *rig) close() {
	if r.server != nil {
		_, _ = load.Share(8, len(r.chats), time.Minute, func(_, i int) error {
			r.chats[i].Close()
			return r.chats[i].Delete()
		})
		r.awaitSandboxes()
		r.server.Stop()
	}
	if r.model != nil {
		r.model.Close()
	}
	if r.dir != "" {
		_ = os.RemoveAll(r.dir)
	}
}

// awaitSandboxes waits until the last one is gone, at most ten seconds.
func (r *rig) awaitSandboxes() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 200 {
		if n, err := r.server.Metric("", "deckhand_sandboxes"); err != nil || n == 0 {
			return
		}
		<-tick.C
	}
}

// round opens conversations until there are n, and has all of them work for a while.
func (r *rig) round(ctx context.Context, n int, until time.Time) (Step, error) {
	missing := n - len(r.chats)
	opened := make([]*load.Chat, missing)
	first, err := load.Share(min(missing, 50), missing, time.Until(until), func(_, i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		keys := r.keys[(len(r.chats)+i)%len(r.keys)]
		c, err := load.Open(r.server.Addr, keys[0], "Say hi.", keys[1:]...)
		opened[i] = c
		return err
	})
	r.chats = append(r.chats, slices.DeleteFunc(opened, func(c *load.Chat) bool { return c == nil })...)
	r.first.Delays, r.first.Took = append(r.first.Delays, first.Delays...), r.first.Took+first.Took
	if err != nil {
		return Step{}, err
	}
	if len(r.chats) < n {
		return Step{}, errStop
	}
	before := process.TreeCPU()
	s, err := load.Hammer(n, roundTime, func(caller int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return r.chats[caller].Turn()
	})
	if err != nil {
		return Step{}, err
	}
	r.turns += len(s.Delays)
	all := load.Rounds{s}
	return Step{
		Conversations: n, Rate: s.Rate(), P50: all.Delay(50), P99: all.Delay(99),
		Cores: (process.TreeCPU() - before).Seconds() / s.Took.Seconds(), Memory: process.TreePSS(),
	}, nil
}

// stored is the size of the data folder without workspaces, in bytes.
func (r *rig) stored() (size int64) {
	entries, _ := os.ReadDir(filepath.Join(r.dir, "data"))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().Type() == fs.FileMode(0) {
			size += info.Size()
		}
	}
	return size
}

// flushTime is how long a durable write takes: a block appended to a file and flushed, p50.
func flushTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "flush-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	var took []time.Duration
	for range 200 {
		begin := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// memory is what this machine has for server and sandboxes, in MB.
func memory() float64 { return float64(machine.Memory()) / (1 << 20) }
