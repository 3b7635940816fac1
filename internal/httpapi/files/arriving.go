package files

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"deckhand/internal/sandbox"
)

// arriving are the names under which files are being stored right now, so that
// two uploads do not choose the same.
type arriving struct {
	mu    sync.Mutex
	names map[string]bool
}

func (a *arriving) enter(name string) (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names[name] {
		return nil, false
	}
	if a.names == nil {
		a.names = map[string]bool{}
	}
	a.names[name] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.names, name)
	}, true
}

// maxNumber is how many names are tried for one file.
const maxNumber = 10_000

var errNames = errors.New("no free file name")

// fresh finds a name that nothing in the workspace has. It stays reserved until leave is called.
func (u *upload) fresh(ctx context.Context, name string) (free string, leave func(), err error) {
	for n := range maxNumber {
		free = nthName(name, n)
		leave, ok := u.d.arriving.enter(string(u.id) + "\x00" + free)
		if !ok {
			continue
		}
		_, err := u.box.Stat(ctx, sandbox.InWorkspace(free))
		if errors.Is(err, fs.ErrNotExist) {
			return free, leave, nil
		}
		leave()
		if err != nil {
			return "", nil, err
		}
	}
	return "", nil, errNames
}
