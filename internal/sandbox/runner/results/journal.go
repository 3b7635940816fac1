package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxDead is how much of the journal may be of no use before it is written anew.
const maxDead = 1 << 20

func (s *Store) path() string { return filepath.Join(s.dir, "journal") }

// load reads the journal. A line that a dying runner left unfinished says
// nothing: what it would have finished was only begun, and what it would have
// begun was not. Nor do the zeros behind the last line, which keep room.
func (s *Store) load() error {
	f, err := os.Open(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s.file = f
	in := bufio.NewReader(f)
	for {
		b, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at, n := s.size, int64(len(b))
		s.size += n
		var l line
		if json.Unmarshal(b, &l) != nil {
			s.dead += n
			continue
		}
		if r := s.known[l.ID]; r != nil {
			s.dead += r.n
		}
		if l.Gone {
			s.dead += n
			delete(s.known, l.ID)
			continue
		}
		s.known[l.ID] = &record{done: l.Done, at: at, n: n, plain: l.Result != nil}
	}
}

// append writes a line and tells where it is. A line that does not fit leaves
// zeros behind, which say nothing. The file is not shortened: that would free blocks.
func (s *Store) append(l line) (at, n int64, err error) {
	b, err := json.Marshal(l)
	if err != nil {
		return 0, 0, err
	}
	b = append(b, '\n')
	if n, err := s.file.WriteAt(b, s.size); err != nil {
		_, e := s.file.WriteAt(make([]byte, n), s.size)
		return 0, 0, errors.Join(err, e)
	}
	at, n = s.size, int64(len(b))
	s.size += n
	return at, n, nil
}

// result reads the result of a record that has one, or fails with errSealed.
func (s *Store) result(id string, r *record) (json.RawMessage, error) {
	if r.unsaved != nil {
		return r.unsaved, nil
	}
	b := make([]byte, r.n)
	if _, err := s.file.ReadAt(b, r.at); err != nil {
		return nil, err
	}
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("the journal of results is damaged: %w", err)
	}
	if l.Result != nil {
		return l.Result, nil
	}
	return s.open(id, l.Sealed)
}

// blank overwrites a line. Loading the journal skips what is left.
func (s *Store) blank(at, n int64) error {
	b := bytes.Repeat([]byte(" "), int(n))
	b[len(b)-1] = '\n'
	_, err := s.file.WriteAt(b, at)
	return err
}

// kept is how much of the disk the journal keeps for itself, so that commands can be run on a
// disk that others have filled: those that delete files.
const kept = 16 << 10

// empty makes the journal begin anew.
func (s *Store) empty() error {
	var err error
	if s.size > kept {
		err = s.file.Truncate(kept)
	}
	if s.size > 0 && err == nil {
		err = s.blank(0, min(s.size, kept))
	}
	if err == nil {
		s.size, s.dead = 0, 0
	}
	return err
}

// span is where a line is.
type span struct{ at, n int64 }

// compact writes the journal anew with what is needed, in place of the old one.
func (s *Store) compact() error {
	tmp := s.path() + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	fail := func(err error) error {
		return errors.Join(err, f.Close(), os.Remove(tmp))
	}
	// Zeros, because sandboxes cannot use fallocate. Without room for them, the lines may still fit.
	_, _ = f.WriteAt(make([]byte, kept), 0)
	var size int64
	moved := map[*record]span{}
	for id, r := range s.known {
		b := make([]byte, r.n)
		if _, err := s.file.ReadAt(b, r.at); err != nil {
			return fail(err)
		}
		if !bytes.HasSuffix(b, []byte("\n")) {
			return fail(errors.New("the journal of results is damaged"))
		}
		if r.plain && len(s.keys) > 1 {
			if b, err = s.resealed(id, b); err != nil {
				return fail(err)
			}
		}
		if _, err := f.WriteAt(b, size); err != nil {
			return fail(err)
		}
		moved[r] = span{size, int64(len(b))}
		size += int64(len(b))
	}
	if err := os.Rename(tmp, s.path()); err != nil {
		return fail(err)
	}
	if s.file != nil {
		s.file.Close()
	}
	for r, to := range moved {
		r.at, r.n, r.plain = to.at, to.n, r.plain && len(s.keys) == 1
	}
	s.file, s.size, s.dead = f, size, 0
	return nil
}
