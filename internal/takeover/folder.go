package takeover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Larger files were not written by the legacy server, or are useless.
const (
	maxFile         = 4 << 20  // settings, secrets, metadata
	maxEvent        = 32 << 20 // screenshots travel inside events
	maxPage         = 256 << 20
	maxConversation = 1 << 30
	maxEvents       = 1_000_000
)

// folder reads a legacy server's folder. Links are not followed: they lead out of
// it, or to what is read anyway.
type folder struct{ root *os.Root }

// place is where a conversation lies.
type place struct{ path, name string }

var errLink = errors.New("a symbolic link or not a regular file")

// read returns a file of at most limit bytes.
func (f *folder) read(name string, limit int64) ([]byte, error) {
	info, err := f.root.Lstat(name)
	switch {
	case err != nil:
		return nil, plain(err)
	case !info.Mode().IsRegular():
		return nil, errLink
	case info.Size() > limit:
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", info.Size(), limit)
	}
	// Opening a pipe must not block.
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, plain(err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errors.New("the file grew while it was read")
	}
	return b, plain(err)
}

// plain leaves the path out of an error: the report has it.
func plain(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// list returns what is in a folder; nothing if there is no such folder.
func (f *folder) list(dir string) ([]fs.DirEntry, error) {
	info, err := f.root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, plain(err)
	case !info.IsDir():
		return nil, errors.New("not a folder")
	}
	d, err := f.root.Open(dir)
	if err != nil {
		return nil, plain(err)
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, plain(err)
}

// conversations finds all of them, or those of one user of the legacy server.
func (f *folder) conversations(user string) ([]place, []string) {
	var out []place
	var problems []string
	walk := func(dir string) {
		entries, err := f.list(dir)
		if err != nil {
			problems = append(problems, fmt.Sprintf("cannot read %s: %v", dir, err))
		}
		for _, e := range entries {
			switch at := path.Join(dir, e.Name()); {
			case e.IsDir():
				out = append(out, place{at, e.Name()})
			case e.Type()&fs.ModeSymlink != 0:
				problems = append(problems, fmt.Sprintf("skipped %s: symbolic link", shown(at)))
			}
		}
	}
	if user == "" {
		walk("sessions")
	}
	users, err := f.list("users")
	if err != nil {
		problems = append(problems, fmt.Sprintf("cannot read users: %v", err))
	}
	for _, u := range users {
		switch {
		case user != "" && u.Name() != user:
		case u.IsDir():
			walk(path.Join("users", u.Name(), "conversations"))
		default:
			problems = append(problems, fmt.Sprintf("%s is not a folder", shown(path.Join("users", u.Name()))))
		}
	}
	return out, problems
}

// shown returns a file name in a printable form.
func shown(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || len(name) > 200 {
		return q[:min(len(q), 200)]
	}
	return name
}

// events are the numbers of the stored events, in order.
func (f *folder) events(dir string) (numbers []int64, others int, err error) {
	entries, err := f.list(path.Join(dir, "events"))
	for _, e := range entries {
		n, ok := number(e.Name())
		if !ok {
			others++
			continue
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers, others, err
}

// number is that of an event's file, which has exactly one spelling.
func number(name string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, ".json")
	n, err := strconv.ParseInt(digits, 10, 32)
	return n, ok && err == nil && n >= 0 && strconv.FormatInt(n, 10) == digits
}

// page is a stretch of events in one file, kept beside them: from, and up to before to.
type page struct {
	from, to int64
	name     string
}

// pages are those of a conversation.
func (f *folder) pages(dir string) []page {
	entries, _ := f.list(path.Join(dir, "event_cache")) // they only stand in for what is missing
	var out []page
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		a, b, both := strings.Cut(name, "-")
		from, err1 := strconv.ParseInt(a, 10, 32)
		to, err2 := strconv.ParseInt(b, 10, 32)
		if ok && both && err1 == nil && err2 == nil && from >= 0 && to > from && to-from <= 1000 {
			out = append(out, page{from, to, path.Join(dir, "event_cache", e.Name())})
		}
	}
	return out
}
