package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/datadir"
)

// Database is a database as a stream of bytes.
type Database interface {
	// Kind returns the kind of database.
	Kind() string
	// Dump writes a consistent snapshot of the database, which may be in use, and returns the version of its schema.
	Dump(ctx context.Context, w io.Writer) (schema int64, err error)
	// Empty returns an error if there is data in the database.
	Empty(ctx context.Context) error
	// Joins returns an error unless the database belongs to the installation and no server with this name uses it.
	Joins(ctx context.Context, installation, server string) error
	// Load fills an empty database from a dump, or leaves it empty. It verifies that a new dump has the same bytes.
	Load(ctx context.Context, schema int64, r io.Reader) error
}

// Options are the options of Make.
type Options struct {
	DataDir  string
	Database Database
	Version  string
	// Key includes the master key.
	Key bool
	// Step, if set, is called with a description of each step.
	Step func(text string)
}

// Names in a data directory.
const (
	boxesDir   = "boxes"
	keyFile    = "master.key"
	recordFile = "last-backup"
)

// skipped reports whether a name in the folder of workspaces is temporary data that servers recreate.
func skipped(name string) bool {
	return name == ".base" || strings.HasPrefix(name, ".scrap-") || strings.HasPrefix(name, ".tmp")
}

func (o Options) step(format string, args ...any) {
	if o.Step != nil {
		o.Step(fmt.Sprintf(format, args...))
	}
}

// Make makes a backup and verifies it. Workspaces are stored before the database, so that each has its conversation there.
func (r *Repository) Make(ctx context.Context, o Options) (Manifest, error) {
	if err := r.scan(); err != nil {
		return Manifest{}, err
	}
	m := Manifest{Created: time.Now().UTC().Truncate(time.Second), Version: o.Version, Database: o.Database.Kind()}
	if err := r.workspaces(ctx, o, &m); err != nil {
		return m, err
	}
	o.step("database")
	w := r.writer()
	schema, dumpErr := o.Database.Dump(ctx, w)
	s, err := w.close(kindDatabase, m.Database)
	if err := errors.Join(dumpErr, err); err != nil {
		return m, err
	}
	m.Schema, m.Streams = schema, append(m.Streams, s)
	// The database names the server as the one that has the workspaces.
	if err := r.file(&m, kindName, datadir.NameFile, filepath.Join(o.DataDir, datadir.NameFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	if o.Key {
		if err := r.file(&m, kindKey, keyFile, filepath.Join(o.DataDir, keyFile)); err != nil {
			return m, err
		}
	}
	o.step("verifying")
	m.Added = r.added.Load()
	if m.Name, err = r.name(m.Created); err != nil {
		return m, err
	}
	if err := r.Verify(ctx, m); err != nil {
		var damaged *damagedError
		if errors.As(err, &damaged) { // a chunk of an older backup
			err = errors.Join(fmt.Errorf("%w; it was removed, so make the backup again", err), os.Remove(r.chunk(damaged.Hash)))
		}
		return m, err
	}
	return m, r.commit(m)
}

// name returns the first free name for a backup of this time.
func (r *Repository) name(at time.Time) (string, error) {
	for i := range 1000 {
		name := at.Format("20060102T150405Z")
		if i > 0 {
			name += fmt.Sprintf("-%03d", i)
		}
		if _, err := os.Lstat(filepath.Join(r.dir, manifestDir, name+suffix)); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", errors.New("too many backups in the same second; try again")
}

// workspaces stores the folder of workspaces.
func (r *Repository) workspaces(ctx context.Context, o Options, m *Manifest) error {
	boxes := filepath.Join(o.DataDir, boxesDir)
	names, err := os.ReadDir(boxes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the driver has no local workspaces
	}
	if err != nil {
		return err
	}
	for i, n := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(boxes, n.Name())
		switch {
		case skipped(n.Name()):
		case n.IsDir():
			o.step("workspace %d of %d", i+1, len(names))
			err = r.workspace(m, n.Name(), path)
		case n.Type().IsRegular():
			err = r.file(m, kindFile, n.Name(), path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the conversation was deleted
			return err
		}
	}
	return nil
}

// tries is how often a workspace is read if folders in it are moved during the read.
const tries = 5

// workspace stores a workspace.
func (r *Repository) workspace(m *Manifest, name, path string) error {
	for try := 1; ; try++ {
		w := r.writer()
		packErr := pack(path, w)
		s, err := w.close(kindWorkspace, name)
		if err != nil {
			return err
		}
		switch {
		case packErr == nil:
			m.Streams = append(m.Streams, s)
			return nil
		case moved(packErr) && try < tries:
		case errors.Is(packErr, fs.ErrPermission):
			return fmt.Errorf("%w; run this command as the user of the server, or as root", packErr)
		default:
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return packErr
		}
	}
}

// file stores a small file of the server.
func (r *Repository) file(m *Manifest, kind, name, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	w := r.writer()
	_, _ = io.Copy(w, bytes.NewReader(b)) // close returns the error
	s, err := w.close(kind, name)
	m.Streams = append(m.Streams, s)
	return err
}

// Record records in the data directory that a backup was made, for the health page.
func Record(dataDir string) error {
	info, err := os.Stat(dataDir)
	if err != nil {
		return err
	}
	path := filepath.Join(dataDir, recordFile)
	fresh := path + ".new"
	if err := os.WriteFile(fresh, nil, 0o600); err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		err = os.Lchown(fresh, int(owner.Uid), int(owner.Gid))
	}
	return errors.Join(err, os.Rename(fresh, path)) // also replaces a file of another user
}
