package packed

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"deckhand/internal/session"
)

// A row is stored whole in one column, beside the few that SQLite must look at
// itself: reading twenty rows of one column is several times faster than of
// seventeen. It is a version, then texts preceded by their length and numbers,
// in the order of fields.

// rowPlain is the version of a row without a holder and without pull requests;
// 1 had no step. rowRequests is added to the version of a row that ends with its
// pull requests as JSON, rowHolder to that of a row with a holder: few sessions
// have either, and a row is written with every append.
const rowPlain, rowRequests, rowHolder = 2, 1, 2

// fields are the texts and numbers of a row, always in this order.
func fields(r *session.Row) (texts []*string, numbers []*int64) {
	t := &r.Totals
	return []*string{(*string)(&r.ID), &r.Owner, &r.Title, (*string)(&r.Status), (*string)(&r.Agent), &r.ErrorID, &r.Reason,
			&r.Trigger, &r.Repository, &r.Branch, &r.Provider, &t.Model, &r.Step, &r.Holder},
		[]*int64{&r.Last, (*int64)(&t.Cost), &t.Input, &t.Output, &t.CacheRead, &t.CacheWrite}
}

// Row is the blob of a session's row.
func Row(r session.Row) []byte {
	b := make([]byte, 0, 160+len(r.Title)+len(r.Reason))
	texts, numbers := fields(&r)
	if r.Holder != "" {
		b = append(b, rowPlain+rowHolder)
	} else {
		b = append(b, rowPlain)
		texts = texts[:len(texts)-1]
	}
	for _, s := range texts {
		b = binary.AppendUvarint(b, uint64(len(*s)))
		b = append(b, *s...)
	}
	for _, n := range numbers {
		b = binary.AppendVarint(b, *n)
	}
	b = binary.AppendVarint(b, r.CreatedAt.UnixMicro())
	b = binary.AppendVarint(b, r.UpdatedAt.UnixMicro())
	var flags byte
	if r.Wants {
		flags |= 1
	}
	if r.Deleted {
		flags |= 2
	}
	b = append(b, flags)
	if len(r.Requests) > 0 {
		b[0] += rowRequests
		list, _ := json.Marshal(r.Requests) // of texts and numbers
		b = append(b, list...)
	}
	return b
}

// ReadRow reverses Row.
func ReadRow(b []byte) (session.Row, error) {
	var r session.Row
	bad := fmt.Errorf("%w: the row of a session: %v", session.ErrCorrupt, ErrCut)
	if len(b) == 0 || b[0] < 1 || b[0] > rowPlain+rowRequests+rowHolder {
		return r, bad
	}
	texts, numbers := fields(&r)
	version := b[0]
	requests := version == rowPlain+rowRequests || version == rowPlain+rowRequests+rowHolder
	switch {
	case version < rowPlain:
		texts = texts[:len(texts)-2]
	case version < rowPlain+rowHolder:
		texts = texts[:len(texts)-1]
	}
	b = b[1:]
	for _, s := range texts {
		piece, rest, ok := cutPiece(b)
		if !ok {
			return r, bad
		}
		*s, b = string(piece), rest
	}
	var created, updated int64
	for _, n := range append(numbers, &created, &updated) {
		v, size := binary.Varint(b)
		if size <= 0 {
			return r, bad
		}
		*n, b = v, b[size:]
	}
	if len(b) == 0 || (len(b) > 1) != requests || len(b) > 1 && json.Unmarshal(b[1:], &r.Requests) != nil {
		return r, bad
	}
	r.CreatedAt, r.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	r.Wants, r.Deleted = b[0]&1 != 0, b[0]&2 != 0
	return r, nil
}
