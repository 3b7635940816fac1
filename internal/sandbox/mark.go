package sandbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/sandbox/rpc"
)

// MarkTime is the maximum time that a turn's first call waits for its files to be recorded.
const MarkTime = 10 * time.Second

// mark is a GitMark that waits for the first use of a connection. nil is none.
type mark struct {
	mu     sync.Mutex
	params *GitMarkParams
	marked *atomic.Int64
}

// take returns what is to be recorded, once.
func (m *mark) take() *GitMarkParams {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done()
}

// done is take with mu held.
func (m *mark) done() *GitMarkParams {
	p := m.params
	if p != nil {
		m.params = nil
		m.marked.Store(p.Turn)
	}
	return p
}

// MarkTurn has the files of all repositories recorded before the first call of a turn of a conversation, if own says that the
// sandbox is its own. marked is the turn that was recorded last. The runner does it with the first command, so that it takes no
// request of its own; any other use of the returned connection that reads or writes files does GitMark before.
func (s *Sandbox) MarkTurn(conversation string, own bool, marked *atomic.Int64, turn int64, first bool) *Sandbox {
	if !own || marked.Load() == turn {
		return s
	}
	c := *s
	c.mark = &mark{params: &GitMarkParams{Turn: turn, First: first, Conversation: conversation}, marked: marked}
	return &c
}

// markNow records what was to be recorded with a command. A call is not worth failing for it, so errors are ignored.
func (s *Sandbox) markNow(ctx context.Context) {
	if s.mark == nil {
		return
	}
	s.mark.mu.Lock()
	defer s.mark.mu.Unlock() // concurrent calls wait for it
	if p := s.mark.done(); p != nil {
		ctx, cancel := context.WithTimeout(ctx, MarkTime)
		defer cancel()
		_ = s.GitMark(ctx, *p)
	}
}

// call asks the runner for something that reads or writes files.
func (s *Sandbox) call(ctx context.Context, method string, fence int64, in, out any) error {
	s.markNow(ctx)
	return s.peer.Call(ctx, method, fence, in, out)
}

// open is call for what sends or returns more than one value.
func (s *Sandbox) open(ctx context.Context, method string, fence int64, in any) (*rpc.Stream, error) {
	s.markNow(ctx)
	return s.peer.Open(ctx, method, fence, in)
}
