package postgres

import (
	"context"
	"slices"
	"strconv"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
)

// A word that more of an owner's sessions have than this is found sooner in the list itself.
const fewMatches = 256

// selectMatches uses only the index of words: it finds sessions that have all of these groups of
// three letters, in any order, so the rows found must still be compared with the text.
const selectMatches = `SELECT s.row, s.owner = $2 AND NOT s.deleted FROM (SELECT n FROM deckhand.words WHERE grams @> $1 LIMIT 257) w
	JOIN deckhand.sessions s ON s.n = w.n`

// ownerGram is the number of an owner in the index of words.
func ownerGram(owner string) int32 { return pg.Digest(owner) | -1<<31 }

// grams are the groups of three bytes in a text, as positive numbers, each once.
func grams(text string) (all []int32) {
	for i := range len(text) - 2 {
		all = append(all, int32(text[i])<<16|int32(text[i+1])<<8|int32(text[i+2]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// gramList is what the index of words gets of a row: an array as PostgreSQL writes it.
func gramList(r session.Row) string {
	all := grams(packed.WordsOf(r))
	if len(all) == 0 || r.Deleted {
		return "{}"
	}
	b := strconv.AppendInt([]byte{'{'}, int64(ownerGram(r.Owner)), 10)
	for _, g := range all {
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(g), 10)
	}
	return string(append(b, '}'))
}

// Grams is what the index of words gets of a row, "{}" for nothing.
func Grams(r session.Row) string { return gramList(r) }

// matches is Rows by the index of words. It is not ok if the index cannot help: then the
// list has to be searched.
func (db *DB) matches(ctx context.Context, q session.Query, search packed.Search) (rows []session.Row, ok bool, err error) {
	parts := search.Parts()
	if len(parts) == 0 {
		return nil, false, nil
	}
	wanted := []int32{ownerGram(q.Owner)}
	for _, part := range parts {
		wanted = append(wanted, grams(part)...)
	}
	count := 0
	err = db.base.View(ctx, func(c *pg.Conn) error {
		rows, count = rows[:0], 0
		return c.Query(selectMatches, func(v []any) error {
			if count++; !pg.Truth(v[1]) || !search.Wants(pg.Bytes(v[0])) {
				return nil
			}
			r, err := packed.ReadRow(pg.Bytes(v[0]))
			if err == nil && (q.Before == nil || packed.InOrder(*q.Before, packed.CursorOf(r)) < 0) {
				rows = append(rows, r)
			}
			return err
		}, wanted, q.Owner)
	})
	if err != nil || count > fewMatches {
		return nil, false, err
	}
	return packed.FirstOf(rows, q.Limit), true, nil
}
