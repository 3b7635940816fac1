// Package privatefiles finds the files in the system's folders that are not world-readable.
//
// When owners are mapped, the sandbox's root owns the files of the machine's root, so it could
// read those that only root may read. The same is true for a sandbox whose user is the server's.
// There are few of them; they are found when the server starts and masked. From then on the
// folders are watched, so that new ones are masked in every sandbox that starts later. A running
// sandbox sees them: mounts cannot be added to it from outside.
package privatefiles

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
)

// Most is how many files are masked at most: each is a mount in every sandbox.
const Most = 100

// Found are private files. Many means that there are more than Most.
type Found struct {
	Paths []string
	Many  bool
}

// closed reports whether a file or folder is not world-readable although the sandbox's users could read it.
func (w *Watch) closed(path string, e entry) bool {
	open := e.mode&0o004 != 0 || e.size == 0 // locks have to be written to, and tell nothing
	if e.dir {
		open = e.mode&0o005 == 0o005
	}
	return !open && (w.ranges || unix.Access(path, unix.R_OK) == nil)
}

// Watch knows the private files in some folders and all below them. The kernel reports what
// changes there. The drivers of a process share a Watch: the first search takes about a second.
type Watch struct {
	roots  []string
	skip   string // is not looked into
	ranges bool   // sandboxes have users of their own, for which nothing is closed

	mu      sync.Mutex
	ctx     context.Context // of who looks right now
	log     *slog.Logger
	fd      int              // of inotify; -1 if there is none
	folders map[int32]string // by the number of their watch
	known   map[string][]string
	whole   bool  // all was looked through
	mask    Found // what was found then
	turn    int64 // counts the changes
	kept    kept  // in place of what the kernel tells, if it has a path
	buf     []byte
}

var watches = struct {
	sync.Mutex
	all map[string]*Watch
}{all: map[string]*Watch{}}

// Of returns the watch of some folders, which lasts as long as the process. It does not look
// into data. If keep is the path of a file, what was found is kept there for other processes,
// and the kernel is not asked to report changes.
func Of(roots []string, data string, ranges bool, keep string) *Watch {
	skip := ""
	for _, root := range roots {
		if sandbox.Within(data, root) {
			skip = data // it is masked as a whole
		}
	}
	key := fmt.Sprint(roots, skip, ranges, keep)
	watches.Lock()
	defer watches.Unlock()
	if watches.all[key] == nil {
		watches.all[key] = &Watch{roots: roots, skip: skip, ranges: ranges, fd: -1, kept: kept{path: keep}}
	}
	return watches.all[key]
}

// noticed is what may make a file private, or one that is private go away.
const noticed = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ATTRIB | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// Now returns what is private at this moment, and a number that changes with it.
func (w *Watch) Now(ctx context.Context, log *slog.Logger) (Found, int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.log = ctx, log
	look := w.changed
	switch {
	case w.kept.path != "":
		look = w.again
	case !w.whole:
		look = w.begin
	}
	again, err := look()
	if err != nil {
		w.whole = false // what was looked at is not known any more
		return Found{}, 0, err
	}
	if again {
		w.whole, w.mask = true, w.found()
		w.turn++
	}
	return w.mask, w.turn, nil
}

// begin looks for the first time.
func (w *Watch) begin() (again bool, err error) {
	w.close()
	if w.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		w.giveUp(err)
	}
	return w.all()
}

// giveUp does without the kernel: then all is looked through before each start.
func (w *Watch) giveUp(err error) {
	w.close()
	w.log.Warn("the system's folders cannot be watched and are looked through before each start of a sandbox, which takes a while; raise fs.inotify.max_user_watches and fs.inotify.max_user_instances", "error", err)
}

func (w *Watch) close() {
	if w.fd >= 0 {
		unix.Close(w.fd)
	}
	w.fd = -1
}

// all looks through everything.
func (w *Watch) all() (again bool, err error) {
	w.folders, w.known = map[int32]string{}, map[string][]string{}
	for _, root := range w.roots {
		if err := w.look(root, true); err != nil {
			return false, err
		}
	}
	return true, nil
}

// look notes what is private in a folder, and in those below it that are not
// known, or in all. It watches before it looks, so that nothing falls between.
func (w *Watch) look(folder string, whole bool) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.fd >= 0 {
		number, err := unix.InotifyAddWatch(w.fd, folder, noticed)
		switch {
		case err == nil:
			w.folders[int32(number)] = folder
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.ENOMEM):
			w.giveUp(err)
		}
	}
	delete(w.known, folder)
	if w.kept.path != "" {
		w.kept.note(folder, stampOf(folder), time.Now())
	}
	private, below := []string{}, []string(nil)
	err := w.entries(folder, func(e entry) {
		path := filepath.Join(folder, e.name)
		switch {
		case path == w.skip:
		case w.closed(path, e):
			private = append(private, path)
			if w.kept.path != "" && e.dir {
				w.shut(path)
			}
		case e.dir:
			below = append(below, path)
		}
	})
	// What the server cannot read, the sandbox cannot read either.
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		w.log.Warn("a system folder could not be looked through", "folder", folder, "error", err)
	}
	for _, path := range below {
		if _, known := w.known[path]; whole || !known {
			if err := w.look(path, whole); err != nil {
				return err
			}
		}
	}
	w.known[folder] = private
	return nil
}

// changed looks again where something has changed, and says whether it did.
func (w *Watch) changed() (again bool, err error) {
	if w.fd < 0 {
		return w.all()
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return again, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			w.giveUp(err)
			return w.all()
		}
		folders, lost := w.read(buf[:n])
		if lost {
			return w.all()
		}
		for folder, whole := range folders {
			again = true
			if whole {
				w.forget(folder)
			}
			if err := w.look(folder, whole); err != nil {
				return false, err
			}
		}
		if w.fd < 0 { // it gave up on the way
			return w.all()
		}
	}
}

// read finds the folders in which something has changed, and whether folders in
// them have come or gone. Some changes may be lost.
func (w *Watch) read(events []byte) (folders map[string]bool, lost bool) {
	folders = map[string]bool{}
	for len(events) >= unix.SizeofInotifyEvent {
		// struct inotify_event: wd, mask, cookie and the length of the name.
		number, kind, length := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:]), binary.NativeEndian.Uint32(events[12:])
		events = events[min(len(events), unix.SizeofInotifyEvent+int(length)):]
		if kind&unix.IN_Q_OVERFLOW != 0 {
			return nil, true
		}
		folder, ok := w.folders[number]
		switch {
		case !ok:
		case kind&unix.IN_IGNORED != 0: // it is gone, and another may have its name
			delete(w.folders, number)
			if _, seen := folders[folder]; !seen {
				folders[folder] = false
			}
		default:
			const moved = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM
			folders[folder] = folders[folder] || kind&unix.IN_ISDIR != 0 && kind&moved != 0
		}
	}
	return folders, false
}

// forget drops what is known of the folders below one.
func (w *Watch) forget(folder string) {
	maps.DeleteFunc(w.known, func(path string, _ []string) bool { return path != folder && sandbox.Within(path, folder) })
}

// found is all that is private now.
func (w *Watch) found() Found {
	var m Found
	for _, paths := range w.known {
		m.Paths = append(m.Paths, paths...)
	}
	slices.Sort(m.Paths)
	m.Many = len(m.Paths) > Most
	return m
}
