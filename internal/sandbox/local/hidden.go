package local

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// When owners are mapped, the sandbox's root owns the files of the machine's
// root, so it could read those that are only for root to read. The same goes
// for a sandbox whose user is the server's. There are few of them in a system's
// folders; they are found when the server starts and masked. From then on the
// folders are watched, so that what appears later is masked in every sandbox
// that is started after it. A sandbox that runs already sees it: mounts cannot
// be added to it from outside.

// maxMasked is how many files are masked at most: each is a mount in every sandbox.
const maxMasked = 100

// mask is what was found.
type mask struct {
	Paths []string
	Many  bool
}

func (b *base) setMasked(m mask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.masked, b.unmapped = m.Paths, b.unable
	if m.Many {
		// Without mapping, the files are closed by their modes.
		b.masked = nil
		b.unmapped = fmt.Sprintf("more than %d files in the system's folders are not world-readable", maxMasked)
	}
	for _, l := range b.layers {
		if covers(l.Source, b.data) {
			b.masked = append([]string{b.data}, b.masked...)
		}
	}
}

// private are the folders in which the sandbox's users would own files.
func (b *base) private() []string {
	if b.rights.ranges && !b.rights.trees {
		return nil
	}
	var folders []string
	for _, l := range b.layers {
		folders = append(folders, l.Source)
	}
	if !b.rights.ranges {
		for _, m := range b.mounts {
			folders = append(folders, m.Source)
		}
	}
	return folders
}

// findMasked looks for what is to be masked, and goes on watching for it.
func (b *base) findMasked() error {
	keep := ""
	if b.shared {
		keep = filepath.Join(b.dir, keptFile)
	}
	b.watch = watchOf(b.private(), b.data, b.rights, keep)
	return b.refresh()
}

// refresh finds what has changed in the system's folders since it last looked.
// It is called before each start and costs nothing as long as nothing changes.
func (b *base) refresh() error {
	if b.watch == nil {
		return nil
	}
	m, turn, err := b.watch.now(b.ctx, b.log)
	if err != nil {
		return err
	}
	b.mu.Lock()
	known := b.turn == turn
	b.turn = turn
	b.mu.Unlock()
	if known {
		return nil
	}
	if m.Many && !b.rights.ranges {
		// There is no mapping to do without, so it is the best that can be done.
		m.Many, m.Paths = false, m.Paths[:maxMasked]
		b.log.Warn("there are many private files of the server's user in the system's folders; sandboxes can read some of them", "folders", "/usr, /opt")
	}
	b.setMasked(m)
	return nil
}

// closed reports whether a file or folder is not world-readable.
func (r rights) closed(path string, info fs.FileInfo) bool {
	open := info.Mode()&0o004 != 0 || info.Size() == 0 // locks have to be written to, and tell nothing
	if info.IsDir() {
		open = info.Mode()&0o005 == 0o005
	}
	return !open && (r.ranges || unix.Access(path, unix.R_OK) == nil)
}

// watch knows what is private in some folders and all below them, and is told by
// the kernel what changes there. The drivers of a process share it: the first
// search takes about a second.
type watch struct {
	roots  []string
	skip   string // is not looked into
	rights rights

	mu      sync.Mutex
	ctx     context.Context // of who looks right now
	log     *slog.Logger
	fd      int              // of inotify; -1 if there is none
	folders map[int32]string // by the number of their watch
	known   map[string][]string
	whole   bool  // all was looked through
	mask    mask  // what was found then
	turn    int64 // counts the changes
	kept    kept  // in place of what the kernel tells, if it has a path
}

var watches = struct {
	sync.Mutex
	all map[string]*watch
}{all: map[string]*watch{}}

// watchOf is the watch of some folders. Nobody ends it but the process.
func watchOf(roots []string, data string, r rights, keep string) *watch {
	skip := ""
	for _, root := range roots {
		if covers(root, data) {
			skip = data // it is masked as a whole
		}
	}
	key := fmt.Sprint(roots, skip, r, keep)
	watches.Lock()
	defer watches.Unlock()
	if watches.all[key] == nil {
		watches.all[key] = &watch{roots: roots, skip: skip, rights: r, fd: -1, kept: kept{path: keep}}
	}
	return watches.all[key]
}

// noticed is what may make a file private, or one that is private go away.
const noticed = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ATTRIB | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// now is what is private at this moment, and a number that another set of files
// would have another of.
func (w *watch) now(ctx context.Context, log *slog.Logger) (mask, int64, error) {
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
		return mask{}, 0, err
	}
	if again {
		w.whole, w.mask = true, w.found()
		w.turn++
	}
	return w.mask, w.turn, nil
}

// begin looks for the first time.
func (w *watch) begin() (again bool, err error) {
	w.close()
	if w.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		w.giveUp(err)
	}
	return w.all()
}

// giveUp does without the kernel: then all is looked through before each start.
func (w *watch) giveUp(err error) {
	w.close()
	w.log.Warn("the system's folders cannot be watched and are looked through before each start of a sandbox, which takes a while; raise fs.inotify.max_user_watches and fs.inotify.max_user_instances", "error", err)
}

func (w *watch) close() {
	if w.fd >= 0 {
		unix.Close(w.fd)
	}
	w.fd = -1
}

// all looks through everything.
func (w *watch) all() (again bool, err error) {
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
func (w *watch) look(folder string, whole bool) error {
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
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		w.log.Warn("a system folder could not be looked through", "folder", folder, "error", err)
	}
	private := []string{}
	for _, e := range entries { // what we cannot read ourselves, nobody inside can
		path := filepath.Join(folder, e.Name())
		if path == w.skip || !e.IsDir() && !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		if w.rights.closed(path, info) {
			private = append(private, path)
			if w.kept.path != "" && e.IsDir() {
				w.shut(path)
			}
			continue
		}
		if _, known := w.known[path]; e.IsDir() && (whole || !known) {
			if err := w.look(path, whole); err != nil {
				return err
			}
		}
	}
	w.known[folder] = private
	return nil
}

// changed looks again where something has changed, and says whether it did.
func (w *watch) changed() (again bool, err error) {
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
func (w *watch) read(events []byte) (folders map[string]bool, lost bool) {
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
func (w *watch) forget(folder string) {
	maps.DeleteFunc(w.known, func(path string, _ []string) bool { return path != folder && covers(folder, path) })
}

// found is all that is private now.
func (w *watch) found() mask {
	var m mask
	for _, paths := range w.known {
		m.Paths = append(m.Paths, paths...)
	}
	slices.Sort(m.Paths)
	m.Many = len(m.Paths) > maxMasked
	return m
}
