//go:build linux

package people

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckhand/torture/check"
)

// follower follows a conversation over server-sent events. Its connection breaks after a
// random number of bytes, and it continues after the last event that it received as a whole.
type follower struct {
	name string
	from int64
	ask  func(ctx context.Context, after int64) (*http.Response, error)
	// random is nil for a follower whose connection is never cut on purpose.
	random *rand.Rand
	room   int64 // how many bytes at least to read before the next cut
	on     func(check.Event)

	mu     sync.Mutex
	saw    []check.Seen
	cutNow context.CancelFunc
	moved  chan struct{} // closed when another event was seen
	cuts   int
}

// leastBytes is how many bytes a connection delivers at least.
const leastBytes = 300

// run follows until ctx ends.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		if f.connection(ctx) {
			continue // there is more at once
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// last is the newest event that was seen.
func (f *follower) last() (int64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.saw); n > 0 {
		return f.saw[n-1].ID, f.moved
	}
	return f.from, f.moved
}

// connection reads one connection and reports whether it was cut on purpose.
func (f *follower) connection(ctx context.Context) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f.mu.Lock()
	f.cutNow = stop
	f.mu.Unlock()
	after, _ := f.last()
	res, err := f.ask(ctx, after)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	var body io.Reader = res.Body
	if f.random != nil {
		body = io.LimitReader(body, f.room+f.random.Int64N(20_000))
		f.room *= 2 // or an event that is larger would never arrive
	}
	r := bufio.NewReader(body)
	for {
		id, event, data, err := readFrame(r)
		if err != nil {
			f.mu.Lock()
			f.cuts++
			f.mu.Unlock()
			return f.random != nil && err == io.EOF
		}
		if id == 0 || event != "" && event != "message" {
			continue
		}
		e := eventOf(data)
		f.room = leastBytes
		f.mu.Lock()
		f.saw = append(f.saw, check.Seen{ID: id, Raw: e.Raw})
		close(f.moved)
		f.moved = make(chan struct{})
		f.mu.Unlock()
		if f.on != nil {
			f.on(e)
		}
	}
}

// drop cuts the connection now.
func (f *follower) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cutNow != nil {
		f.cutNow()
	}
}

// history is what the checker gets.
func (f *follower) history() check.Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	return check.Follower{Name: f.name, From: f.from, Saw: append([]check.Seen(nil), f.saw...)}
}

// readFrame reads one frame. A frame that is not complete is an error.
func readFrame(r *bufio.Reader) (id int64, event string, data []byte, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, "", nil, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			if data != nil || event != "" {
				return id, event, data, nil
			}
			id = 0
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			if id, err = strconv.ParseInt(value, 10, 64); err != nil {
				return 0, "", nil, fmt.Errorf("an event has the ID %q", value)
			}
		case "event":
			event = value
		case "data":
			data = bytes.Join([][]byte{data, []byte(value)}, nil)
		}
	}
}
