// Package checkpoint keeps earlier states of a workspace and restores them.
//
// A store is a folder next to one workspace, out of the sandbox's reach. Each checkpoint has a number, N.meta with
// the files that differ from the checkpoint before, and N.data with contents that the store did not have yet. So a
// checkpoint stores only changes, a workspace needs no git, and removing the folder removes everything.
//
// The workspace is hostile: it may change while it is read, and links may lead anywhere. Nothing in it is accessed by path;
// see package tree. Files with unchanged size, inode and times are not read.
package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/checkpoint/record"
)

// Limits on the cost of checkpoints.
const (
	// MaxFile is the size of the largest file that is stored. A restore does not touch larger ones.
	MaxFile = 256 << 20
	// MaxFiles is the maximum number of files, links and folders of a workspace with checkpoints.
	MaxFiles = 300_000
	// MaxBytes is the size of a store above which its oldest checkpoints are dropped, and the maximum size of all files of a
	// workspace.
	MaxBytes = 4 << 30
	// MaxCheckpoints is the number of checkpoints that are kept.
	MaxCheckpoints = 500
	// maxChain is the maximum number of records that are read to load one checkpoint.
	maxChain = 40
)

// Errors of a store. They may be wrapped.
var (
	// ErrTooLarge means that the workspace has more files or bytes than a checkpoint may have.
	ErrTooLarge = errors.New("the workspace is too large for checkpoints")
	// ErrNone means that there is no such checkpoint.
	ErrNone = errors.New("there is no such checkpoint")
	// ErrCorrupt means that a checkpoint cannot be read.
	ErrCorrupt = record.ErrCorrupt
)

// Workspace is the folder whose states are kept.
type Workspace struct {
	// Dir is the folder.
	Dir string
	// First is the first ID of the range of users that own the files, 0 if the server's user owns them.
	First uint32
	// Size is the number of users in the range.
	Size uint32
}

// Store holds the checkpoints of one workspace. Calls that change it must not overlap.
type Store struct {
	dir string
	// MaxBytes and MaxCheckpoints override the limits above.
	MaxBytes       int64
	MaxCheckpoints int
	// cache is the newest checkpoint, for the next Take.
	cache cache
	// step is called between the steps of a restore, for tests.
	step func()
}

// Open returns the store in a folder, which the first checkpoint creates.
func Open(dir string) *Store {
	return &Store{dir: dir, MaxBytes: MaxBytes, MaxCheckpoints: MaxCheckpoints, step: func() {}}
}

// Taken is a checkpoint.
type Taken struct {
	Number int
	// Files is the number of its files, Changed the number that differ from the checkpoint before. If Changed is 0, both have the
	// same state.
	Files, Changed int
	// Bytes is the number of bytes added to the store.
	Bytes int64
	// LeftOut is the number of files that are not in it because they are too large or cannot be read.
	LeftOut int
	// Previous is the newest checkpoint before, and Verified the last time at which the workspace was known to be in its state.
	Previous int
	Verified time.Time
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }
func (s *Store) meta(n int) string       { return s.path(strconv.Itoa(n) + ".meta") }
func (s *Store) data(n int) string       { return s.path(strconv.Itoa(n) + ".data") }

// Numbers returns the checkpoints that can be restored, oldest first.
func (s *Store) Numbers() ([]int, error) {
	names, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range names {
		if base, ok := strings.CutSuffix(e.Name(), ".meta"); ok {
			if n, err := strconv.Atoi(base); err == nil && n > 0 {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// Bytes returns the disk usage of the store.
func (s *Store) Bytes() (int64, error) {
	names, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var sum int64
	for _, e := range names {
		var st unix.Stat_t
		if unix.Lstat(s.path(e.Name()), &st) == nil {
			sum += st.Blocks * 512
		}
	}
	return sum, err
}

// Link makes to a store with the same checkpoints. They share files, which are never written to again.
func (s *Store) Link(to *Store) error {
	numbers, err := s.Numbers()
	if err != nil || len(numbers) == 0 {
		return err
	}
	if err := to.makeDir(); err != nil {
		return err
	}
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range names {
		if !strings.HasSuffix(e.Name(), ".meta") && !strings.HasSuffix(e.Name(), ".data") {
			continue
		}
		if err := os.Link(s.path(e.Name()), to.path(e.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("copying checkpoints: %w", err)
		}
	}
	return syncDir(to.dir)
}

// makeDir creates the folder of the store, but no parent folders: they may have been removed since.
func (s *Store) makeDir() error {
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// journal is written before the first file of a restore and removed after the last one.
type journal struct {
	// Target is the checkpoint to restore, Undo the checkpoint with the state before.
	Target int `json:"target"`
	Undo   int `json:"undo"`
	// Made is true if Target was made for this restore.
	Made bool `json:"made,omitempty"`
	// Changed and Git are those of Restored.
	Changed int  `json:"changed"`
	Git     bool `json:"git,omitempty"`
	// Note is the caller's; see Unrecorded.
	Note []byte `json:"note,omitempty"`
}

const (
	journalName = "restoring"
	// doneName is the journal of a complete restore that the caller has not recorded yet.
	doneName = "restored"
	// verifiedName is an empty file. Its time is that of the last successful Take, even one that found no changes.
	verifiedName = "verified"
)

// verified returns the last time at which the workspace was in the state of a checkpoint, the newest one.
func (s *Store) verified(newest int) time.Time {
	info, err := os.Lstat(s.path(verifiedName))
	if err != nil {
		info, err = os.Lstat(s.meta(newest))
	}
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// verify stores such a time. It is not made durable: an earlier time does no harm.
func (s *Store) verify(at time.Time) {
	name := s.path(verifiedName)
	if err := os.Chtimes(name, at, at); errors.Is(err, fs.ErrNotExist) && os.WriteFile(name, nil, 0o600) == nil {
		_ = os.Chtimes(name, at, at)
	}
}

// Pending reports whether a restore was interrupted, so that Finish has to be called.
func (s *Store) Pending() bool {
	_, err := os.Lstat(s.path(journalName))
	return err == nil
}

func (s *Store) readJournal(name string) (j journal, err error) {
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		return j, err
	}
	return j, json.Unmarshal(b, &j)
}

func (s *Store) writeJournal(j journal) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return s.replace(journalName, b)
}

func (s *Store) dropJournal() error { return s.remove(journalName) }

func (s *Store) remove(name string) error {
	if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// complete ends the journal of a complete restore. One with a note is kept until Recorded; one without, such as the way
// back from a restore that was refused, drops the note of the restore before.
func (s *Store) complete(j journal) error {
	if len(j.Note) == 0 {
		if err := s.Recorded(); err != nil {
			return err
		}
		return s.dropJournal()
	}
	return os.Rename(s.path(journalName), s.path(doneName))
}

// Unrecorded returns the last restore with a note if Recorded was not called since, and reports whether there is one.
func (s *Store) Unrecorded() (note []byte, r Restored, ok bool) {
	j, err := s.readJournal(doneName)
	if err != nil {
		return nil, r, false
	}
	return j.Note, Restored{Undo: Taken{Number: j.Undo}, Target: j.Target, Changed: j.Changed, Git: j.Git}, true
}

// Recorded marks the last restore as recorded by the caller.
func (s *Store) Recorded() error { return s.remove(doneName) }

// replace writes a file of the store atomically: a crash leaves the old one or the new one.
func (s *Store) replace(name string, body []byte) error {
	f, err := os.OpenFile(s.path(name+".new"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(s.path(name+".new"), s.path(name)); err != nil {
		return err
	}
	return syncDir(s.dir)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// ended returns the error of a context that has ended, for loops that check it periodically.
func ended(ctx context.Context, i int) error {
	if i%256 != 0 {
		return nil
	}
	return ctx.Err()
}
