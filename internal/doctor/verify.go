package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"deckhand/internal/datadir"
	"deckhand/internal/session"
)

// Store is the database with the log of a conversation.
type Store interface {
	session.Log
	Row(ctx context.Context, id session.ID) (session.Row, error)
	// Dump is what comes after a number, as lines of JSON.
	Dump(ctx context.Context, id session.ID, after int64) ([]byte, error)
	// Repair removes what comes after a number, and stores the row.
	Repair(ctx context.Context, id session.ID, after int64, row session.Row) error
}

// Verification says which log is verified.
type Verification struct {
	Store   Store
	ID      session.ID
	DataDir string
	Repair  bool // cut off what is damaged
	Out     io.Writer
}

// Run folds the log and holds it against every rule.
func (v Verification) Run(ctx context.Context) error {
	id := v.ID
	st, damage := session.Fold(ctx, v.Store, session.State{ID: id})
	if damage != nil && !errors.Is(damage, session.ErrCorrupt) {
		return damage
	}
	if !st.Exists() && damage == nil {
		return fmt.Errorf("there is no conversation %s", id)
	}
	row, err := v.Store.Row(ctx, id)
	if err != nil {
		return err
	}
	if damage == nil && (row.Last != st.Last || row.Status != st.Status() || row.Wants != st.Wants()) && !st.Deleted {
		damage = fmt.Errorf("the index has event %d and %s, the log has event %d and %s", row.Last, row.Status, st.Last, st.Status())
	}
	if damage == nil {
		fmt.Fprintf(v.Out, "conversation %s: %d events, all valid; %s, agent %s\n", id, st.Last, st.Status(), st.Agent)
		return nil
	}
	if !st.Exists() {
		return fmt.Errorf("conversation %s is damaged from its first event (%w) and cannot be repaired; delete it", id, damage)
	}
	if !v.Repair {
		return fmt.Errorf("conversation %s is valid up to event %d: %w; truncate it there with: deckhand doctor --repair %s", id, st.Last, damage, id)
	}
	return v.repair(ctx, st)
}

// repair ends a damaged log where it is still good. What is cut off is kept in a file first.
func (v Verification) repair(ctx context.Context, st session.State) error {
	unlock, err := datadir.Lock(v.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(v.DataDir, "cut-off-"+string(st.ID)+".jsonl")
	cut, err := v.Store.Dump(ctx, st.ID, st.Last)
	if err != nil {
		return err
	}
	if len(cut) > 0 {
		if err := os.WriteFile(path, cut, 0o600); err != nil {
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
