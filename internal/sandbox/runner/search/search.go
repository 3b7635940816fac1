// Package search searches lines in files and names of files. With it, an agent can search
// in any image, even without grep and find, and gets no more than it needs.
//
// The files are untrusted and may change at any time. So it follows no links, blocks on
// no pipes, and limits what it reads, keeps and returns.
package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/files"
)

// Config says where to search.
type Config struct {
	// Workspace is where relative paths begin.
	Workspace string
	// Private lists folders that are not looked into: the runner has more rights
	// than what it starts.
	Private []string
}

// Search finds lines and names.
type Search struct {
	workspace string
	private   []string
	limits    limits
}

// limits bound a search.
type limits struct {
	// entries is how many names are looked at.
	entries int
	// time is how long it may take.
	time time.Duration
}

// usual are the limits but for tests.
var usual = limits{entries: 200_000, time: 20 * time.Second}

// New makes a Search.
func New(c Config) *Search {
	s := &Search{workspace: c.Workspace, limits: usual}
	if s.workspace == "" {
		s.workspace = sandbox.Workspace
	}
	for _, dir := range c.Private {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		s.private = append(s.private, path.Clean(dir))
	}
	return s
}

// Handlers are the operations.
func (s *Search) Handlers() map[string]rpc.Handler {
	return map[string]rpc.Handler{"grep": with(s.Grep), "glob": with(s.Glob)}
}

// with decodes the parameters.
func with[P, R any](do func(context.Context, P) (R, error)) rpc.Handler {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		var p P
		if err := c.Into(&p); err != nil {
			return nil, err
		}
		return do(ctx, p)
	}
}

// mistake is an error that the caller can correct. It is sent as ErrInvalid.
type mistake string

func (m mistake) Error() string        { return string(m) }
func (m mistake) Is(target error) bool { return target == rpc.ErrInvalid }

func mistakef(format string, args ...any) error { return mistake(fmt.Sprintf(format, args...)) }

// place is where a search begins.
type place struct {
	tree files.Tree // everything, by paths that were checked
	root *os.Root
	path string // absolute, as it was asked for
	real string // without links
	file sandbox.File
}

func (p *place) close() { p.root.Close() }

// place finds a path.
func (s *Search) place(asked string) (*place, error) {
	if strings.ContainsRune(asked, 0) {
		return nil, mistake("A path cannot contain a NUL character.")
	}
	p := &place{path: path.Clean(asked)}
	if !path.IsAbs(p.path) {
		p.path = path.Join(s.workspace, asked)
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		return nil, err
	}
	p.root, p.tree = root, files.At(root, "/")
	real, err := p.tree.Resolve([]byte(p.path))
	if err == nil {
		p.real, p.tree = path.Join("/", real), p.tree.Exact()
		p.file, err = p.tree.Stat([]byte(p.real))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = mistakef("The path %s does not exist.", p.path)
	case err != nil:
		err = mistakef("%s cannot be searched: %v.", p.path, err)
	case s.isPrivate(p.real):
		err = mistakef("%s belongs to the sandbox itself and cannot be searched.", p.path)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (s *Search) isPrivate(real string) bool {
	return slices.ContainsFunc(s.private, func(dir string) bool { return sandbox.Within(real, dir) })
}

// at is what the file rel below the place is called.
func (p *place) at(rel string) []byte {
	if rel == "" {
		return []byte(p.path)
	}
	return []byte(strings.TrimSuffix(p.path, "/") + "/" + rel)
}
