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

// How much of one source is looked at. A repository can hold anything.
const (
	maxFile  = 64 << 10 // of one file
	maxFiles = 200
	maxBytes = 2 << 20
	maxDepth = 5
)

// Problem is a file that could not be used, or not as a whole.
type Problem struct{ File, Sentence string }

func (p Problem) String() string { return p.File + ": " + p.Sentence }

// shelf is one source, opened.
type shelf struct {
	source Source
	fsys   fs.FS
	// key is the shelf's name in the cache; empty for one that is not kept there.
	key string
	// at is where the files are in the sandbox; empty if they are not.
	at string
	// agents are folders of microagents, skills folders of skills, and files
	// groups of instructions of which the first that exists is taken.
	agents, skills []string
	files          [][]string
}

// places of a repository. The files are those that agents of all makers read.
var (
	repoAgents = []string{".openhands/microagents", ".deckhand/microagents"}
	repoSkills = []string{".openhands/skills", ".claude/skills", ".agents/skills", ".deckhand/skills"}
	repoFiles  = [][]string{{".openhands_instructions"}, {"AGENTS.md", "agents.md", "AGENT.md"}, {"CLAUDE.md"}, {".cursorrules"}}
)

// skillsIn is the folder of skills in those of the server and of users.
const skillsIn = "skills"

// name is what people call a file of the shelf.
func (s *shelf) name(file string) string {
	if s.at != "" {
		return path.Join(s.at, file)
	}
	return file
}

// reading is one look through a shelf.
type reading struct {
	*shelf
	ctx     context.Context
	library *Library
	found   *found
	// top are the names at the top of the shelf, nil if they are not known.
	top map[string]bool
	// count and bytes are what may still be read; full says that there was more.
	count, bytes int
	full         bool
}

// read takes in everything on the shelf.
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

// survey looks at the top of a shelf: most repositories have next to none of the
// places in which knowledge may be, and to ask for each takes a dozen questions.
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

// missing is true for what cannot be there.
func (r *reading) missing(file string) bool {
	first, _, _ := strings.Cut(file, "/")
	return r.top != nil && !r.top[first]
}

// list reads a folder, which need not be there.
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

// failed tells of a file that cannot be read. The error that it returns is none
// of the file's: nothing else could be read either.
func (r *reading) failed(file string, err error) error {
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrGone):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, sandbox.ErrEscapes), strings.Contains(err.Error(), "path escapes from parent"): // of os.Root, which does not export it
		r.problem(file, "It leads out of its folder and was not followed.")
	default:
		r.problem(file, "It cannot be read.")
	}
	return nil
}

func (r *reading) problem(file, sentence string) {
	r.found.problems = append(r.found.problems, Problem{cleanLine(r.name(file), maxSentence), sentence})
}

// walk reads the microagents of a folder and those below it.
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

// first reads the first of some files that exists. They have no front matter.
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

// add takes in a microagent. One from a repository does not silence what the
// server or the user want to be told always.
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

// document reads a file and takes it apart, or remembers how that went when the
// file was the same. It is not ok if there is nothing to be used.
func (r *reading) document(file string, e fs.DirEntry, parse func(string) document) (document, bool, error) {
	info, err := e.Info()
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		info, err = fs.Stat(r.fsys, file)
	}
	if err != nil {
		return document{}, false, r.failed(file, err)
	}
	if !info.Mode().IsRegular() { // to open a pipe is to wait for whoever writes to it
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

// note ends a text that was cut.
func note(file string) string {
	return fmt.Sprintf("\n[%s is longer than what is shown here.]", cleanLine(file, maxSentence))
}

// head reads the beginning of a file.
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
		return clip.Start(string(b), n-utf8.UTFMax), nil // there may be half a character at the end
	}
	return string(b[:n]), nil
}
