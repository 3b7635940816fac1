// Package move copies an installation from one database to another, and verifies the copy.
//
// The target stores a record of the progress with each batch of rows, so an interrupted move continues where it stopped, and
// servers refuse an unfinished target. The source is only read.
package move

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"deckhand/internal/store"
)

// Limits of a batch, which is stored in one transaction. The row that exceeds batchBytes is the last of its batch.
const (
	defaultRows = 512
	batchBytes  = 4 << 20
)

// Move copies an installation from one database to another.
type Move struct {
	From, To store.Side
	// Rows is the maximum number of rows in a batch; 0 is the default.
	Rows int
	// OnProgress, if set, is called after each batch.
	OnProgress func(Progress)
	// OnConversation, if set, is called for each verified conversation.
	OnConversation func(Conversation)
}

// Progress is the progress of a move.
type Progress struct {
	// Phase is Copying, Indexing or Verifying.
	Phase string
	Table string
	// Rows is the number of rows of the table that this run has copied or verified.
	Rows int64
	// Resumed is true if this run continues an interrupted move.
	Resumed bool
}

// The phases of a move.
const (
	Copying   = "copying"
	Indexing  = "indexing"
	Verifying = "verifying"
)

// Report is the result of a move.
type Report struct {
	Tables        []Digests
	Conversations int64
	// Already is true if an earlier run has finished the move: nothing was copied.
	Already bool
}

// record is the progress of an unfinished move, stored in the target.
type record struct {
	Source string   `json:"source"`
	Table  string   `json:"table"`
	After  []string `json:"after,omitempty"` // the key of the last row that was copied; nil before the first one
}

// Errors of a target or source that cannot be used.
var (
	ErrOther = errors.New("the target contains data of another installation; use an empty database")
	// ErrUnfinished is the error of a source that is itself the target of a move.
	ErrUnfinished = errors.New("the source is the target of an unfinished migration; finish that migration first")
	ErrEmpty      = errors.New("the source contains no Deckhand data")
)

// Run copies the rows that the target lacks, compares both databases, and marks the target as finished.
func (m *Move) Run(ctx context.Context) (Report, error) {
	if m.Rows == 0 {
		m.Rows = defaultRows
	}
	source, meta, err := m.source(ctx)
	if err != nil {
		return Report{}, err
	}
	r, moved, err := m.target(ctx, source)
	if err != nil {
		return Report{}, err
	}
	if moved {
		report, err := m.verify(ctx)
		if report.Already = true; err != nil {
			err = fmt.Errorf("the target already contains this installation, but differs from the source; use an empty database (%w)", err)
		}
		return report, err
	}
	resumed := r != nil
	if r == nil {
		r = &record{Source: source, Table: store.Tables[1].Name}
		if err := m.To.Write(ctx, store.Tables[0], meta, r.encode(), true); err != nil {
			return Report{}, err
		}
	}
	begin := slices.IndexFunc(store.Tables, func(t store.Table) bool { return t.Name == r.Table })
	if begin < 0 {
		return Report{}, fmt.Errorf("the migration was started by another version of deckhand (it stopped at table %q); use that version, or empty the target and start again", r.Table)
	}
	for _, t := range store.Tables[begin:] {
		if t.Name != r.Table {
			*r = record{Source: source, Table: t.Name}
		}
		if err := m.copy(ctx, t, r, resumed); err != nil {
			return Report{}, err
		}
	}
	m.tell(Progress{Phase: Indexing})
	if err := m.To.Finish(ctx); err != nil {
		return Report{}, err
	}
	report, err := m.verify(ctx)
	if err != nil {
		return report, fmt.Errorf("%w; if the source was used since the migration started, empty the target and start again", err)
	}
	return report, m.To.Done(ctx)
}

func (m *Move) tell(p Progress) {
	if m.OnProgress != nil {
		m.OnProgress(p)
	}
}

// source returns the name of the source's installation, and its rows of meta.
func (m *Move) source(ctx context.Context) (id string, meta [][]any, err error) {
	moving, err := readRecord(ctx, m.From)
	if err != nil {
		return "", nil, err
	}
	if moving != nil {
		return "", nil, ErrUnfinished
	}
	for row, err := range rowsOf(ctx, m.From, store.Tables[0]) {
		if err != nil {
			return "", nil, err
		}
		meta = append(meta, row)
	}
	if id = installation(meta); id == "" {
		return "", nil, ErrEmpty
	}
	return id, meta, nil
}

// installation returns a name for an installation: a hash of the key of its session IDs.
func installation(meta [][]any) string {
	for _, row := range meta {
		if key, _ := row[1].([]byte); row[0] == store.MetaID && len(key) > 0 {
			sum := sha256.Sum256(append([]byte("installation "), key...))
			return hex.EncodeToString(sum[:8])
		}
	}
	return ""
}

// target returns the record of an unfinished move, nil for an empty database. moved is true if the target already contains
// the installation.
func (m *Move) target(ctx context.Context, source string) (r *record, moved bool, err error) {
	if r, err = readRecord(ctx, m.To); err != nil {
		return nil, false, err
	}
	if r != nil {
		if r.Source != source {
			return nil, false, fmt.Errorf("%w, or finish the migration into it (from installation %s, not %s)", ErrOther, r.Source, source)
		}
		return r, false, nil
	}
	empty := true
	var meta [][]any
	for _, t := range store.Tables {
		err := m.To.Read(ctx, t, nil, 100, func(row []any) error {
			if t.Name == store.Tables[0].Name {
				meta = append(meta, row)
				empty = empty && row[0] == store.MetaID // a new database has this row
			} else {
				empty = false
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
	}
	if empty {
		return nil, false, nil
	}
	if installation(meta) == source {
		return nil, true, nil
	}
	return nil, false, ErrOther
}

// readRecord returns the record of an unfinished move into a database, nil if there is none.
func readRecord(ctx context.Context, s store.Side) (r *record, err error) {
	t := store.Tables[0]
	t.Only, t.Except = store.MetaMove, ""
	err = s.Read(ctx, t, nil, 1, func(row []any) error {
		r = &record{}
		b, _ := row[1].([]byte)
		if err := json.Unmarshal(b, r); err != nil {
			return fmt.Errorf("cannot read the progress of the migration in %s: %w", s, err)
		}
		return nil
	})
	return r, err
}

// copy copies the rows of a table that come after the record.
func (m *Move) copy(ctx context.Context, t store.Table, r *record, resumed bool) error {
	after, err := r.key(t)
	if err != nil {
		return err
	}
	for copied := int64(0); ; {
		rows, err := page(ctx, m.From, t, after, m.Rows)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		after = rows[len(rows)-1][:t.Key]
		r.setKey(after)
		if err := m.To.Write(ctx, t, rows, r.encode(), false); err != nil {
			return err
		}
		copied += int64(len(rows))
		m.tell(Progress{Phase: Copying, Table: t.Name, Rows: copied, Resumed: resumed})
	}
}

func (r *record) encode() []byte {
	b, _ := json.Marshal(r) // of texts
	return b
}

// setKey stores the key of the last copied row, and key returns it.
func (r *record) setKey(key []any) {
	r.After = nil
	for _, v := range key {
		switch v := v.(type) {
		case int64:
			r.After = append(r.After, strconv.FormatInt(v, 10))
		case bool:
			r.After = append(r.After, strconv.FormatBool(v))
		case string: // may be invalid UTF-8
			r.After = append(r.After, base64.StdEncoding.EncodeToString([]byte(v)))
		}
	}
}

func (r *record) key(t store.Table) (key []any, err error) {
	if r.After == nil {
		return nil, nil
	}
	if len(r.After) != t.Key {
		return nil, fmt.Errorf("the progress of the migration is damaged: it has %d values for the key of table %s; empty the target and start again", len(r.After), t.Name)
	}
	for i, text := range r.After {
		var v any
		var failed error
		switch t.Columns[i].Type {
		case store.Int:
			v, failed = strconv.ParseInt(text, 10, 64)
		case store.Bool:
			v, failed = strconv.ParseBool(text)
		default:
			var b []byte
			b, failed = base64.StdEncoding.DecodeString(text)
			v = string(b)
		}
		if failed != nil {
			return nil, fmt.Errorf("the progress of the migration is damaged: invalid key of table %s; empty the target and start again: %w", t.Name, failed)
		}
		key = append(key, v)
	}
	return key, nil
}
