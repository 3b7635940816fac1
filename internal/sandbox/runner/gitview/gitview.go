// Package gitview finds the changes in the git repositories of a workspace, without
// changing them. It reverts, stages and commits them when a person asks for it.
//
// Names are arbitrary bytes, so git is always asked for NUL-terminated lists. Git is
// started as rarely as possible, with options that keep it from blocking, writing or
// being slow: it works on a workspace that is mounted read-only.
package gitview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/files"
	"deckhand/internal/sandbox/runner/spawn"
)

const (
	// maxChanges and maxPaths (in bytes) bound a list of changes.
	maxChanges = 50_000
	maxPaths   = 16 << 20
	// maxRepos bounds how many repositories are looked at.
	maxRepos = 200
	// atOnce is how many gits run at the same time.
	atOnce = 4
)

// Config says what a View needs.
type Config struct {
	Spawner   *spawn.Spawner
	Workspace string
	// Env is the environment that git is started with; it may be nil. It must hold no secrets.
	Env func() []string
	// Temp is a folder for copies of indexes; "" is the system's.
	Temp string
	// Timeout is the maximum time of one git command; 0 is one minute.
	Timeout time.Duration
}

// View looks at the repositories of a workspace.
type View struct {
	config Config
	slots  chan struct{}

	mu     sync.Mutex
	marked int64 // the turn that was recorded last
}

// New makes a View.
func New(c Config) *View {
	if c.Workspace == "" {
		c.Workspace = sandbox.Workspace
	}
	if c.Env == nil {
		c.Env = func() []string { return nil }
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
	}
	return &View{config: c, slots: make(chan struct{}, atOnce)}
}

// Handlers are the operations.
func (v *View) Handlers() map[string]rpc.Handler {
	h := v.reviewHandlers()
	maps.Copy(h, map[string]rpc.Handler{
		"git/changes": func(ctx context.Context, _ *rpc.Call) (any, error) { return v.Changes(ctx) },
		"git/diff": func(ctx context.Context, c *rpc.Call) (any, error) {
			var p sandbox.PathParams
			if err := c.Into(&p); err != nil {
				return nil, err
			}
			return v.Diff(ctx, p.Path)
		},
	})
	return h
}

// open opens the workspace.
func (v *View) open() (*os.Root, files.Tree, error) {
	root, err := os.OpenRoot(v.config.Workspace)
	if err != nil {
		return nil, files.Tree{}, err
	}
	return root, files.At(root, v.config.Workspace), nil
}

// repo is a repository in the workspace.
type repo struct {
	dir    string // where it lies
	prefix string // of its paths, seen from the workspace; "" or a name with a slash
	env    []string
}

// Changes lists what differs from where the work began, in all repositories.
func (v *View) Changes(ctx context.Context) ([]sandbox.GitChange, error) {
	root, tree, err := v.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	repos, err := v.repos(tree)
	if err != nil {
		return nil, err
	}
	all := []sandbox.GitChange{}
	var real []repo
	size := 0
	for _, r := range repos {
		states, err := v.changes(ctx, tree, r)
		if errors.Is(err, rpc.ErrNoRepo) {
			continue // it only looked like one
		}
		if err != nil {
			return nil, err
		}
		real = append(real, r)
		for name, s := range states {
			status := s.status()
			if status == "" || r.prefix == "" && foreign(name, real) {
				continue
			}
			if size += len(r.prefix) + len(name); size > maxPaths || len(all) == maxChanges {
				return nil, tooMany()
			}
			all = append(all, sandbox.GitChange{Status: status, Path: []byte(r.prefix + name)})
		}
	}
	if len(real) == 0 {
		return nil, fmt.Errorf("%w: neither the workspace nor a folder in it is one", rpc.ErrNoRepo)
	}
	slices.SortFunc(all, func(a, b sandbox.GitChange) int { return bytes.Compare(a.Path, b.Path) })
	return all, nil
}

func tooMany() error {
	return fmt.Errorf("%w: more than %d files have changed; add generated files to .gitignore", rpc.ErrTooBig, maxChanges)
}

// repos finds the repositories: the folders in the workspace, and last the
// workspace itself. Whether they really are is git's to say.
func (v *View) repos(tree files.Tree) ([]repo, error) {
	var repos []repo
	list, err := tree.List(nil)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		name := string(f.Name)
		if !f.IsDir() || !isRepo(tree, name+"/") {
			continue
		}
		if len(repos) == maxRepos {
			return nil, fmt.Errorf("%w: there are more than %d repositories in the workspace", rpc.ErrTooBig, maxRepos)
		}
		repos = append(repos, v.inside(name))
	}
	if isRepo(tree, "") {
		repos = append(repos, repo{dir: v.config.Workspace})
	}
	return repos, nil
}

// inside is the repository in a folder of the workspace.
func (v *View) inside(name string) repo {
	return repo{dir: path.Join(v.config.Workspace, name), prefix: name + "/"}
}

func isRepo(tree files.Tree, prefix string) bool {
	f, err := tree.Stat([]byte(prefix + ".git"))
	if err == nil && f.IsDir() { // git takes no folder without it for a repository
		_, err = tree.Stat([]byte(prefix + ".git/HEAD"))
	}
	return err == nil && (f.IsDir() || f.Mode.IsRegular() || f.Mode.Type() == fs.ModeSymlink)
}

// foreign is true for paths of the workspace's own repository that lie in
// another one, which tells of them itself.
func foreign(name string, repos []repo) bool {
	first, _, ok := strings.Cut(name, "/")
	return ok && slices.ContainsFunc(repos, func(r repo) bool { return r.prefix == first+"/" })
}
