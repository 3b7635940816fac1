package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/checkpoint/record"
)

// Files that were read although their content is unchanged are recorded from this many bytes or files on, so that they are not read again.
const (
	quietBytes = 4 << 20
	quietFiles = 200
)

// maxLinked is the maximum number of files with several hard links, which are checked each time.
const maxLinked = 2000

// Take makes a checkpoint of the workspace as it is now. If nothing differs from the newest one, that one is returned,
// with nothing changed. When Take returns, the checkpoint is durable. An interrupted restore must be finished first. at is the
// current time of the caller's clock.
func (s *Store) Take(ctx context.Context, w Workspace, at time.Time) (Taken, error) {
	t, _, err := s.take(ctx, w, at, false)
	if err == nil && t.Bytes > 0 {
		err = s.prune()
	}
	return t, err
}

// BeginEmpty creates checkpoint 1 without files in an empty store, for a workspace that was empty at first. at is the last time at
// which it is known to have been empty, by the caller's clock; zero if that was before its first use. If the newest checkpoint has no
// files, the workspace was in its state at that time.
func (s *Store) BeginEmpty(at time.Time) error {
	numbers, err := s.Numbers()
	if err != nil {
		return err
	}
	if len(numbers) > 0 {
		newest := numbers[len(numbers)-1]
		if !at.After(s.verified(newest)) {
			return nil
		}
		if st, _, _, err := s.newest(newest); err == nil && len(st) == 0 {
			s.verify(at)
		}
		return nil // a checkpoint that cannot be read is replaced by the next one
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	if at.IsZero() {
		at = time.Unix(0, 0)
	}
	s.verify(at) // first: otherwise a crash would leave the time at which the checkpoint was created
	return s.first()
}

func (s *Store) first() error {
	if err := s.makeDir(); err != nil {
		return err
	}
	r := &record.Record{Number: 1, At: time.Now()}
	return os.WriteFile(s.meta(1), r.Encode(), 0o600)
}

// begin makes the first checkpoint of an empty workspace. It is cheap, because it is not made durable:
// there is nothing to lose.
func (s *Store) begin(w Workspace) (ok bool, err error) {
	f, err := os.Open(w.Dir)
	if err != nil {
		return false, err
	}
	_, err = f.Readdirnames(1)
	f.Close()
	if err != io.EOF {
		return false, err
	}
	return true, s.first()
}

// take is Take without dropping old checkpoints: one of them may be about to be restored. With whole, the whole workspace is
// scanned even if its changes are known. The caller must not change the state.
func (s *Store) take(ctx context.Context, w Workspace, at time.Time, whole bool) (t Taken, now record.State, err error) {
	defer func() {
		if err == nil {
			s.verify(at)
		}
	}()
	if s.Pending() {
		return Taken{}, nil, errors.New("a restore was interrupted; finish it first")
	}
	numbers, err := s.Numbers()
	if err != nil {
		return Taken{}, nil, err
	}
	newest := 0
	if len(numbers) > 0 {
		newest = numbers[len(numbers)-1]
	} else if ok, err := s.begin(w); ok || err != nil {
		return Taken{Number: 1}, record.State{}, err
	}
	known, chain, blobs, err := s.newest(newest)
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNone) { // start over with a new number
		known, chain, blobs, err = record.State{}, 0, nil, nil
	}
	if err != nil {
		return Taken{}, nil, err
	}
	if !whole && newest > 0 && len(known) == 0 && s.cache.number == newest && s.cache.vacant.still(w.Dir) {
		return Taken{Number: newest, Previous: newest, Verified: s.verified(newest)}, known, nil
	}
	p := &packer{store: s, number: newest + 1, numbers: numbers, blobs: blobs}
	defer p.close()
	sc := &scanner{ctx: ctx, w: w, known: known, read: p.read}
	looked, err := s.scan(sc, whole)
	if err != nil {
		s.cache.drop()
		sc.watch.Close()
		p.discard()
		return Taken{}, nil, err
	}
	r := &record.Record{Number: newest + 1, Parent: newest, At: time.Now()}
	t = Taken{Number: newest, LeftOut: sc.leftOut, Previous: newest, Verified: s.verified(newest)}
	t.Changed = r.Compare(known, sc.found, looked)
	now = sc.found
	if looked == nil {
		s.cache.leftOut = sc.leftOut
	} else { // all other paths are unchanged
		now, t.LeftOut = known, max(sc.leftOut, s.cache.leftOut)
		for path := range looked {
			delete(now, path)
		}
		maps.Copy(now, sc.found)
	}
	t.Files = len(now)
	if newest > 0 && chain > 0 && t.Changed == 0 && (looked != nil || sc.reread < quietBytes && len(r.Changed) < quietFiles) {
		p.discard()
		s.cache.set(newest, now, newest, chain-1, p.blobs)
		return t, now, nil
	}
	if chain == 0 || chain >= maxChain || 2*(len(r.Changed)+len(r.Removed)) > len(now) {
		r.Parent, r.Removed, r.Changed = 0, nil, nil
		for _, e := range now {
			r.Changed = append(r.Changed, e)
		}
	}
	if err := s.commit(p, r, &t); err != nil {
		s.cache.drop()
		p.discard()
		return Taken{}, nil, err
	}
	s.cache.set(t.Number, now, r.Parent, chain, p.blobs)
	return t, now, nil
}

// scan reads the paths that were touched since the last checkpoint, which it returns, or the whole workspace.
func (s *Store) scan(sc *scanner, whole bool) (looked map[string]bool, err error) {
	if !whole {
		if paths, ok := s.cache.watch.Touched(); ok && len(s.cache.linked) <= maxLinked {
			sc.linked = s.cache.linked
			maps.Copy(paths, sc.linked)
			if ok, err := sc.look(paths); ok || err != nil {
				return paths, err
			}
		}
	}
	before := vacant(sc.w.Dir)
	if err := sc.scan(); err != nil {
		return nil, err
	}
	if s.cache.vacant = before; len(sc.found) > 0 || sc.leftOut > 0 {
		s.cache.vacant = vacancy{}
	}
	s.cache.watch.Close()
	s.cache.watch, s.cache.linked = sc.watch, sc.linked
	s.cache.watched.Store(sc.watch != nil)
	return nil, nil
}

// commit stores a record, after the contents that it refers to.
func (s *Store) commit(p *packer, r *record.Record, t *Taken) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	if err := p.sync(); err != nil {
		return err
	}
	body := r.Encode()
	if err := s.replace(fmt.Sprintf("%d.meta", r.Number), body); err != nil {
		return err
	}
	t.Number, t.Bytes = r.Number, p.size+int64(len(body))
	return nil
}

// packer adds contents to the data file of a new checkpoint.
type packer struct {
	store   *Store
	number  int
	numbers []int
	f       *os.File
	size    int64
	blobs   map[[32]byte]record.Blob
	buf     []byte
}

// load lists the contents in the store. It is called for the first changed file.
func (p *packer) load() error {
	if p.blobs != nil {
		return nil
	}
	p.blobs = map[[32]byte]record.Blob{}
	for _, n := range p.numbers {
		r, err := p.store.read(n)
		if errors.Is(err, ErrCorrupt) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range r.Changed {
			if e.Kind == record.File {
				p.blobs[e.Blob.Hash] = e.Blob
			}
		}
	}
	return nil
}

func (p *packer) open() error {
	if p.f != nil {
		return nil
	}
	if err := p.store.makeDir(); err != nil {
		return err
	}
	f, err := os.OpenFile(p.store.data(p.number), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	p.f, p.buf = f, make([]byte, 0, 1<<20)
	return nil
}

// read stores the content of a file unless the store has it already.
func (p *packer) read(f *os.File, size int64) (record.Blob, error) {
	fail := func(err error) (record.Blob, error) { return record.Blob{}, &storeError{err} }
	if err := p.load(); err != nil {
		return fail(err)
	}
	if err := p.open(); err != nil {
		return fail(err)
	}
	begin := p.size
	b, err := sum(f, size, p)
	if err != nil {
		return record.Blob{}, errors.Join(err, p.rewind(begin))
	}
	if old, ok := p.blobs[b.Hash]; ok {
		if err := p.rewind(begin); err != nil {
			return fail(err)
		}
		return old, nil
	}
	b.Pack, b.Off = p.number, begin
	p.blobs[b.Hash] = b
	return b, nil
}

// Write implements io.Writer.
func (p *packer) Write(b []byte) (int, error) {
	p.size += int64(len(b))
	if p.size > p.store.MaxBytes {
		return 0, &storeError{fmt.Errorf("%w: %d bytes have changed", ErrTooLarge, p.size)}
	}
	if len(p.buf)+len(b) <= cap(p.buf) {
		p.buf = append(p.buf, b...)
		return len(b), nil
	}
	if err := p.flush(); err != nil {
		return 0, err
	}
	if _, err := p.f.Write(b); err != nil {
		return 0, &storeError{err}
	}
	return len(b), nil
}

func (p *packer) flush() error {
	_, err := p.f.Write(p.buf)
	p.buf = p.buf[:0]
	if err != nil {
		return &storeError{err}
	}
	return nil
}

// rewind removes everything written after an offset.
func (p *packer) rewind(to int64) error {
	if back := p.size - to; back <= int64(len(p.buf)) {
		p.buf, p.size = p.buf[:int64(len(p.buf))-back], to
		return nil
	}
	p.buf, p.size = p.buf[:0], to
	if err := p.f.Truncate(to); err != nil {
		return &storeError{err}
	}
	if _, err := p.f.Seek(to, io.SeekStart); err != nil {
		return &storeError{err}
	}
	return nil
}

func (p *packer) sync() error {
	if p.f == nil {
		return nil
	}
	if p.size == 0 {
		p.discard()
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	return p.f.Sync()
}

// discard removes the data file.
func (p *packer) discard() {
	if p.f != nil {
		_ = os.Remove(p.f.Name())
	}
	p.close()
}

func (p *packer) close() {
	if p.f != nil {
		p.f.Close()
		p.f = nil
	}
}

// sum writes the content of a file to w without its holes, and hashes it.
func sum(f *os.File, size int64, w io.Writer) (record.Blob, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return record.Blob{}, err
	}
	parts := []record.Extent{{Off: 0, Len: size}}
	sparse := st.Blocks*512 < size
	if sparse {
		var err error
		if parts, err = extents(f, size); err != nil {
			return record.Blob{}, err
		}
	}
	h := sha256.New()
	var b record.Blob
	for i, x := range parts {
		n, err := copyPart(f, x, h, w)
		if err != nil {
			return record.Blob{}, err
		}
		parts[i].Len = n // the file may have been truncated since
		b.Len += n
	}
	if sparse && !(len(parts) == 1 && parts[0] == record.Extent{Off: 0, Len: size}) {
		b.Extents = parts
		for _, x := range append(parts, record.Extent{Off: -1, Len: size}) {
			var n [16]byte
			binary.LittleEndian.PutUint64(n[:8], uint64(x.Off))
			binary.LittleEndian.PutUint64(n[8:], uint64(x.Len))
			_, _ = h.Write(n[:])
		}
		if len(parts) == 0 {
			b.Extents = []record.Extent{{Off: 0, Len: 0}}
		}
	}
	h.Sum(b.Hash[:0])
	if b.Extents != nil {
		b.Hash[0] ^= 0xff // no file without holes can be made to have this hash
	}
	return b, nil
}

// extents returns the parts of a file that are not holes.
func extents(f *os.File, size int64) (out []record.Extent, err error) {
	var sum int64
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || err == nil && start >= size {
			return out, nil
		}
		end := size
		if err != nil { // the file system does not report holes
			start = at
		} else if end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE); err != nil {
			end = size
		}
		end = min(end, size)
		out = append(out, record.Extent{Off: start, Len: end - start})
		if sum += end - start; sum > MaxFile || len(out) > record.MaxExtents {
			return nil, errors.New("the file is too large")
		}
		at = end
	}
	return out, nil
}

// copyPart copies one part of a file, or as much as exists of it.
func copyPart(f *os.File, x record.Extent, h hash.Hash, w io.Writer) (int64, error) {
	buf := make([]byte, min(x.Len, 256<<10))
	var n int64
	for n < x.Len {
		got, err := f.ReadAt(buf[:min(int64(len(buf)), x.Len-n)], x.Off+n)
		_, _ = h.Write(buf[:got])
		if _, err := w.Write(buf[:got]); err != nil {
			return n, err
		}
		n += int64(got)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
