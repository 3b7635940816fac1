package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"deckhand/internal/advice"
	"deckhand/internal/datadir"
	"deckhand/internal/session"
)

// Store is the part of a database that verifies and repairs conversations.
type Store interface {
	session.Log
	Row(ctx context.Context, id session.ID) (session.Row, error)
	// Dump returns the events after a number, as lines of JSON.
	Dump(ctx context.Context, id session.ID, after int64) ([]byte, error)
	// Repair removes the events after a number, and stores the row.
	Repair(ctx context.Context, id session.ID, after int64, row session.Row) error
	// RestartChain recomputes the hash chain for the stored events.
	RestartChain(ctx context.Context, id session.ID) error
}

// Verification verifies one conversation.
type Verification struct {
	Store   Store
	ID      session.ID
	DataDir string
	Repair  bool // truncate a damaged log, or accept a broken hash chain
	Out     io.Writer
	// Flags are those with which other commands use the same data, for hints.
	Flags string
	// Unchecked says why the hash chain is not checked, if it is not.
	Unchecked Unchecked
}

// fold folds the log and compares it with the row. A server may be writing to both. Events of a newer version are an error
// but not damage: the log must not be truncated.
func (v Verification) fold(ctx context.Context) (st session.State, damage, err error) {
	st = session.State{ID: v.ID}
	for range 5 {
		st, damage = session.Fold(ctx, v.Store, st)
		if damage != nil {
			if errors.Is(damage, session.ErrCorrupt) {
				return st, damage, nil
			}
			if errors.Is(damage, session.ErrNewer) {
				damage = advice.With(damage, "check the conversation with that version of deckhand")
			}
			return st, nil, damage
		}
		if !st.Exists() {
			return st, nil, fmt.Errorf("there is no conversation %s", v.ID)
		}
		row, err := v.Store.Row(ctx, v.ID)
		if errors.Is(err, session.ErrCorrupt) && !st.Deleted {
			return st, err, nil
		}
		if err != nil && !st.Deleted {
			return st, nil, err
		}
		if row.Last == st.Last && row.Status == st.Status() && row.Wants == st.Wants() || st.Deleted {
			return st, nil, nil
		}
		damage = fmt.Errorf("the index has event %d and %s, the log has event %d and %s", row.Last, row.Status, st.Last, st.Status())
	}
	return st, damage, nil
}

// restartable reports whether the only damage is a broken hash chain.
func restartable(damage error) bool {
	var broken interface{ ChainBroken() int64 }
	return errors.As(damage, &broken)
}

// Run verifies the conversation, prints the result, and repairs the conversation if Repair is set.
func (v Verification) Run(ctx context.Context) error {
	id := v.ID
	st, damage, err := v.fold(ctx)
	if err != nil {
		return err
	}
	if restartable(damage) && v.Repair {
		if st, damage, err = v.restart(ctx, damage); err != nil {
			return err
		}
	}
	if damage == nil {
		all := "all valid"
		if v.Unchecked.Why != "" {
			all = "all can be read"
		}
		fmt.Fprintf(v.Out, "conversation %s: %d events, %s; %s, agent %s\n", id, st.Last, all, st.Status(), st.Agent)
		if v.Unchecked.Why != "" {
			fmt.Fprintf(v.Out, "hash chain %s; %s\n", v.Unchecked, v.Unchecked.Fix)
		}
		return nil
	}
	repair := command(v.Flags, "--repair", string(id))
	if !v.Repair && restartable(damage) {
		return fmt.Errorf("conversation %s is valid up to event %d: %w; restore a backup, or accept the events as they are with: %s", id, st.Last, damage, repair)
	}
	if !st.Exists() {
		return fmt.Errorf("conversation %s is damaged from its first event (%w) and cannot be repaired; delete it", id, damage)
	}
	if !v.Repair {
		return fmt.Errorf("conversation %s is valid up to event %d: %w; truncate it there with: %s", id, st.Last, damage, repair)
	}
	if v.Unchecked.Why != "" && v.Unchecked != noChain { // what is written would not be part of the hash chain
		return fmt.Errorf("conversation %s is valid up to event %d: %w; it was not repaired, because %s; %s", id, st.Last, damage, v.Unchecked.Why, v.Unchecked.Fix)
	}
	return v.repair(ctx, st)
}

// locked runs a repair while no server uses the data directory.
func (v Verification) locked(do func() error) error {
	unlock, err := datadir.Lock(v.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// restart accepts events that do not match their hash chain, and folds the log again.
func (v Verification) restart(ctx context.Context, damage error) (session.State, error, error) {
	err := v.locked(func() error { return v.Store.RestartChain(ctx, v.ID) })
	if err != nil && !errors.Is(err, session.ErrCorrupt) {
		return session.State{}, nil, err
	}
	fmt.Fprintf(v.Out, "conversation %s: %v; accepted the events as they are\n", v.ID, damage)
	return v.fold(ctx)
}

// repair truncates a damaged log after the last valid event. It saves the removed events to a file first.
func (v Verification) repair(ctx context.Context, st session.State) error {
	return v.locked(func() error { return v.cut(ctx, st) })
}

func (v Verification) cut(ctx context.Context, st session.State) error {
	if err := st.ID.Check(); err != nil { // the database may come from a stranger
		return err
	}
	cut, err := v.Store.Dump(ctx, st.ID, st.Last)
	if err != nil {
		return err
	}
	if len(cut) > 0 {
		path, err := v.save(cut)
		if err != nil {
			return err
		}
		fmt.Fprintf(v.Out, "saved the removed events to %s\n", path)
	}
	if err := v.Store.Repair(ctx, st.ID, st.Last, st.Row()); err != nil {
		return err
	}
	fmt.Fprintf(v.Out, "conversation %s now ends after event %d; %s, agent %s\n", st.ID, st.Last, st.Status(), st.Agent)
	return nil
}

// save writes what is cut off to a new file: an earlier repair may have written one.
func (v Verification) save(cut []byte) (path string, err error) {
	for n := 1; ; n++ {
		name := "cut-off-" + string(v.ID)
		if n > 1 {
			name += fmt.Sprintf("-%d", n)
		}
		path = filepath.Join(v.DataDir, name+".jsonl")
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(cut)
		return path, errors.Join(err, f.Sync(), f.Close())
	}
}
