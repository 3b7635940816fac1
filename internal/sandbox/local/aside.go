package local

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/tree"
)

// asideDir holds the workspaces that were set aside. It cannot be an ID.
const asideDir = ".set-aside"

// SetAside implements sandbox.Archiver. The users of the workspace stay reserved until the
// server ends: the archived files must not belong to another sandbox.
func (d *Driver) SetAside(ctx context.Context, h sandbox.Handle) (where string, err error) {
	err = d.with(ctx, h, func(p *place) error {
		if err := d.stop(ctx, p); err != nil {
			return err
		}
		if empty(filepath.Join(p.dir, box.WorkDir)) && empty(filepath.Join(p.dir, box.HomeDir)) {
			return tree.Remove(p.dir)
		}
		shelf := filepath.Join(d.dir, asideDir)
		if err := os.Mkdir(shelf, 0o700); err != nil && !os.IsExist(err) {
			return err
		}
		where = filepath.Join(shelf, p.id+"."+strconv.FormatInt(time.Now().UnixMilli(), 10))
		d.Forget(p.dir)
		return os.Rename(p.dir, where)
	})
	return where, err
}

// empty says whether there is nothing in a folder, or no folder.
func empty(dir string) bool {
	names, err := os.ReadDir(dir)
	return len(names) == 0 && (err == nil || os.IsNotExist(err))
}
