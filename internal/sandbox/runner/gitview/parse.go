package gitview

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// fields calls each with every part of r that ends in NUL.
func fields(r io.Reader, each func(string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 256<<10)
	s.Split(func(data []byte, end bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		if end && len(data) > 0 {
			return 0, nil, io.ErrUnexpectedEOF
		}
		return 0, nil, nil
	})
	for s.Scan() {
		if err := each(s.Text()); err != nil {
			return err
		}
	}
	return s.Err()
}

// errFormat says that git wrote something that we do not understand.
var errFormat = errors.New("git answered in a way that is not understood")

func misread(field string) error { return fmt.Errorf("%w: %.100q", errFormat, field) }

const absent = "000000" // the mode of what does not exist

// entry is a line of git status: a path that is not as it is in the head.
type entry struct {
	path     string
	conflict bool
	twice    bool   // it was changed in the index and then again
	head     string // its mode in the head
	id       string // and its object
	work     string // its mode now
	// staged and unstaged say where it was changed: in the index, and since.
	staged, unstaged, untracked bool
}

// status is what git status says.
type status struct {
	branch string // "" if there is none
	head   string // "" if there is no commit
}

// parseStatus reads git status --porcelain=v2 --branch -z.
func parseStatus(r io.Reader, each func(entry) error) (status, error) {
	var s status
	var origin byte // of a rename or copy; its old name follows
	err := fields(r, func(f string) error {
		switch was := origin; was {
		case 'R', 'C':
			origin = 0
			if was == 'C' {
				return nil
			}
			return each(entry{path: f, head: "100644", work: absent})
		}
		kind, rest, ok := strings.Cut(f, " ")
		if !ok {
			return misread(f)
		}
		switch kind {
		case "#":
			s.header(rest)
			return nil
		case "?":
			return each(entry{path: rest, head: absent, work: "100644", unstaged: true, untracked: true})
		case "!":
			return nil
		}
		n := map[string]int{"1": 8, "2": 9, "u": 10}[kind]
		parts := strings.SplitN(rest, " ", n)
		if n == 0 || len(parts) < n || len(parts[0]) != 2 || parts[n-1] == "" || parts[n-2] == "" {
			return misread(f)
		}
		e := entry{path: parts[n-1], conflict: kind == "u", head: parts[2], work: parts[4], id: parts[5]}
		e.staged, e.unstaged = parts[0][0] != '.', parts[0][1] != '.'
		e.twice = e.staged && e.unstaged
		if kind == "2" { // we ask for none, but a rename would be a D and an A
			if origin = parts[7][0]; origin != 'R' && origin != 'C' {
				return misread(f)
			}
			e.head = absent
		}
		return each(e)
	})
	if err == nil && origin != 0 {
		err = io.ErrUnexpectedEOF
	}
	return s, err
}

func (s *status) header(h string) {
	switch key, value, _ := strings.Cut(h, " "); {
	case key == "branch.oid" && isID(value):
		s.head = value
	case key == "branch.head" && value != "(detached)":
		s.branch = value
	}
}

// step is a difference between two trees.
type step struct {
	path     string
	old, new string // modes
	id       string // the old object
}

// parseSteps reads git diff-tree -z in raw format.
func parseSteps(r io.Reader, each func(step) error) error {
	var s *step
	err := fields(r, func(f string) error {
		if s == nil {
			parts := strings.Split(f, " ")
			if len(parts) != 5 || !strings.HasPrefix(parts[0], ":") || parts[4] == "" || strings.ContainsAny(parts[4][:1], "RC") {
				return misread(f)
			}
			s = &step{old: parts[0][1:], new: parts[1], id: parts[2]}
			return nil
		}
		done := *s
		done.path, s = f, nil
		if f == "" {
			return misread(f)
		}
		return each(done)
	})
	if err == nil && s != nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// delta is a changed file: its modes and objects, and how many lines differ.
type delta struct {
	status, from   string
	old, id        string // objects before and after
	added, removed int
	binary         bool
}

// parseDeltas reads git diff --raw --numstat -z into found, by the new path.
func parseDeltas(r io.Reader, found map[string]*delta) error {
	var d *delta        // a raw record whose paths follow
	var counts []string // those of a renamed file whose paths follow
	var from *string
	count := func(name string, counts []string) {
		to := found[name]
		if to == nil {
			return
		}
		to.binary = counts[0] == "-"
		to.added, _ = strconv.Atoi(counts[0])
		to.removed, _ = strconv.Atoi(counts[1])
	}
	err := fields(r, func(f string) error {
		switch {
		case d != nil && d.status == "R" && from == nil, counts != nil && from == nil:
			from = &f
		case d != nil:
			if from != nil {
				d.from = *from
			}
			if was := found[f]; was != nil && was.status == "U" {
				d.status = "U"
			} else if was == nil && len(found) == maxChanges {
				return tooMany()
			}
			found[f], d, from = d, nil, nil
		case counts != nil:
			count(f, counts)
			counts, from = nil, nil
		case strings.HasPrefix(f, ":"):
			parts := strings.Split(f, " ")
			if len(parts) != 5 || parts[4] == "" {
				return misread(f)
			}
			d = &delta{status: parts[4][:1], old: parts[2], id: parts[3]}
			if d.status == "T" {
				d.status = "M"
			}
			if !strings.Contains("MADUR", d.status) {
				return misread(f)
			}
		default:
			parts := strings.SplitN(f, "\t", 3)
			if len(parts) != 3 {
				return misread(f)
			}
			if parts[2] == "" {
				counts = parts[:2]
			} else {
				count(parts[2], parts[:2])
			}
		}
		return nil
	})
	if err == nil && (d != nil || counts != nil) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
