package picture

import (
	"container/list"
	"context"
	"sync"
)

// shared is what concurrent calls have in common: requests under way and the
// images that were asked for last. Its zero value is ready.
type shared struct {
	mu     sync.Mutex
	flying map[string]*flight
	kept   map[string]*list.Element
	newest list.List // of entry, the one that was asked for last in front
	size   int       // bytes of what is kept
}

// entry is an image that is kept.
type entry struct{ address, data string }

// flight is a request under way.
type flight struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	data    string
	err     error
}

// share gets the image at an address from what is kept, from a request that is
// under way already, or by fetch. At most limit bytes are kept.
func (s *shared) share(ctx context.Context, limit int, address string, fetch func(context.Context, string) (string, error)) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	if e := s.kept[address]; e != nil {
		s.newest.MoveToFront(e)
		s.mu.Unlock()
		return e.Value.(entry).data, nil
	}
	f := s.flying[address]
	if f == nil {
		f = s.start(ctx, limit, address, fetch)
	}
	f.waiting++
	s.mu.Unlock()

	select {
	case <-f.done:
		return f.data, f.err
	case <-ctx.Done():
		s.leave(address, f)
		return "", ctx.Err()
	}
}

// start begins a request, which does not end with the call that began it. The
// lock is held.
func (s *shared) start(ctx context.Context, limit int, address string, fetch func(context.Context, string) (string, error)) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{cancel: cancel, done: make(chan struct{})}
	if s.flying == nil {
		s.flying, s.kept = map[string]*flight{}, map[string]*list.Element{}
	}
	s.flying[address] = f
	go func() {
		defer cancel()
		f.data, f.err = fetch(ctx, address)
		s.land(address, f, limit)
	}()
	return f
}

// land ends a request and keeps what it brought.
func (s *shared) land(address string, f *flight, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(f.done)         // who waited finds it kept
	if s.flying[address] != f { // all callers had left
		return
	}
	delete(s.flying, address)
	if f.err != nil || len(f.data) > limit {
		return
	}
	s.kept[address] = s.newest.PushFront(entry{address, f.data})
	s.size += len(f.data)
	for s.size > limit {
		old := s.newest.Remove(s.newest.Back()).(entry)
		delete(s.kept, old.address)
		s.size -= len(old.data)
	}
}

// leave gives up waiting. The last one to leave ends the request.
func (s *shared) leave(address string, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiting--
	if f.waiting == 0 && s.flying[address] == f {
		delete(s.flying, address)
		f.cancel()
	}
}
