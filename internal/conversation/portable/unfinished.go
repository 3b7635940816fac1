package portable

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deckhand/internal/session"
)

// begin records an import in progress in the data directory, which only this server uses. It returns a function that removes the
// record.
func (s *Service) begin(id session.ID) (finished func() error, err error) {
	if s.Dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.begun == nil {
		s.begun = map[session.ID]bool{}
	}
	s.begun[id] = true
	s.mu.Unlock()
	name := filepath.Join(s.Dir, string(id))
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(s.Dir)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	return func() error {
		err := os.Remove(name)
		s.mu.Lock()
		delete(s.begun, id)
		s.mu.Unlock()
		return err
	}, errors.Join(err, f.Close())
}

// Sweep deletes the conversations of imports that an earlier process of this server did not finish. Failures are logged, and the next
// process tries again.
func (s *Service) Sweep(ctx context.Context) error {
	left, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Logger.Error("cannot read the records of imports", "error", err)
	}
	for _, f := range left {
		id := session.ID(f.Name())
		s.mu.Lock()
		mine := s.begun[id]
		s.mu.Unlock()
		if mine {
			continue
		}
		err := s.sweep(ctx, id)
		if err == nil {
			err = os.Remove(filepath.Join(s.Dir, f.Name()))
		}
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("cannot delete the conversation of an unfinished import", "session", id, "error", err)
		}
	}
	return nil
}

func (s *Service) sweep(ctx context.Context, id session.ID) error {
	st, err := s.Conversations.Sessions.Load(ctx, id)
	if errors.Is(err, session.ErrNotFound) || err == nil && (st.Deleted || !strings.HasSuffix(st.Title, unfinished)) {
		return nil // it was not stored, or is finished
	}
	if err != nil {
		return err
	}
	return s.Conversations.Delete(ctx, st.Owner, id)
}
