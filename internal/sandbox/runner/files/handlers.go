package files

import (
	"bufio"
	"context"
	"os"
	"path"
	"strings"
	"sync/atomic"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// Config says where the files are.
type Config struct {
	// Workspace is the folder that is kept, as it is called inside.
	Workspace string
	// FS is the folder in which everything lies, the workspace too; default "/".
	FS string
}

// Files answers calls about the files of a sandbox, from within it.
type Files struct {
	config Config
	// watches is how many run.
	watches atomic.Int32
	// watching is told when a watch sees changes from now on; for tests.
	watching func()
}

// New makes Files.
func New(c Config) *Files {
	if c.FS == "" {
		c.FS = "/"
	}
	if c.Workspace == "" {
		c.Workspace = sandbox.Workspace
	}
	return &Files{config: c, watching: func() {}}
}

// Handlers are the operations.
func (s *Files) Handlers() map[string]rpc.Handler {
	return map[string]rpc.Handler{
		"stat": with(s, func(_ context.Context, _ *rpc.Call, t Tree, p sandbox.PathParams) (any, error) {
			return t.Stat(p.Path)
		}),
		"list": with(s, func(_ context.Context, _ *rpc.Call, t Tree, p sandbox.PathParams) (any, error) {
			return t.List(p.Path)
		}),
		"read": with(s, func(_ context.Context, c *rpc.Call, t Tree, p sandbox.ReadParams) (any, error) {
			return t.Read(p, c)
		}),
		"write": with(s, func(ctx context.Context, c *rpc.Call, t Tree, p sandbox.WriteParams) (any, error) {
			return t.Write(ctx, p, c)
		}),
		"replace": with(s, func(ctx context.Context, c *rpc.Call, t Tree, p sandbox.WriteParams) (any, error) {
			return t.Write(ctx, p, c)
		}),
		"mkdir": with(s, func(_ context.Context, _ *rpc.Call, t Tree, p sandbox.PathParams) (any, error) {
			return nil, t.Mkdir(p.Path)
		}),
		"remove": with(s, s.remove),
		"archive": with(s, func(ctx context.Context, c *rpc.Call, t Tree, p sandbox.ArchiveParams) (any, error) {
			out := bufio.NewWriterSize(c, 64<<10)
			if err := t.Archive(ctx, p, out); err != nil {
				return nil, err
			}
			return nil, out.Flush()
		}),
		"watch": with(s, s.watch),
		"usage": s.usage,
	}
}

// params are those that name a file.
type params interface {
	sandbox.PathParams | sandbox.ReadParams | sandbox.WriteParams | sandbox.ArchiveParams
}

// with decodes the parameters and opens the tree that they are about.
func with[P params](s *Files, do func(context.Context, *rpc.Call, Tree, P) (any, error)) rpc.Handler {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		var p P
		if err := c.Into(&p); err != nil {
			return nil, err
		}
		t, err := s.tree(pathOf(&p))
		if err != nil {
			return nil, err
		}
		defer t.root.Close()
		return do(ctx, c, t, p)
	}
}

// pathOf finds the path in any of the parameters.
func pathOf(p any) *sandbox.PathParams {
	switch p := p.(type) {
	case *sandbox.PathParams:
		return p
	case *sandbox.ReadParams:
		return &p.PathParams
	case *sandbox.WriteParams:
		return &p.PathParams
	case *sandbox.ArchiveParams:
		return &p.PathParams
	}
	panic("parameters without a path")
}

// tree opens the workspace, or everything if the caller may go anywhere; there
// a relative path is made absolute.
func (s *Files) tree(p *sandbox.PathParams) (Tree, error) {
	dir, name := s.home(), s.config.Workspace
	if !p.Within {
		dir, name = s.config.FS, "/"
		if !strings.HasPrefix(string(p.Path), "/") {
			p.Path = append([]byte(s.config.Workspace+"/"), p.Path...)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, fail("open", []byte(name), err)
	}
	return At(root, name), nil
}

// home is where the workspace lies on this machine.
func (s *Files) home() string { return path.Join(s.config.FS, s.config.Workspace) }

// remove refuses the workspace, which lies in everything and would be emptied.
func (s *Files) remove(_ context.Context, _ *rpc.Call, t Tree, p sandbox.PathParams) (any, error) {
	if rel, err := t.resolve(p.Path, false); err == nil && t.name == "/" && sandbox.Within(s.config.Workspace, "/"+rel) {
		return nil, invalid("remove", p.Path, "the workspace is in it")
	}
	return nil, t.Remove(p.Path)
}

func (s *Files) usage(ctx context.Context, _ *rpc.Call) (any, error) {
	root, err := os.OpenRoot(s.home())
	if err != nil {
		return nil, fail("measure", []byte(s.config.Workspace), err)
	}
	defer root.Close()
	return At(root, s.config.Workspace).Usage(ctx)
}
