package local

import (
	"errors"
	"hash/fnv"
	"sync"
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
