package open

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// begin makes a new database file a copy of an empty one, the template, which empty makes if there is none. A short-lived process with a
// database of its own would otherwise spend much of its time in migrations.
func begin(path, template string, empty func(path string) error) (err error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	from, err := os.Open(template)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeTemplate(template, empty); err == nil {
			from, err = os.Open(template)
		}
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func makeTemplate(template string, empty func(path string) error) error {
	if err := os.MkdirAll(filepath.Dir(template), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(template), "empty-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "deckhand.db")
	if err := empty(made); err != nil {
		return err
	}
	f, err := os.Open(made)
	if err != nil {
		return err
	}
	// If a crash cut the template off, no later start would work.
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(made, template)
}
