// Package checkpoints keeps checkpoints of a workspace that only the container engine can access. The runner is in a separate
// container, which mounts the workspace and the store. The sandbox can access neither this container nor the store.
package checkpoints

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint"
	"deckhand/internal/sandbox/rpc"
)

const (
	// maxKept is the maximum number of listed paths that could not be restored.
	maxKept = 1000
	// maxPaths is the maximum total size in bytes of the paths of a comparison.
	maxPaths = 16 << 20
)

// Service serves the checkpoints of one workspace.
type Service struct {
	dir string
	w   checkpoint.Workspace

	mu    sync.Mutex // held during each call
	store *checkpoint.Store
	user  string // the server that used the service last
	over  bool   // this server is about to remove the container
}

// New returns a Service for a workspace and the folder of its store.
func New(workspace, dir string) *Service {
	return &Service{dir: dir, w: checkpoint.Workspace{Dir: workspace}, store: checkpoint.Open(dir)}
}

// Handlers are the operations. Each completes an interrupted restore first.
func (s *Service) Handlers() map[string]rpc.Handler {
	return map[string]rpc.Handler{
		"checkpoints/use":      handle(s, s.use),
		"checkpoints/release":  handle(s, s.release),
		"checkpoints/begin":    handle(s, s.begin),
		"checkpoints/take":     handle(s, s.take),
		"checkpoints/list":     handle(s, s.list),
		"checkpoints/restore":  handle(s, s.restore),
		"checkpoints/settle":   handle(s, s.settle),
		"checkpoints/recorded": handle(s, func(context.Context, struct{}) (any, error) { return nil, s.store.Recorded() }),
		"checkpoints/compare":  handle(s, s.compare),
		"checkpoints/file":     handle(s, s.file),
	}
}

func handle[P, R any](s *Service, do func(context.Context, P) (R, error)) rpc.Handler {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		var p P
		if err := c.Into(&p); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.store.Finish(s.w); err != nil {
			return nil, err
		}
		out, err := do(ctx, p)
		return out, checkpoint.Public(err)
	}
}

func (s *Service) use(_ context.Context, p sandbox.UseParams) (any, error) {
	if s.over {
		return nil, fmt.Errorf("%w: another server is about to remove this container", rpc.ErrBusy)
	}
	s.user = p.By
	return nil, nil
}

func (s *Service) release(_ context.Context, p sandbox.UseParams) (bool, error) {
	if _, _, waits := s.store.Unrecorded(); waits {
		return false, nil // servers look for such restores where there is a container
	}
	s.over = s.over || s.user == p.By
	return s.over, nil
}

func (s *Service) begin(_ context.Context, p sandbox.BeginParams) (any, error) {
	if p.Empty {
		return nil, s.store.BeginEmpty(p.At)
	}
	return nil, nil
}

func (s *Service) take(ctx context.Context, p sandbox.TakeParams) (sandbox.Checkpoint, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err == nil && int64(st.Bavail)*st.Bsize < checkpoint.MinFree {
		return sandbox.Checkpoint{}, fmt.Errorf("%w: less than %d MiB of disk space is free", rpc.ErrTooBig, checkpoint.MinFree>>20)
	}
	t, err := s.store.Take(ctx, s.w, p.At)
	return t.Public(), err
}

func (s *Service) list(context.Context, struct{}) (out sandbox.Checkpoints, err error) {
	if out.Numbers, err = s.store.Numbers(); err == nil {
		out.Bytes, err = s.store.Bytes()
	}
	return out, err
}

func (s *Service) restore(ctx context.Context, p sandbox.RestoreParams) (sandbox.Restored, error) {
	r, err := s.store.Restore(ctx, s.w, p)
	r.Kept = r.Kept[:min(len(r.Kept), maxKept)]
	return r.Public(), err
}

// settle completes an interrupted restore, as all calls do, and returns the restore that was not recorded.
func (s *Service) settle(context.Context, struct{}) (out sandbox.Unrecorded, _ error) {
	note, r, ok := s.store.Unrecorded()
	if ok {
		out.Note, out.Restored = note, r.Public()
	}
	return out, nil
}

func (s *Service) compare(_ context.Context, p sandbox.CompareParams) ([]sandbox.FileChange, error) {
	other := s.store
	if p.Other {
		other = checkpoint.Open(s.dir + sandbox.OtherCheckpoints)
	}
	changes, err := checkpoint.Changes(s.store, p.From, other, p.To)
	size := 0
	for _, c := range changes {
		if size += len(c.Path) + len(c.From) + 128; size > maxPaths {
			return nil, fmt.Errorf("%w: the list of changed files", rpc.ErrTooBig)
		}
	}
	return changes, err
}

func (s *Service) file(_ context.Context, p sandbox.CheckpointFileParams) (out sandbox.CheckpointContent, err error) {
	out.Content, out.Found, err = s.store.Content(p.Number, strings.TrimPrefix(p.Path, "/"), min(p.Most, maxPaths))
	return out, err
}
