package local

import (
	"errors"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Sandboxes of a root server get ranges of users between those that
// distributions give to people's own containers and the end of what programs
// that keep user numbers in signed integers can take.
const (
	rangeSize = 1 << 16
	firstUser = 0x20000000
	lastUser  = 0x6fff0000
)

// users gives out ranges.
type users struct {
	dir   string
	mu    sync.Mutex
	taken map[uint32]string
}

// take gives a sandbox its range. Where the search begins depends on the names,
// so that the sandboxes of two servers hardly ever share a range either.
func (u *users) take(id string) (uint32, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(u.dir + "/" + id))
	const slots = (lastUser-firstUser)/rangeSize + 1
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range uint32(slots) {
		first := firstUser + (h.Sum32()%slots+i)%slots*rangeSize
		if _, taken := u.taken[first]; !taken {
			u.taken[first] = id
			return first, nil
		}
	}
	return 0, errors.New("all ranges of users are taken by sandboxes: remove some")
}

// rangeOf is the first user of the range that holds user.
func rangeOf(user uint32) uint32 { return user - (user-firstUser)%rangeSize }

// rename says who has a range now.
func (u *users) rename(first uint32, id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if first != 0 {
		u.taken[first] = id
	}
}

func (u *users) free(first uint32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.taken, first)
}

// rights are what this process may do.
type rights struct {
	// ranges says that sandboxes have ranges of users of their own.
	ranges bool
	// trees says that mounts can be made here and handed to sandboxes, with
	// their owners mapped.
	trees bool
	// why says what is missing for ranges.
	why string
}

// findRights looks at what we are.
func findRights() rights {
	if os.Geteuid() != 0 {
		return rights{why: "the server is not root"}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return rights{why: err.Error()}
	}
	for _, c := range []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL} {
		if data[0].Effective&(1<<c) == 0 {
			return rights{why: "the server is root without the capabilities to act for other users (CHOWN, DAC_OVERRIDE, FOWNER, SETUID, SETGID, KILL)"}
		}
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		b, err := os.ReadFile(file)
		if err != nil || !mapped(string(b)) {
			return rights{why: "the server is root in a user namespace that has too few users"}
		}
	}
	return rights{ranges: true, trees: canMount("/")}
}

// mapped says whether an id map has all users that sandboxes may get.
func mapped(text string) bool {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		inside, e1 := strconv.ParseUint(f[0], 10, 64)
		size, e2 := strconv.ParseUint(f[2], 10, 64)
		if e1 == nil && e2 == nil && inside <= firstUser && inside+size >= lastUser+rangeSize {
			return true
		}
	}
	return false
}

// canMount says whether a folder can be made a mount to hand over.
func canMount(dir string) bool {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}
