package knowledge

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

//go:embed builtin
var builtin embed.FS

// Library finds knowledge. Its methods may be called concurrently.
type Library struct {
	// Global is the server's folder. Users has a folder for each user, with a
	// microagents folder in it. Both may be empty or missing.
	Global, Users string

	mu    sync.Mutex
	cache map[cacheKey]cached
	// size is the size of the cached documents.
	size int
}

// Scope is the user and repository to find knowledge for.
type Scope struct {
	User string
	// Repo is the files of the repository, or nil, and RepoDir their folder in the
	// sandbox.
	Repo    fs.FS
	RepoDir string
	// Key identifies the files in Repo, such as the ID of the conversation. With a key,
	// files with unchanged size and time are not read again.
	Key string
}

// found is all knowledge of a scope.
type found struct {
	agents   []Microagent
	skills   []Skill
	problems []Problem
}

// look reads all sources. close releases the result.
func (l *Library) look(ctx context.Context, s Scope) (out *found, close func(), err error) {
	shelves, close, problems := l.shelves(s)
	out = &found{problems: problems}
	for i := range shelves {
		if err := l.read(ctx, &shelves[i], out); err != nil {
			close()
			return nil, nil, err
		}
	}
	return out, close, nil
}

// shelves opens the sources in order.
func (l *Library) shelves(s Scope) ([]shelf, func(), []Problem) {
	var roots []*os.Root
	var problems []Problem
	all := []shelf{{source: BuiltIn, fsys: builtin, key: string(BuiltIn), agents: []string{"builtin"}}}
	add := func(from Source, dir string) {
		root, err := os.OpenRoot(dir)
		if err == nil {
			roots = append(roots, root)
			all = append(all, shelf{source: from, fsys: root.FS(), key: "folder " + dir, agents: []string{"."}, skills: []string{skillsIn}})
		} else if !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, Problem{"microagents of the " + string(from), "The folder cannot be opened."})
		}
	}
	if l.Global != "" {
		add(OfServer, l.Global)
	}
	if l.Users != "" && isFolderName(s.User) {
		add(OfUser, filepath.Join(l.Users, s.User, "microagents"))
	}
	if s.Repo != nil {
		r := shelf{source: Repository, fsys: s.Repo, at: s.RepoDir, agents: repoAgents, skills: repoSkills, files: repoFiles}
		if s.Key != "" {
			r.key = "repository " + s.Key
		}
		all = append(all, r)
	}
	return all, func() {
		for _, r := range roots {
			r.Close()
		}
	}, problems
}

// isFolderName reports whether a user name is the name of a single folder, not a path.
func isFolderName(user string) bool {
	return filepath.IsLocal(user) && user != "." && !strings.ContainsAny(user, `/\`+"\x00")
}

// List returns all microagents of a conversation, without skills.
func (l *Library) List(ctx context.Context, s Scope) ([]Microagent, error) {
	all, close, err := l.look(ctx, s)
	if err != nil {
		return nil, err
	}
	defer close()
	return all.agents, nil
}

type cacheKey struct{ shelf, file string }

// cached is a cached document.
type cached struct {
	size int64
	time time.Time
	doc  document
}

// maxCache limits the cache for all conversations together.
const maxCache = 32 << 20

// recall returns the cached document of an unchanged file.
func (l *Library) recall(shelf, file string, info fs.FileInfo) (document, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.cache[cacheKey{shelf, file}]
	if !ok || c.size != info.Size() || !c.time.Equal(info.ModTime()) {
		return document{}, false
	}
	return c.doc, true
}

// remember caches a document. A full cache is cleared: that is rare, and the files are
// read once more.
func (l *Library) remember(shelf, file string, info fs.FileInfo, d document) {
	if shelf == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := cacheKey{shelf, file}
	cost := func(d document) int { return len(d.body) + len(d.wrong) + len(file) + 1024 }
	if old, ok := l.cache[key]; ok {
		l.size -= cost(old.doc)
	}
	if l.size += cost(d); l.cache == nil || l.size > maxCache {
		l.cache, l.size = map[cacheKey]cached{}, cost(d)
	}
	l.cache[key] = cached{info.Size(), info.ModTime(), d}
}
