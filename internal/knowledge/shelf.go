package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
)

// Limits for each source. A repository can contain anything.
const (
	maxFile  = 64 << 10 // of one file
	maxFiles = 200
	maxBytes = 2 << 20
	maxDepth = 5
)

// Problem is a file that is ignored or only partly used.
type Problem struct{ File, Sentence string }

func (p Problem) String() string { return p.File + ": " + p.Sentence }

// shelf is an open source.
type shelf struct {
	source Source
	fsys   fs.FS
	// key is the name of the shelf in the cache, or "" if it is not cached.
	key string
	// at is the folder in the sandbox, or "" if the files are not there.
	at string
	// agents are folders of microagents, skills are folders of skills, and files are
	// groups of instruction files, of which the first existing one is used.
	agents, skills []string
	files          [][]string
}

// The places in a repository, including files that other agents read.
var (
	repoAgents = []string{".openhands/microagents", ".deckhand/microagents"}
	repoSkills = []string{".openhands/skills", ".claude/skills", ".agents/skills", ".deckhand/skills"}
	repoFiles  = [][]string{{".openhands_instructions"}, {"AGENTS.md", "agents.md", "AGENT.md"}, {"CLAUDE.md"}, {".cursorrules"}}
)

// skillsIn is the skills folder of the server and of users.
const skillsIn = "skills"

// name returns the display name of a file.
func (s *shelf) name(file string) string {
	if s.at != "" {
		return path.Join(s.at, file)
	}
	return file
}

// reading is one pass over a shelf.
type reading struct {
	*shelf
	ctx     context.Context
	library *Library
	found   *found
	// top are the names in the top folder, or nil if unknown.
	top map[string]bool
	// count and bytes are what may still be read; full is set when a limit was reached.
	count, bytes int
	full         bool
}

// read adds everything on the shelf.
func (l *Library) read(ctx context.Context, s *shelf, into *found) error {
	r := &reading{shelf: s, ctx: ctx, library: l, count: maxFiles, bytes: maxBytes, found: into}
	if len(s.files) > 0 {
		r.survey()
	}
	for _, folder := range s.agents {
		if err := r.walk(folder, folder, 0); err != nil {
			return err
		}
	}
	for _, group := range s.files {
		if err := r.first(group); err != nil {
			return err
		}
	}
	for _, folder := range s.skills {
		if err := r.skillsOf(folder); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// survey lists the top folder. Most repositories have almost none of the possible places,
// and asking for each takes a dozen requests.
func (r *reading) survey() {
	entries, err := fs.ReadDir(r.fsys, ".")
	if err != nil {
		return
	}
	r.top = make(map[string]bool, len(entries))
	for _, e := range entries {
		r.top[e.Name()] = true
	}
}

// missing reports whether a file cannot exist.
func (r *reading) missing(file string) bool {
	first, _, _ := strings.Cut(file, "/")
	return r.top != nil && !r.top[first]
}

// list reads a folder that may be missing.
func (r *reading) list(folder string) ([]fs.DirEntry, error) {
	if r.missing(folder) {
		return nil, nil
	}
	entries, err := fs.ReadDir(r.fsys, folder)
	if err != nil {
		return nil, r.failed(folder, err)
	}
	return entries, nil
}

// failed records a file that cannot be read. It returns errors that affect all files.
func (r *reading) failed(file string, err error) error {
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrGone):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, sandbox.ErrEscapes), strings.Contains(err.Error(), "path escapes from parent"): // from os.Root, which does not export it
		r.problem(file, "It leads out of its folder and was not followed.")
	default:
		r.problem(file, "It cannot be read.")
	}
	return nil
}

func (r *reading) problem(file, sentence string) {
	r.found.problems = append(r.found.problems, Problem{cleanLine(r.name(file), maxSentence), sentence})
}

// walk reads the microagents in a folder and below it.
func (r *reading) walk(top, folder string, depth int) error {
	entries, err := r.list(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, at := e.Name(), path.Join(folder, e.Name())
		switch {
		case r.full:
			return nil
		case strings.HasPrefix(name, "."):
		case e.IsDir() && at == skillsIn && r.source != Repository:
		case e.IsDir() && depth >= maxDepth:
			r.problem(at, "It lies too deep.")
		case e.IsDir():
			if err := r.walk(top, at, depth+1); err != nil {
				return err
			}
		case strings.EqualFold(path.Ext(name), ".md") && !strings.EqualFold(name, "README.md"):
			d, ok, err := r.document(at, e, parse)
			if err != nil {
				return err
			}
			if ok {
				id := strings.TrimPrefix(at, top+"/")
				r.add(microagent(strings.TrimSuffix(id, path.Ext(id)), r.name(at), r.source, d), at)
			}
		}
	}
	return nil
}

// first reads the first existing file of a group. These files have no front matter.
func (r *reading) first(group []string) error {
	for _, file := range group {
		if r.missing(file) {
			continue
		}
		info, err := fs.Stat(r.fsys, file)
		if err != nil {
			if err := r.failed(file, err); err != nil {
				return err
			}
			continue
		}
		d, ok, err := r.document(file, fs.FileInfoToDirEntry(info), func(text string) document { return document{body: clean(text)} })
		if err != nil {
			return err
		}
		if ok {
			r.add(microagent(strings.TrimSuffix(file, ".md"), r.name(file), r.source, d), file)
			return nil
		}
	}
	return nil
}

// add adds a microagent. One from a repository does not replace instructions of the
// server or the user.
func (r *reading) add(m Microagent, at string) {
	if m.Content == "" && len(m.Servers) == 0 {
		return
	}
	// CLAUDE.md is often a link to AGENTS.md.
	if m.Kind == Repo && slices.ContainsFunc(r.found.agents, func(o Microagent) bool {
		return o.Kind == Repo && o.Source == m.Source && o.Content == m.Content && len(m.Servers) == 0
	}) {
		return
	}
	same := slices.IndexFunc(r.found.agents, func(o Microagent) bool { return o.Name == m.Name })
	if same >= 0 {
		if o := r.found.agents[same]; m.Source == Repository && o.Source != Repository && o.Kind == Repo {
			r.problem(at, fmt.Sprintf("There are instructions named %q outside the repository, which it cannot replace.", m.Name))
			return
		}
		r.found.agents = slices.Delete(r.found.agents, same, same+1)
	}
	r.found.agents = append(r.found.agents, m)
}

// document reads and parses a file, or takes it from the cache. It is not ok if the file
// cannot be used.
func (r *reading) document(file string, e fs.DirEntry, parse func(string) document) (document, bool, error) {
	info, err := e.Info()
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		info, err = fs.Stat(r.fsys, file)
	}
	if err != nil {
		return document{}, false, r.failed(file, err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return document{}, false, nil
	}
	r.count--
	r.bytes -= int(min(info.Size(), maxFile))
	if r.count < 0 || r.bytes < 0 {
		if !r.full {
			r.problem(file, fmt.Sprintf("This and what comes after it was left out: at most %d files and %d MB are read.", maxFiles, maxBytes>>20))
		}
		r.full = true
		return document{}, false, nil
	}
	d, known := r.library.recall(r.key, file, info)
	if !known {
		text, err := head(r.fsys, file)
		if err != nil {
			return document{}, false, r.failed(file, err)
		}
		d = parse(text)
		if d.wrong == "" && info.Size() > maxFile {
			d.body += note(r.name(file))
		}
		r.library.remember(r.key, file, info, d)
	}
	if d.wrong != "" {
		r.problem(file, d.wrong)
		return document{}, false, nil
	}
	return d, true, nil
}

// note returns the text that ends a truncated file. It starts with the mark of a cut, beside which secrets are masked.
func note(file string) string {
	return fmt.Sprintf("…\n[%s is longer than what is shown here.]", cleanLine(file, maxSentence))
}

// head reads the start of a file.
func head(fsys fs.FS, file string) (string, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, maxFile)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	if n == len(b) {
		return clip.Start(string(b), n-utf8.UTFMax), nil // the last character may be incomplete
	}
	return string(b[:n]), nil
}
