package box

import (
	"encoding/binary"
	"errors"
)

// wire writes values one after the other, or reads them in the same order. Driver and runner are
// of one version, so nothing has to be named; and JSON would have to learn all types anew in each
// runner, which takes longer than a mount.
type wire struct {
	b       []byte
	reading bool
	bad     bool // what was read is not what was written
}

var errUnreadable = errors.New("it is cut short, or of another version")

// Encode returns a Setup as Decode reads it.
func (s *Setup) Encode() []byte {
	w := &wire{}
	s.exchange(w)
	return w.b
}

// Decode reads a Setup.
func (s *Setup) Decode(b []byte) error {
	w := &wire{b: b, reading: true}
	s.exchange(w)
	return w.end()
}

// Encode returns a Report as Decode reads it.
func (r *Report) Encode() []byte {
	w := &wire{}
	r.exchange(w)
	return w.b
}

// Decode reads a Report.
func (r *Report) Decode(b []byte) error {
	w := &wire{b: b, reading: true}
	r.exchange(w)
	return w.end()
}

func (s *Setup) exchange(w *wire) {
	for _, text := range []*string{&s.ID, &s.Box, &s.Work, &s.Network} {
		w.text(text)
	}
	for _, n := range []*int{&s.BoxTree, &s.WorkTree} {
		w.number(n)
	}
	for _, is := range []*bool{&s.WorkReadOnly, &s.Plain, &s.Mapped, &s.Tether} {
		w.flag(is)
	}
	for _, n := range []*uint64{&s.FileSize, &s.Processes, &s.Data} {
		w.count(n)
	}
	s.Root.exchange(w)
	list(w, &s.Layers, func(l *Layer) { l.exchange(w) })
	list(w, &s.Mounts, func(m *Mount) { m.exchange(w) })
	list(w, &s.Masked, w.text)
	type variable struct{ name, value string }
	var env []variable
	for name, value := range s.Env {
		env = append(env, variable{name, value})
	}
	list(w, &env, func(v *variable) { w.text(&v.name); w.text(&v.value) })
	if w.reading && len(env) > 0 {
		s.Env = make(map[string]string, len(env))
		for _, v := range env {
			s.Env[v.name] = v.value
		}
	}
}

func (l *Layer) exchange(w *wire) {
	w.text(&l.Name)
	w.text(&l.Source)
	w.number(&l.Tree)
	w.text(&l.Target)
}

func (m *Mount) exchange(w *wire) {
	w.text(&m.Source)
	w.number(&m.Tree)
	w.text(&m.Target)
	w.flag(&m.ReadOnly)
}

func (r *Report) exchange(w *wire) {
	w.text(&r.Error)
	w.flag(&r.NoOverlay)
	list(w, &r.Notes, w.text)
}

func (w *wire) count(n *uint64) {
	if !w.reading {
		w.b = binary.AppendUvarint(w.b, *n)
		return
	}
	value, size := binary.Uvarint(w.b)
	if size <= 0 || w.bad {
		w.bad = true
		return
	}
	*n, w.b = value, w.b[size:]
}

func (w *wire) number(n *int) {
	value := uint64(*n)
	w.count(&value)
	*n = int(value)
}

func (w *wire) flag(is *bool) {
	var value uint64
	if *is {
		value = 1
	}
	w.count(&value)
	*is = value == 1
}

func (w *wire) text(s *string) {
	n := uint64(len(*s))
	w.count(&n)
	switch {
	case !w.reading:
		w.b = append(w.b, *s...)
	case w.bad || n > uint64(len(w.b)):
		w.bad = true
	default:
		*s, w.b = string(w.b[:n]), w.b[n:]
	}
}

// list exchanges the number of elements, and each of them. Each takes a byte at least.
func list[T any](w *wire, all *[]T, each func(*T)) {
	n := uint64(len(*all))
	w.count(&n)
	if w.reading {
		if w.bad || n > uint64(len(w.b)) {
			w.bad = true
			return
		}
		*all = nil
		if n > 0 {
			*all = make([]T, n)
		}
	}
	for i := range *all {
		each(&(*all)[i])
	}
}

// end says whether everything was read, and nothing else.
func (w *wire) end() error {
	if w.bad || len(w.b) > 0 {
		return errUnreadable
	}
	return nil
}
