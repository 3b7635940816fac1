package checkpoint

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/checkpoint/record"
)

// prune drops the oldest checkpoints of a store that is too large or has too many. The newest one stays.
func (s *Store) prune() error {
	for range 64 {
		numbers, err := s.Numbers()
		if err != nil || len(numbers) < 2 {
			return err
		}
		size, err := s.Bytes()
		if err != nil {
			return err
		}
		drop := max(0, len(numbers)-s.MaxCheckpoints)
		if size > s.MaxBytes {
			drop = max(drop, (len(numbers)+3)/4)
		}
		if drop = min(drop, len(numbers)-1); drop == 0 {
			return nil
		}
		if err := s.drop(numbers, max(drop, min(len(numbers)/4, len(numbers)-1))); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the first n checkpoints. It first rewrites the next one in full, because that may build on them.
func (s *Store) drop(numbers []int, n int) error {
	s.cache.drop()
	first := numbers[n]
	whole, _, err := s.load(first)
	if err != nil {
		return err
	}
	r := &record.Record{Number: first, At: time.Now()}
	for _, e := range whole {
		r.Changed = append(r.Changed, e)
	}
	if err := s.replace(strconv.Itoa(first)+".meta", r.Encode()); err != nil {
		return err
	}
	for _, old := range numbers[:n] {
		if err := os.Remove(s.meta(old)); err != nil {
			return err
		}
	}
	return s.free(numbers[n:])
}

// free releases the parts of data files that no checkpoint needs. A file that is shared with a fork of the conversation is
// not changed, but removed from this store if no part of it is needed.
func (s *Store) free(numbers []int) error {
	needed := map[int][]record.Extent{}
	for _, n := range numbers {
		r, err := s.read(n)
		if err != nil {
			return err
		}
		for _, e := range r.Changed {
			if e.Kind == record.File && e.Blob.Len > 0 {
				needed[e.Blob.Pack] = append(needed[e.Blob.Pack], record.Extent{Off: e.Blob.Off, Len: e.Blob.Len})
			}
		}
	}
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, d := range names {
		base, ok := strings.CutSuffix(d.Name(), ".data")
		n, err := strconv.Atoi(base)
		if !ok || err != nil {
			continue
		}
		if len(needed[n]) == 0 {
			err = os.Remove(s.data(n))
		} else {
			err = punch(s.data(n), needed[n])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// punch punches holes into the unneeded parts of a file. If the file system does not support that, nothing is freed.
func punch(name string, needed []record.Extent) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Nlink > 1 {
		return err
	}
	slices.SortFunc(needed, func(a, b record.Extent) int { return int(min(max(a.Off-b.Off, -1), 1)) })
	at := int64(0)
	for _, x := range append(needed, record.Extent{Off: st.Size, Len: 0}) {
		if x.Off > at {
			_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, x.Off-at)
		}
		at = max(at, x.Off+x.Len)
	}
	return nil
}
