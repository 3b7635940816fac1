package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

const (
	// maxWatched is how many folders one watch follows. Those near the top come
	// first; of the others nothing is told but that there may be more.
	maxWatched = 8192
	// maxWatches is how many watches run at once. Each takes one of the user's inotify
	// instances, of which many machines allow 128 in total.
	maxWatches = 8
)

// The operations of a Change.
const (
	created  = "created"
	written  = "written"
	removed  = "removed"
	overflow = "overflow"
)

const interest = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_DELETE | unix.IN_MOVED_FROM |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// watch tells of changes until the caller goes.
func (s *Files) watch(ctx context.Context, c *rpc.Call, t Tree, p sandbox.PathParams) (any, error) {
	defer s.watches.Add(-1)
	if s.watches.Add(1) > maxWatches {
		return nil, fmt.Errorf("%w: %d folders are watched already; end one of the watches first", rpc.ErrBusy, maxWatches)
	}
	rel, err := t.resolve(p.Path, true)
	if err != nil {
		return nil, err
	}
	w, err := newWatcher(t, rel, c)
	if err != nil {
		return nil, fail("watch", p.Path, err)
	}
	defer w.f.Close()
	defer context.AfterFunc(ctx, func() { _ = w.f.SetReadDeadline(time.Unix(1, 0)) })()
	s.watching()
	err = w.run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return nil, fail("watch", p.Path, err)
}

// watcher follows the folders below one.
type watcher struct {
	tree Tree
	top  string
	f    *os.File // of inotify
	fd   int
	out  io.Writer

	paths map[int32]string // by watch; relative to the tree
	ids   map[string]int32
	full  bool // there are more folders than we follow

	batch bytes.Buffer
	last  map[string]string // the last operation told of a path, in this batch
}

func newWatcher(t Tree, top string, out io.Writer) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if isAny(err, syscall.EMFILE, syscall.ENFILE) {
		return nil, fmt.Errorf("%w: this machine allows no more watches for this user (fs.inotify.max_user_instances); end another program that watches files", rpc.ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	w := &watcher{tree: t, top: top, fd: fd, f: os.NewFile(uintptr(fd), "inotify"), out: out,
		paths: map[int32]string{}, ids: map[string]int32{}, last: map[string]string{}}
	if err = w.follow(top, false); err == nil && len(w.paths) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		w.f.Close()
		return nil, err
	}
	return w, nil
}

// run reads what the system tells until the folder is gone or reading is ended.
// It does not hold back what the caller is too slow for: then the system's
// queue runs over, and that is told.
func (w *watcher) run() error {
	buf := make([]byte, 64<<10)
	if err := w.flush(); err != nil {
		return err
	}
	for {
		n, err := w.f.Read(buf)
		if err != nil {
			return err
		}
		over, err := w.events(buf[:n])
		if err != nil {
			return err
		}
		if err := w.flush(); err != nil || over {
			return err
		}
	}
}

// events handles a batch; over is true when the folder itself is gone.
func (w *watcher) events(b []byte) (over bool, err error) {
	for len(b) >= unix.SizeofInotifyEvent {
		id, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
		end := min(len(b), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(b[12:])))
		name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
		b = b[end:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			w.tell(".", overflow)
			if err := w.again(); err != nil {
				return false, err
			}
			continue
		}
		dir, ok := w.paths[id]
		if !ok {
			continue
		}
		if mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0 {
			if dir == w.top {
				w.tell(dir, removed)
				return true, nil
			}
			if mask&unix.IN_IGNORED != 0 {
				w.forget(id, dir)
			}
			continue
		}
		if err := w.event(path.Join(dir, string(name)), mask); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (w *watcher) event(at string, mask uint32) error {
	if isTemporary(path.Base(at)) {
		return nil
	}
	folder := mask&unix.IN_ISDIR != 0
	switch {
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		w.tell(at, created)
		if folder {
			return w.follow(at, true)
		}
	case mask&(unix.IN_MODIFY|unix.IN_CLOSE_WRITE) != 0:
		if !folder {
			w.tell(at, written)
		}
	case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
		w.tell(at, removed)
		if folder && mask&unix.IN_MOVED_FROM != 0 {
			w.drop(at)
		}
	}
	return nil
}

// again follows everything anew, since new folders may have been missed.
func (w *watcher) again() error {
	for id := range w.paths {
		_, _ = unix.InotifyRmWatch(w.fd, uint32(id))
	}
	clear(w.paths)
	clear(w.ids)
	w.full = false
	return w.follow(w.top, false)
}

// follow watches a folder and those below it, the nearest first. With tell set
// it is new, and so is what is in it: that may have come before we watched.
func (w *watcher) follow(top string, tell bool) error {
	for queue := []string{top}; len(queue) > 0; queue = queue[1:] {
		if len(w.paths) >= maxWatched {
			w.overrun()
			return nil
		}
		more, err := w.one(queue[0], tell)
		switch {
		case isAny(err, syscall.ENOSPC, syscall.ENOMEM):
			if len(w.paths) == 0 {
				return fmt.Errorf("%w: this machine allows no more watched folders for this user (fs.inotify.max_user_watches)", rpc.ErrBusy)
			}
			w.overrun()
			return nil
		case isAny(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.ELOOP, fs.ErrPermission):
			if queue[0] == w.top && len(w.paths) == 0 {
				return err
			}
			continue // gone again, or not for us
		case err != nil:
			return err
		}
		if len(queue)+len(more) > 2*maxWatched {
			more = more[:max(0, 2*maxWatched-len(queue))]
			w.overrun()
		}
		queue = append(queue, more...)
	}
	return nil
}

// one watches a folder and names those in it.
func (w *watcher) one(at string, tell bool) ([]string, error) {
	d, err := w.open(at)
	if err != nil {
		return nil, err
	}
	defer d.close()
	// A name would be followed wherever it leads by now; the open folder is what it is.
	id, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(d.fd()), interest)
	if err != nil {
		return nil, err
	}
	if old, ok := w.paths[int32(id)]; ok {
		w.forget(int32(id), old)
	}
	w.paths[int32(id)], w.ids[at] = at, int32(id)
	var more []string
	for {
		names, err := d.some()
		if err != nil || len(names) == 0 {
			return more, err
		}
		for _, name := range names {
			if isTemporary(name) {
				continue
			}
			full := path.Join(at, name)
			if tell {
				w.tell(full, created)
			}
			if st, err := d.lstat(name); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && len(more) < 2*maxWatched {
				more = append(more, full)
			}
		}
		if err := w.flushLarge(); err != nil {
			return nil, err
		}
	}
}

// open opens a folder without following a link in its place.
func (w *watcher) open(at string) (*folder, error) {
	if at == "." {
		return w.tree.folder(at)
	}
	d, name, err := w.tree.parent(at)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return d.folder(name)
}

func (w *watcher) forget(id int32, at string) {
	delete(w.paths, id)
	if w.ids[at] == id {
		delete(w.ids, at)
	}
}

// drop stops watching a folder that was moved away, and those below it.
func (w *watcher) drop(top string) {
	for at, id := range w.ids {
		if sandbox.Within(at, top) {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(id))
			w.forget(id, at)
		}
	}
}

// overrun tells, once, that there is more than we follow.
func (w *watcher) overrun() {
	if !w.full {
		w.full = true
		w.tell(".", overflow)
	}
}

// tell adds a change to what is sent next, but not the same one twice.
func (w *watcher) tell(at, op string) {
	if w.last[at] == op {
		return
	}
	w.last[at] = op
	if w.tree.name == "/" {
		at = "/" + strings.TrimPrefix(at, ".")
	}
	b, _ := json.Marshal(sandbox.Change{Path: []byte(at), Op: op})
	w.batch.Write(append(b, '\n'))
}

func (w *watcher) flush() error {
	if w.batch.Len() == 0 {
		return nil
	}
	_, err := w.out.Write(w.batch.Bytes())
	w.batch.Reset()
	clear(w.last)
	return err
}

// flushLarge keeps a batch from growing with the number of files in a folder.
func (w *watcher) flushLarge() error {
	if w.batch.Len() < 256<<10 {
		return nil
	}
	return w.flush()
}
