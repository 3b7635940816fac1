package packed

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"deckhand/internal/session"
)

// Values of the column attention: what a session needs from the server.
const (
	nothing int64 = iota
	wanting
	idling
	waking // the rules know of none: what starts wants a loop
)

// Attention returns the value for a row. Only stopped sessions have the value 0, so the others are found by it.
func Attention(r session.Row) int64 {
	switch {
	case r.Wants:
		return wanting
	case r.Status == session.Running:
		return idling
	case r.Status != session.Halted:
		return waking
	}
	return nothing
}

// FirstOf puts rows in the order of lists and cuts them off.
func FirstOf(rows []session.Row, limit int) []session.Row {
	slices.SortFunc(rows, func(a, b session.Row) int { return InOrder(CursorOf(a), CursorOf(b)) })
	return rows[:min(len(rows), limit)]
}

// CursorOf is where a row is in a list, and InOrder which of two places comes first.
func CursorOf(r session.Row) session.Cursor { return session.Cursor{CreatedAt: r.CreatedAt, ID: r.ID} }

// InOrder compares two places in a list.
func InOrder(a, b session.Cursor) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

// Piece is some rows in the order of their numbers, in which old sessions are looked for.
type Piece struct {
	After int64 // the number before the first row
	last  int64
	rows  int
	found []session.ID
}

// PieceRows is how many rows a piece has; fewer are the last.
const PieceRows = 1024

// Begin forgets the rows of a read that failed.
func (p *Piece) Begin() { p.rows, p.found = 0, nil }

// Add is called for each row.
func (p *Piece) Add(n int64, id string, old bool) {
	if p.rows, p.last = p.rows+1, n; old {
		p.found = append(p.found, session.ID(id))
	}
}

// pieceFactor is how many times longer Old pauses than it reads.
const pieceFactor = 9

// Old yields the old sessions of all pieces. An index could find them faster, but every append would have to change it.
func Old(ctx context.Context, read func(*Piece) error) iter.Seq2[session.ID, error] {
	return func(yield func(session.ID, error) bool) {
		for p := (Piece{rows: PieceRows}); p.rows == PieceRows; p.After = p.last {
			begin := time.Now()
			p.Begin()
			if err := read(&p); err != nil {
				yield("", err)
				return
			}
			Throttle(ctx, begin, pieceFactor)
			for _, id := range p.found {
				if !yield(id, nil) {
					return
				}
			}
		}
	}
}
