package privatefiles

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
)

// A process that lives for one sandbox cannot afford to scan the system's folders, which takes a
// second. The result is kept in a file for the next process, with a stamp for each folder, and
// only changed folders are scanned again. A public file that becomes private leaves its folder
// unchanged; for this, everything is scanned once a day.

const (
	// keptFor is how long it may be until everything is looked through again.
	keptFor = 24 * time.Hour
	// keptFresh is how long what was just found holds without another look.
	keptFresh = 10 * time.Second
)

// settled is how old a change must be for the stamp to tell it from a later
// one: clocks of file systems are coarse.
var settled = time.Second

// stamp tells whether a folder has changed: an entry came, went or got another
// name, or its rights changed. The zero stamp never holds.
type stamp struct {
	dev, ino uint64
	changed  int64 // ctime, which programs cannot set
}

func stampOf(folder string) stamp {
	var st unix.Stat_t
	if unix.Lstat(folder, &st) != nil {
		return stamp{}
	}
	return stamp{dev: uint64(st.Dev), ino: st.Ino, changed: st.Ctim.Nano()}
}

// kept is what was found by this process or an earlier one.
type kept struct {
	path   string // of the file; "" if nothing is kept
	whole  time.Time
	looked time.Time
	stamps map[string]stamp
}

// note remembers how a folder was when it was looked into.
func (k *kept) note(folder string, s stamp, now time.Time) {
	if now.UnixNano()-s.changed < int64(settled) {
		s = stamp{}
	}
	k.stamps[folder] = s
}

// again looks where something has changed since it was last kept, or everywhere.
func (w *Watch) again() (bool, error) {
	now := time.Now()
	if w.whole && now.Sub(w.kept.looked) < keptFresh {
		return false, nil
	}
	if w.kept.stamps == nil {
		if known, ok := w.unchanged(now); ok {
			changed := !w.whole || !maps.EqualFunc(known, w.known, slices.Equal)
			w.known, w.kept.looked = known, now
			return changed, nil
		}
	}
	if !w.whole || w.kept.stamps == nil {
		w.load()
	}
	if w.kept.expired(now) {
		w.kept.whole, w.kept.stamps = now, map[string]stamp{}
		if _, err := w.all(); err != nil {
			return false, err
		}
		w.kept.looked = now
		return true, w.save()
	}
	changed, err := w.recheck()
	if err != nil {
		return false, err
	}
	w.kept.looked = now
	if changed {
		err = w.save()
	}
	return changed || !w.whole, err
}

// expired reports whether everything has to be looked through.
func (k *kept) expired(now time.Time) bool {
	return now.Sub(k.whole) > keptFor || now.Before(k.whole)
}

// unchanged returns the private files that the file names, by their folders, if all of its stamps hold. That is the usual case, and
// there are ten thousands of folders: it takes one look at each and remembers none of them.
func (w *Watch) unchanged(now time.Time) (known map[string][]string, ok bool) {
	known, folders := map[string][]string{}, 0
	whole, err := w.readKept(func(folder string, s stamp) error {
		folders++
		if s == (stamp{}) || stampOf(folder) != s {
			return errStale
		}
		return nil
	}, func(path string) {
		folder := filepath.Dir(path)
		known[folder] = append(known[folder], path)
	})
	k := kept{whole: whole}
	return known, err == nil && folders > 0 && !k.expired(now)
}

var errStale = errors.New("a folder has changed")

// recheck looks into the folders whose stamps do not hold, and into those above
// them: whether a folder may be looked into at all is noted there.
func (w *Watch) recheck() (changed bool, err error) {
	var stale []string
	for folder, s := range w.kept.stamps {
		if s == (stamp{}) || stampOf(folder) != s {
			stale = append(stale, folder)
		}
	}
	for _, folder := range stale {
		delete(w.kept.stamps, folder)
		delete(w.known, folder)
	}
	for _, folder := range stale {
		if _, done := w.kept.stamps[folder]; done {
			continue
		}
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
			continue
		}
		if _, ok := w.known[filepath.Dir(folder)]; ok {
			folder = filepath.Dir(folder)
		}
		if err := w.look(folder, false); err != nil {
			return true, err
		}
	}
	return len(stale) > 0, nil
}

// shut notes a folder that is private as a whole, so that it is noticed when it is not any more.
func (w *Watch) shut(folder string) {
	for below := range w.kept.stamps {
		if sandbox.Within(below, folder) {
			delete(w.kept.stamps, below)
			delete(w.known, below)
		}
	}
	w.kept.note(folder, stampOf(folder), time.Now())
}

// key is what the content of the file depends on.
func (w *Watch) key() string {
	return fmt.Sprintf("1 %d %q %q %v", os.Geteuid(), w.roots, w.skip, w.ranges)
}

// load reads the file. One that cannot be read is as good as none.
func (w *Watch) load() {
	w.known, w.kept.stamps, w.kept.whole = map[string][]string{}, map[string]stamp{}, time.Time{}
	whole, err := w.readKept(func(folder string, s stamp) error {
		w.kept.stamps[folder] = s
		if w.known[folder] == nil {
			w.known[folder] = []string{}
		}
		return nil
	}, func(path string) {
		folder := filepath.Dir(path)
		w.known[folder] = append(w.known[folder], path)
	})
	if err == nil && len(w.kept.stamps) > 0 {
		w.kept.whole = whole
	}
}

// readKept passes on what the file says, and returns when everything was looked through.
func (w *Watch) readKept(folder func(string, stamp) error, private func(string)) (whole time.Time, err error) {
	body, err := os.ReadFile(w.kept.path)
	if err != nil {
		return whole, err
	}
	key, rest, _ := strings.Cut(string(body), "\n")
	if key != w.key() {
		return whole, errors.New("it is not about these folders")
	}
	date, rest, _ := strings.Cut(rest, "\n")
	if whole, err = time.Parse(time.RFC3339Nano, date); err != nil {
		return whole, err
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if quoted, ok := strings.CutPrefix(line, "- "); ok {
			path, err := strconv.Unquote(quoted)
			if err != nil {
				return whole, err
			}
			private(path)
			continue
		}
		path, s, err := parseFolder(line)
		if err == nil {
			err = folder(path, s)
		}
		if err != nil {
			return whole, err
		}
	}
	return whole, nil
}

// parseFolder reads the line of a folder.
func parseFolder(line string) (folder string, s stamp, err error) {
	dev, line, _ := strings.Cut(line, " ")
	ino, line, _ := strings.Cut(line, " ")
	changed, folder, ok := strings.Cut(line, " ")
	if !ok {
		return "", s, errors.New("a line is too short")
	}
	var errs [4]error
	s.dev, errs[0] = strconv.ParseUint(dev, 36, 64)
	s.ino, errs[1] = strconv.ParseUint(ino, 36, 64)
	s.changed, errs[2] = strconv.ParseInt(changed, 36, 64)
	if strings.HasPrefix(folder, `"`) {
		folder, errs[3] = strconv.Unquote(folder)
	}
	return folder, s, errors.Join(errs[:]...)
}

// save writes the file, whole or not at all. Another process may do so as well;
// either one is right.
func (w *Watch) save() error {
	f, err := os.CreateTemp(filepath.Dir(w.kept.path), ".new-")
	if err != nil {
		return fmt.Errorf("keeping what is private: %w", err)
	}
	defer os.Remove(f.Name())
	out := bufio.NewWriter(f)
	fmt.Fprintf(out, "%s\n%s\n", w.key(), w.kept.whole.Format(time.RFC3339Nano))
	var line []byte
	for _, folder := range slices.Sorted(maps.Keys(w.kept.stamps)) { // neighbours in the tree are found faster one after the other
		s := w.kept.stamps[folder]
		line = append(strconv.AppendUint(line[:0], s.dev, 36), ' ')
		line = append(strconv.AppendUint(line, s.ino, 36), ' ')
		line = append(strconv.AppendInt(line, s.changed, 36), ' ')
		if strings.ContainsAny(folder, "\n\r\"") {
			line = strconv.AppendQuote(line, folder)
		} else {
			line = append(line, folder...)
		}
		_, _ = out.Write(append(line, '\n'))
		for _, path := range w.known[folder] {
			fmt.Fprintf(out, "- %q\n", path)
		}
	}
	err = errors.Join(out.Flush(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), w.kept.path)
	}
	if err != nil {
		return fmt.Errorf("keeping what is private: %w", err)
	}
	return nil
}
