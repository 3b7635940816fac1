package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/load"
	"deckhand/internal/soak"
)

// stallBound is how long an event may take to reach a follower. It is far above what a busy machine
// needs, and far below the 100 s after which a stalled stream went on by itself.
const stallBound = 20 * time.Second

// Streams deliver every turn in time: to followers that stay, and to one that leaves and
// comes back in the middle of turns, when what it missed and what is new meet.
func TestStreamsDoNotStall(t *testing.T) {
	t.Parallel()
	b := serve(t, "", "--rate-limit", "0")
	b.demo("scripted/demo")
	const conversations = 40
	var turns atomic.Int64
	all := int64(soak.Times(400, 20_000))
	var wait sync.WaitGroup
	begin := time.Now()
	for range conversations {
		wait.Go(func() {
			f, err := newFollowed(strings.TrimPrefix(b.base, "http://"), b.key)
			defer f.close()
			for n := 0; err == nil && turns.Add(1) <= all; n++ {
				err = f.turn(n)
			}
			if err != nil {
				t.Errorf("after %v and about %d turns: %v", time.Since(begin), turns.Load(), err)
			}
		})
	}
	wait.Wait()
}

// followed is a conversation with several followers.
type followed struct {
	talk   *load.Talk
	stay   []*load.Stream
	rejoin *load.Stream
	last   int64
}

func newFollowed(addr, key string) (*followed, error) {
	f := &followed{}
	var err error
	if f.talk, err = load.Create(addr, key, "hello"); err != nil {
		return f, err
	}
	for range 2 {
		s, err := f.follow()
		if err != nil {
			return f, err
		}
		f.stay = append(f.stay, s)
	}
	return f, f.ended()
}

func (f *followed) follow() (*load.Stream, error) {
	return load.Follow(f.talk.Addr, f.talk.Path+"/events/stream", f.talk.Key, f.last)
}

func (f *followed) close() {
	if f.talk != nil {
		f.talk.Close()
	}
	for _, s := range f.stay {
		s.Close()
	}
	if f.rejoin != nil {
		f.rejoin.Close()
	}
}

// ended waits until all followers have the end of the turn.
func (f *followed) ended() error {
	from := f.last
	for i, s := range f.stay {
		last, err := s.TurnEnd(stallBound)
		if err != nil {
			return fmt.Errorf("follower %d of %s does not see the end of the turn after event %d: %w", i+1, f.talk.Path, from, err)
		}
		f.last = last
	}
	if f.rejoin == nil {
		return nil
	}
	if last, err := f.rejoin.TurnEnd(stallBound); err != nil || last != f.last {
		return fmt.Errorf("the follower that came back to %s after event %d sees the turn end with event %d, the others with %d: %w", f.talk.Path, from, last, f.last, err)
	}
	return nil
}

// turn says something. In every third turn, a follower leaves and comes back during the turn.
func (f *followed) turn(n int) error {
	if n%3 == 0 && f.rejoin != nil {
		f.rejoin.Close()
		f.rejoin = nil
	}
	if err := f.talk.Say(); err != nil {
		return err
	}
	if n%3 == 0 {
		var err error
		if f.rejoin, err = f.follow(); err != nil {
			return err
		}
	}
	return f.ended()
}
