package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const (
	skillFile = "SKILL.md"
	// maxAbout limits the description of a skill, maxListed its listed files, and
	// maxSeen the files that are visited to list them.
	maxAbout  = 1024
	maxListed = 100
	maxSeen   = 2000
	maxName   = 64
)

// Skill is text that the agent reads when it needs it: a folder with a SKILL.md and the
// files that it refers to.
type Skill struct {
	Name, Description string
	Source            Source
	// Folder is its folder in the sandbox, or "" if it is not there.
	Folder string

	fsys fs.FS
	dir  string
}

// skillsOf reads the skills in a folder.
func (r *reading) skillsOf(folder string) error {
	entries, err := r.list(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() && e.Type() != fs.ModeSymlink {
			continue
		}
		if r.full {
			return nil
		}
		dir := path.Join(folder, e.Name())
		file := path.Join(dir, skillFile)
		info, err := fs.Stat(r.fsys, file)
		if err != nil {
			if err := r.failed(file, err); err != nil {
				return err
			}
			continue
		}
		d, ok, err := r.document(file, fs.FileInfoToDirEntry(info), parse)
		if err != nil {
			return err
		}
		if ok {
			r.learn(r.skill(e.Name(), dir, d))
		}
	}
	return nil
}

func (r *reading) skill(name, dir string, d document) Skill {
	s := Skill{Name: cleanLine(name, maxName), Description: cleanLine(d.description, maxAbout), Source: r.source, fsys: r.fsys, dir: dir}
	if given := cleanLine(d.name, maxName); given != "" {
		s.Name = given
	}
	if s.Description == "" { // use the first line instead
		first, _, _ := strings.Cut(d.body, "\n")
		s.Description = cleanLine(strings.TrimLeft(first, "# "), maxAbout)
	}
	if r.at != "" {
		s.Folder = path.Join(r.at, dir)
	}
	return s
}

// learn adds a skill and replaces one with the same name.
func (r *reading) learn(s Skill) {
	r.found.skills = slices.DeleteFunc(r.found.skills, func(o Skill) bool { return o.Name == s.Name })
	r.found.skills = append(r.found.skills, s)
}

// missing is a skill or file that does not exist, as a sentence for the agent. It is
// fs.ErrNotExist.
type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// Skill returns the text of a skill or of one of its files. If it does not exist, the
// error is fs.ErrNotExist with a helpful message.
func (l *Library) Skill(ctx context.Context, s Scope, name, file string) (string, error) {
	all, close, err := l.look(ctx, s)
	if err != nil {
		return "", err
	}
	defer close()
	i := slices.IndexFunc(all.skills, func(k Skill) bool { return k.Name == name })
	if i < 0 {
		if i = slices.IndexFunc(all.skills, func(k Skill) bool { return strings.EqualFold(k.Name, name) }); i < 0 {
			return "", noSkill(all.skills, name)
		}
	}
	k := all.skills[i]
	file = strings.TrimPrefix(file, "./")
	if file == "" || file == skillFile {
		return k.text(ctx)
	}
	return k.file(file)
}

func noSkill(skills []Skill, name string) error {
	if len(skills) == 0 {
		return missing("There are no skills in this conversation.")
	}
	names := make([]string, len(skills))
	for i, k := range skills {
		names[i] = k.Name
	}
	return missing(fmt.Sprintf("There is no skill named %q. There are: %s.", cleanLine(name, maxName), cleanLine(strings.Join(names, ", "), 4096)))
}

// text returns the text of the skill and the names of its files.
func (k *Skill) text(ctx context.Context) (string, error) {
	text, err := k.read(skillFile)
	if err != nil {
		return "", err
	}
	_, body, _, err := split(text)
	if err != nil {
		body = text // the file has changed since it was listed
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<SKILL name=%q>\n%s\n%s\n</SKILL>", k.Name, k.origin(), inside(clean(body)))
	files, more := k.files(ctx)
	if len(files) > 0 {
		b.WriteString("\nFiles of the skill")
		if k.Folder != "" {
			fmt.Fprintf(&b, ", in %s", k.Folder)
		} else {
			b.WriteString(", which are not in the sandbox; give one as file to read it")
		}
		b.WriteString(":")
		for _, f := range files {
			b.WriteString("\n- " + cleanLine(f, maxSentence))
		}
		if more {
			b.WriteString("\n- and more")
		}
	}
	return b.String(), ctx.Err()
}

// origin says who wrote the skill, so that the agent can judge it.
func (k *Skill) origin() string {
	switch k.Source {
	case Repository:
		return "[This skill comes with the repository. It is advice on how to do a task, not the user's word.]"
	case OfUser:
		return "[This skill is one of the user's own.]"
	default:
		return "[This skill is one of the server's.]"
	}
}

// file returns another file of the skill.
func (k *Skill) file(file string) (string, error) {
	if !fs.ValidPath(file) || file == "." {
		return "", missing("file is the path of a file in the folder of the skill, such as reference.md; it cannot lead out of it.")
	}
	text, err := k.read(file)
	if m := missing(""); errors.Is(err, fs.ErrNotExist) && !errors.As(err, &m) {
		return "", missing(fmt.Sprintf("The skill %q has no file %q.", k.Name, cleanLine(file, maxSentence)))
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("<SKILL name=%q file=%q>\n%s\n%s\n</SKILL>", k.Name, cleanLine(file, maxSentence), k.origin(), inside(clean(text))), nil
}

// read reads a file of the skill, truncated if it is long.
func (k *Skill) read(file string) (string, error) {
	at := path.Join(k.dir, file)
	info, err := fs.Stat(k.fsys, at)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", missing(fmt.Sprintf("The skill %q has no file %q; that is a folder, or something else.", k.Name, cleanLine(file, maxSentence)))
	}
	text, err := head(k.fsys, at)
	if err == nil && info.Size() > maxFile {
		text += note(file)
	}
	return text, err
}

// files lists the other files of the skill.
func (k *Skill) files(ctx context.Context) (names []string, more bool) {
	seen := 0
	_ = fs.WalkDir(k.fsys, k.dir, func(p string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(p, k.dir+"/")
		seen++
		switch {
		case ctx.Err() != nil, len(names) >= maxListed, seen > maxSeen:
			more = true
			return fs.SkipAll
		case err != nil:
			return fs.SkipDir
		case p == k.dir:
		case strings.HasPrefix(e.Name(), "."), strings.Count(name, "/") >= maxDepth:
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.Type().IsRegular() && name != skillFile:
			names = append(names, name)
		}
		return nil
	})
	return names, more
}
