// Package results stores what was done by ID, so that nothing is done twice and no result
// is lost before it is acknowledged.
//
// It is a journal in the state folder of the sandbox, with one line for each start, end
// and acknowledgement; it survives the runner. Work that was started and never finished
// is Lost. A line is one write to an open file, because every command waits for two of
// them.
//
// Results contain the output of commands, including secrets, so they are encrypted. The
// key is in memory only: the server sends it to each runner of the sandbox, so that the
// next one can read the journal. Acknowledged results are overwritten.
package results

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
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
	// gaps is true when records may be missing that were written before: the
	// machine was restarted since the folder was made, or the folder is new, as in
	// a container that was replaced.
	gaps bool

	mu    sync.Mutex
	known map[string]*record
	key   []byte        // that SetKey was last given
	keys  []cipher.AEAD // the last one seals; those before it can still open
	file  *os.File
	size  int64 // of the journal
	dead  int64 // how much of it is obsolete
}

// record is what is known of one id.
type record struct {
	running chan struct{} // closed when it is finished; nil if it was begun by another runner
	done    bool
	at, n   int64 // where its last line is in the journal
	plain   bool  // an older runner wrote its result and did not seal it
	// unsaved is a result that could not be written, so that at least as long as
	// this runner lives nothing is called lost that was done.
	unsaved json.RawMessage
}

// line is a record in the journal.
type line struct {
	ID     string          `json:"id"`
	Done   bool            `json:"done,omitempty"`
	Gone   bool            `json:"gone,omitempty"`
	Sealed []byte          `json:"sealed,omitempty"`
	Result json.RawMessage `json:"result,omitempty"` // as older runners wrote it
}

// OpenKept is Open for a folder that is kept as long as the workspace: when it is new,
// nothing was done before, so no record can be missing.
func OpenKept(dir string) (*Store, error) { return openStore(dir, false) }

// Open opens the folder, which is made if need be.
func Open(dir string) (*Store, error) { return openStore(dir, true) }

func openStore(dir string, newHasGaps bool) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, known: map[string]*record{}}
	own := make([]byte, KeySize) // until there is a better one, which this runner alone has
	_, _ = rand.Read(own)
	if err := s.addKey(own); err != nil {
		return nil, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "boot")
	known, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.gaps = newHasGaps
		err = os.WriteFile(file, boot, 0o600)
	case err == nil:
		s.gaps = !bytes.Equal(known, boot)
	}
	if err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	return s, s.compact()
}

// Begin says where the work of this id stands and, if it is New, that it is
// begun. again is the caller's doubt whether it sent the id before. When it is
// Done, result holds what Finish was given.
func (s *Store) Begin(id string, again bool) (state State, result json.RawMessage, done <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.known[id]
	switch {
	case r != nil && r.done:
		if result, err = s.result(id, r); errors.Is(err, errSealed) {
			return Lost, nil, nil, nil
		}
		return Done, result, nil, err
	case r != nil && r.running != nil:
		return Running, nil, r.running, nil
	case r != nil, again && s.gaps:
		return Lost, nil, nil, nil
	}
	r = &record{running: make(chan struct{})}
	if r.at, r.n, err = s.append(line{ID: id}); err != nil {
		return 0, nil, nil, fmt.Errorf("the sandbox cannot remember what it does: %w", err)
	}
	s.known[id] = r
	return New, nil, r.running, nil
}

// Finish stores the result of work that Begin called New. With an error it is
// not on disk, and known only as long as this runner lives.
func (s *Store) Finish(id string, result any) error {
	b, err := json.Marshal(result)
	if err != nil {
		b = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.known[id]
	if r == nil || r.running == nil {
		return fmt.Errorf("%q was not started", id)
	}
	if err == nil {
		var at, n int64
		if at, n, err = s.append(line{ID: id, Done: true, Sealed: s.seal(id, b)}); err == nil {
			s.dead += r.n
			r.at, r.n = at, n
		} else {
			r.unsaved = b
		}
	}
	r.done = b != nil
	close(r.running)
	r.running = nil
	return err
}

// Result is what was stored by Finish.
func (s *Store) Result(id string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.known[id]
	if r == nil || !r.done {
		return nil, fs.ErrNotExist
	}
	return s.result(id, r)
}

// Ack forgets a result and removes it from the disk. What runs stays known.
func (s *Store) Ack(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.known[id]
	if r == nil || r.running != nil {
		return nil
	}
	if len(s.known) == 1 { // nothing else is known, so nothing is needed
		if err := s.empty(); err != nil {
			return err
		}
		delete(s.known, id)
		return nil
	}
	_, n, err := s.append(line{ID: id, Gone: true})
	if err != nil {
		return err
	}
	s.dead += r.n + n
	delete(s.known, id)
	if err := s.blank(r.at, r.n); err != nil {
		return err
	}
	if s.dead > maxDead && s.dead > s.size/2 {
		return s.compact()
	}
	return nil
}
