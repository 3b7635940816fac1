// Package results remembers what was done under which id, so that nothing is
// done twice and no result is lost between its end and its acknowledgement.
//
// A record is a file in the sandbox's state folder. It is begun before the work
// and finished after it; it survives the runner. What was begun and never
// finished is Lost.
package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// State is where a piece of work stands.
type State int

// The states that Begin finds.
const (
	New     State = iota // it is begun now; the caller does it and calls Finish
	Running              // it is being done by this runner: wait on Done
	Done                 // it was done; there is a result
	Lost                 // it was begun by a runner that died
)

// Store keeps the records.
type Store struct {
	dir string
	// rebooted is true when the machine was restarted since the folder was made:
	// then records may be missing that were written before.
	rebooted bool

	mu      sync.Mutex
	running map[string]chan struct{}
	// unsaved holds results that could not be written, so that at least as long
	// as this runner lives nothing is called lost that was done.
	unsaved map[string]json.RawMessage
}

type record struct {
	ID     string          `json:"id"`
	Done   bool            `json:"done"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Open opens the folder, which is made if need be.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, running: map[string]chan struct{}{}, unsaved: map[string]json.RawMessage{}}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "boot")
	known, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, os.WriteFile(file, boot, 0o600)
	case err != nil:
		return nil, err
	}
	s.rebooted = !bytes.Equal(known, boot)
	return s, nil
}

func (s *Store) path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+".json")
}

// Begin says where the work of this id stands and, if it is New, that it is
// begun. again is the caller's doubt whether it sent the id before. When it is
// Done, result holds what Finish was given.
func (s *Store) Begin(id string, again bool) (state State, result json.RawMessage, done <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, ok := s.running[id]; ok {
		return Running, nil, ch, nil
	}
	if b, ok := s.unsaved[id]; ok {
		return Done, b, nil, nil
	}
	r, err := s.read(id)
	switch {
	case err == nil && r.Done:
		return Done, r.Result, nil, nil
	case err == nil:
		return Lost, nil, nil, nil
	case !errors.Is(err, fs.ErrNotExist):
		return 0, nil, nil, err
	case again && s.rebooted:
		return Lost, nil, nil, nil
	}
	if err := s.write(record{ID: id}); err != nil {
		return 0, nil, nil, fmt.Errorf("the sandbox cannot remember what it does: %w", err)
	}
	ch := make(chan struct{})
	s.running[id] = ch
	return New, nil, ch, nil
}

// Finish stores the result of work that Begin called New. With an error it is
// not on disk, and known only as long as this runner lives.
func (s *Store) Finish(id string, result any) error {
	b, err := json.Marshal(result)
	if err == nil {
		err = s.write(record{ID: id, Done: true, Result: b})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && b != nil {
		s.unsaved[id] = b
	}
	if ch, ok := s.running[id]; ok {
		close(ch)
		delete(s.running, id)
	}
	return err
}

// Result is what was stored by Finish.
func (s *Store) Result(id string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.unsaved[id]; ok {
		return b, nil
	}
	r, err := s.read(id)
	if err == nil && !r.Done {
		err = fs.ErrNotExist
	}
	return r.Result, err
}

// Ack forgets a result. What runs stays known.
func (s *Store) Ack(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.running[id]; ok {
		return nil
	}
	delete(s.unsaved, id)
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Store) read(id string) (record, error) {
	var r record
	b, err := os.ReadFile(s.path(id))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil || r.ID != id {
		return record{ID: id}, nil // half written by a runner that died: it was begun
	}
	return r, nil
}

// write replaces the record in one go.
func (s *Store) write(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if !r.Done { // nothing to replace
		if err = os.WriteFile(s.path(r.ID), b, 0o600); err != nil {
			_ = os.Remove(s.path(r.ID)) // a part of it would say that the work was begun
		}
		return err
	}
	tmp := s.path(r.ID) + ".tmp"
	if err = os.WriteFile(tmp, b, 0o600); err == nil {
		err = os.Rename(tmp, s.path(r.ID))
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}
