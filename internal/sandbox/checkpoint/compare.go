package checkpoint

import (
	"fmt"
	"io"
	"os"
)

// Change is a difference between two checkpoints.
type Change struct {
	Path string
	// Status is A for a new file, D for a removed one, M for a changed one.
	Status byte
	// Old and New are the sizes before and after.
	Old, New int64
	// Link is true if one of the two is a symbolic link.
	Link bool
}

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
	for _, st := range []state{from, to} { // kept entries have no content to compare, and folders show in their files
		for p, e := range st {
			if e.kind == kept || e.kind == folder {
				delete(st, p)
			}
		}
	}
	var out []Change
	for _, c := range diff(from, to) {
		d := Change{Path: c.path(), Status: 'M'}
		if c.from == nil {
			d.Status = 'A'
		} else {
			d.Old, d.Link = c.from.size, c.from.kind == link
		}
		if c.to == nil {
			d.Status = 'D'
		} else {
			d.New, d.Link = c.to.size, d.Link || c.to.kind == link
		}
		out = append(out, d)
	}
	return out, nil
}

// Content returns the content of a file in a checkpoint, or the target of a link; found is false if there is none. It is
// truncated to most bytes.
func (s *Store) Content(n int, path string, most int64) (b []byte, found bool, err error) {
	st, _, err := s.load(n)
	if err != nil {
		return nil, false, err
	}
	e := st[path]
	if e == nil || e.kind != file && e.kind != link {
		return nil, false, nil
	}
	if e.kind == link {
		return []byte(e.target), true, nil
	}
	b = make([]byte, min(e.size, most))
	if e.blob.len == 0 {
		return b, true, nil
	}
	f, err := os.Open(s.data(e.blob.pack))
	if err != nil {
		return nil, true, err
	}
	defer f.Close()
	parts := e.blob.extents
	if parts == nil {
		parts = []extent{{0, e.blob.len}}
	}
	from := e.blob.off
	for _, x := range parts {
		if x.off >= int64(len(b)) {
			break
		}
		end := min(x.off+x.len, int64(len(b)))
		if _, err := f.ReadAt(b[x.off:end], from); err != nil && err != io.EOF {
			return nil, true, fmt.Errorf("reading a checkpoint: %w", err)
		}
		from += x.len
	}
	return b, true, nil
}
