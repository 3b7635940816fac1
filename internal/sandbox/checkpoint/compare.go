package checkpoint

import (
	"fmt"
	"io"
	"os"

	"deckhand/internal/sandbox/checkpoint/lines"
	"deckhand/internal/sandbox/checkpoint/plan"
	"deckhand/internal/sandbox/checkpoint/record"
)

// Change is a difference between two checkpoints.
type Change struct {
	Path string
	// From is the old path of a renamed file.
	From string
	// Status is A for a new file, D for a removed one, M for a changed one, R for a renamed one.
	Status byte
	// Old and New are the sizes before and after.
	Old, New int64
	// Link is true if one of the two is a symbolic link.
	Link bool
	// Added and Removed are the numbers of lines, if Counted: not for binary files, nor after maxRead bytes.
	Added, Removed  int
	Counted, Binary bool
}

const (
	maxText = 1 << 20  // bytes of a file whose lines are counted
	maxRead = 64 << 20 // bytes of all files of a comparison
)

// Compare lists the files and links that differ between a checkpoint of this store and one of another or the same
// store, sorted by path.
func (s *Store) Compare(n int, other *Store, m int) ([]Change, error) {
	from, _, err := s.load(n)
	if err != nil {
		return nil, err
	}
	to, _, err := other.load(m)
	if err != nil {
		return nil, err
	}
	for _, st := range []record.State{from, to} { // kept entries have no content to compare, and folders show in their files
		for p, e := range st {
			if e.Kind == record.Kept || e.Kind == record.Folder {
				delete(st, p)
			}
		}
	}
	c := comparison{from: s, to: other, left: maxRead, texts: map[*record.Entry][]byte{}}
	var out []Change
	for _, x := range c.renamed(diff(from, to)) {
		out = append(out, c.change(x))
	}
	return out, nil
}

// comparison reads the texts of changed files.
type comparison struct {
	from, to *Store
	left     int64 // bytes that may still be read
	texts    map[*record.Entry][]byte
}

// text reads a file; ok is false if it is too large. A missing file is empty.
func (c *comparison) text(s *Store, e *record.Entry) (b []byte, ok bool) {
	if e == nil {
		return nil, true
	}
	if b, ok = c.texts[e]; ok {
		return b, true
	}
	if e.Kind == record.File && (e.Size > maxText || e.Size > c.left) {
		return nil, false
	}
	b, err := s.content(e, maxText)
	c.left -= int64(len(b))
	c.texts[e] = b
	return b, err == nil
}

// renamed joins the removal of a file and the addition of a similar one. Git's own files are left as they are.
func (c *comparison) renamed(changes []change) []change {
	var gone, fresh []lines.File
	var old, added []int // indices in changes
	describe := func(s *Store, e *record.Entry) lines.File {
		f := lines.File{Hash: e.Blob.Hash, Size: e.Size}
		if text, ok := c.text(s, e); ok && !lines.Binary(text) {
			f.Text = text
		}
		return f
	}
	for i, x := range changes {
		switch {
		case plan.OfGit(x.path()):
		case x.to == nil && x.from.Kind == record.File:
			old, gone = append(old, i), append(gone, describe(c.from, x.from))
		case x.from == nil && x.to.Kind == record.File:
			added, fresh = append(added, i), append(fresh, describe(c.to, x.to))
		}
	}
	if len(gone) == 0 || len(fresh) == 0 {
		return changes
	}
	joined := map[int]bool{}
	for i, j := range lines.Renames(gone, fresh) {
		if j >= 0 {
			changes[added[i]].from = changes[old[j]].from
			joined[old[j]] = true
		}
	}
	out := make([]change, 0, len(changes))
	for i, x := range changes {
		if !joined[i] {
			out = append(out, x)
		}
	}
	return out
}

// change describes a change and counts its lines.
func (c *comparison) change(x change) Change {
	d := Change{Path: x.path(), Status: 'M'}
	if x.from == nil {
		d.Status = 'A'
	} else {
		d.Old, d.Link = x.from.Size, x.from.Kind == record.Link
	}
	if x.to == nil {
		d.Status = 'D'
	} else {
		d.New, d.Link = x.to.Size, d.Link || x.to.Kind == record.Link
	}
	if x.from != nil && x.from.Path != d.Path {
		d.Status, d.From = 'R', x.from.Path
	}
	if plan.OfGit(d.Path) {
		return d
	}
	before, ok := c.text(c.from, x.from)
	after, also := c.text(c.to, x.to)
	if d.Binary = lines.Binary(before) || lines.Binary(after); ok && also && !d.Binary {
		d.Added, d.Removed = lines.Count(before, after)
		d.Counted = true
	}
	return d
}

// Content returns the content of a file in a checkpoint, or the target of a link; found is false if there is none. It is
// truncated to most bytes.
func (s *Store) Content(n int, path string, most int64) (b []byte, found bool, err error) {
	st, _, err := s.load(n)
	if err != nil {
		return nil, false, err
	}
	e := st[path]
	if e == nil || e.Kind != record.File && e.Kind != record.Link {
		return nil, false, nil
	}
	b, err = s.content(e, most)
	return b, true, err
}

func (s *Store) content(e *record.Entry, most int64) ([]byte, error) {
	if e.Kind != record.File {
		return []byte(e.Target), nil
	}
	b := make([]byte, min(e.Size, most))
	if e.Blob.Len == 0 {
		return b, nil
	}
	f, err := os.Open(s.data(e.Blob.Pack))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	parts := e.Blob.Extents
	if parts == nil {
		parts = []record.Extent{{Off: 0, Len: e.Blob.Len}}
	}
	from := e.Blob.Off
	for _, x := range parts {
		if x.Off >= int64(len(b)) {
			break
		}
		end := min(x.Off+x.Len, int64(len(b)))
		if _, err := f.ReadAt(b[x.Off:end], from); err != nil && err != io.EOF {
			return nil, fmt.Errorf("reading a checkpoint: %w", err)
		}
		from += x.Len
	}
	return b, nil
}
