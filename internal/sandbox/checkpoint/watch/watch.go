// Package watch reports which files of a workspace change.
package watch

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxWatched is the maximum number of watched folders of a workspace; one with more folders is scanned each time.
	maxWatched = 20_000
	// maxPartial is the maximum number of checkpoints in a row without a full scan. Writes to a memory-mapped file are
	// reported only when the file is closed, so the whole workspace is scanned periodically.
	maxPartial = 20
)

// Watcher records which files of a workspace change, so that only those are checked. The kernel queues the events;
// no goroutine waits for them.
type Watcher struct {
	f       *os.File
	folders map[int32]string // by watch, with a slash at the end
	uses    int
}

const watched = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// New returns a Watcher without folders, nil if the kernel's limit on watchers is reached.
func New() *Watcher {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	return &Watcher{f: os.NewFile(uintptr(fd), "watcher"), folders: map[int32]string{}}
}

// Add watches an open folder. It reports false if that is not possible; then the watcher cannot be used.
func (w *Watcher) Add(dir int, prefix string) bool {
	if len(w.folders) >= maxWatched {
		return false
	}
	wd, err := unix.InotifyAddWatch(int(w.f.Fd()), "/proc/self/fd/"+strconv.Itoa(dir), watched)
	if err != nil {
		return false
	}
	w.folders[int32(wd)] = prefix
	return true
}

func (w *Watcher) Close() {
	if w != nil {
		w.f.Close()
	}
}

// buffers are for events, of which there are none most of the time.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// Touched returns the paths that were touched since the last call. It reports false if the whole workspace has to
// be scanned: there were too many events, or one for a folder or a file that decides which folders are ignored.
func (w *Watcher) Touched() (paths map[string]bool, ok bool) {
	if w == nil {
		return nil, false
	}
	if w.uses++; w.uses > maxPartial {
		return nil, false
	}
	paths = map[string]bool{}
	buf := buffers.Get().(*[64 << 10]byte)[:]
	defer func() { buffers.Put((*[64 << 10]byte)(buf)) }()
	for {
		n, err := unix.Read(int(w.f.Fd()), buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) {
			return paths, true
		}
		if err != nil || n < unix.SizeofInotifyEvent {
			return nil, false
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent
			name := strings.TrimRight(string(buf[at:at+int(e.Len)]), "\x00")
			at += int(e.Len)
			prefix, known := w.folders[e.Wd]
			if !known || name == "" || name == ".gitignore" || e.Mask&(unix.IN_ISDIR|unix.IN_Q_OVERFLOW|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 {
				return nil, false
			}
			paths[prefix+name] = true
		}
	}
}
