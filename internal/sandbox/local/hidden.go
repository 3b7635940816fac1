package local

import (
	"fmt"
	"path/filepath"

	"deckhand/internal/sandbox/local/privatefiles"
)

func (b *base) setMasked(m privatefiles.Found) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.masked, b.unmapped = m.Paths, b.unable
	if m.Many {
		// Without mapping, the files are closed by their modes.
		b.masked = nil
		b.unmapped = fmt.Sprintf("more than %d files in the system's folders are not world-readable", privatefiles.Most)
	}
	for _, l := range b.layers {
		if covers(l.Source, b.data) {
			b.masked = append([]string{b.data}, b.masked...)
		}
	}
}

// private are the folders in which the sandbox's users would own files.
func (b *base) private() []string {
	if b.rights.Ranges && !b.rights.Trees {
		return nil
	}
	var folders []string
	for _, l := range b.layers {
		folders = append(folders, l.Source)
	}
	if !b.rights.Ranges {
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
		keep = filepath.Join(b.dir, "private-files")
	}
	b.watch = privatefiles.Of(b.private(), b.data, b.rights.Ranges, keep)
	return b.refresh()
}

// refresh finds what has changed in the system's folders since it last looked.
// It is called before each start and costs nothing as long as nothing changes.
func (b *base) refresh() error {
	if b.watch == nil {
		return nil
	}
	m, turn, err := b.watch.Now(b.ctx, b.log)
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
	if m.Many && !b.rights.Ranges {
		// There is no mapping to do without, so it is the best that can be done.
		m.Many, m.Paths = false, m.Paths[:privatefiles.Most]
		b.log.Warn("there are many private files of the server's user in the system's folders; sandboxes can read some of them", "folders", "/usr, /opt")
	}
	b.setMasked(m)
	return nil
}
