package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"deckhand/internal/datadir"
	"deckhand/internal/sandbox/tree"
)

// unfinished is in a data directory while it is being restored. No server starts there.
const unfinished = datadir.Restoring

// Target is where a backup is restored to.
type Target struct {
	DataDir  string
	Database Database
	// WorkspacesOnly restores everything except the database, which other servers of the same installation already use.
	WorkspacesOnly bool
	// Step, if set, is called with a description of each step.
	Step func(text string)
}

func (t Target) step(format string, args ...any) {
	if t.Step != nil {
		t.Step(fmt.Sprintf(format, args...))
	}
}

// Restore restores a backup into an empty data directory and, unless only workspaces are wanted, an empty database. It verifies all chunks before it writes, and
// compares the result with the backup. After a failure, it can be repeated.
func (r *Repository) Restore(ctx context.Context, m Manifest, t Target) error {
	if kind := t.Database.Kind(); kind != m.Database {
		return fmt.Errorf("the backup contains a %s database and cannot be restored to %s", m.Database, kind)
	}
	t.step("verifying the backup")
	if err := r.Verify(ctx, m); err != nil {
		return err
	}
	if err := r.prepare(ctx, m, t); err != nil {
		return err
	}
	var database *Stream
	boxes := filepath.Join(t.DataDir, boxesDir)
	for i, s := range m.Streams {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch s.Kind {
		case kindDatabase:
			database = &m.Streams[i]
		case kindWorkspace:
			t.step("workspace %s", s.Name)
			err = r.restoreWorkspace(s, boxes)
		case kindFile:
			err = r.restoreFile(s, boxes)
		case kindKey, kindName:
			s.Name = map[string]string{kindKey: keyFile, kindName: datadir.NameFile}[s.Kind]
			err = r.restoreFile(s, t.DataDir)
		default:
			err = fmt.Errorf("the backup contains unknown data (%s); use a newer version of deckhand", s.Kind)
		}
		if err != nil {
			return err
		}
	}
	if database == nil {
		return errors.New("the backup contains no database")
	}
	if err := syncTree(t.DataDir); err != nil {
		return err
	}
	if !t.WorkspacesOnly {
		t.step("database")
		if err := t.Database.Load(ctx, m.Schema, r.reader(*database)); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(filepath.Join(t.DataDir, unfinished)), syncDir(t.DataDir))
}

// prepare refuses a target with data, and removes what an unfinished restore left behind.
func (r *Repository) prepare(ctx context.Context, m Manifest, t Target) error {
	mark := filepath.Join(t.DataDir, unfinished)
	if t.WorkspacesOnly {
		if err := r.joins(ctx, m, t.Database); err != nil {
			return err
		}
	} else if err := t.Database.Empty(ctx); err != nil {
		if _, missing := os.Lstat(mark); missing == nil { // the database is the last thing that is restored
			err = fmt.Errorf("%w; if an interrupted restore has filled it, the restore is complete: delete %s to use it", err, mark)
		}
		return err
	}
	names, err := os.ReadDir(t.DataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(mark); err != nil && len(names) > 0 {
		return fmt.Errorf("%s is not empty; move its contents away, or choose a new --data-dir", t.DataDir)
	}
	for _, n := range names {
		if n.Name() != unfinished {
			if err := tree.Remove(filepath.Join(t.DataDir, n.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(t.DataDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	return os.Mkdir(filepath.Join(t.DataDir, boxesDir), 0o711) // sandbox users need to traverse it
}

// restoreWorkspace restores a workspace and compares it with the backup.
func (r *Repository) restoreWorkspace(s Stream, boxes string) error {
	if !validName([]byte(s.Name)) || skipped(s.Name) {
		return fmt.Errorf("refused the workspace name %q", s.Name)
	}
	path := filepath.Join(boxes, s.Name)
	want, err := unpack(r.reader(s), path)
	if err != nil {
		return err
	}
	got, err := printOf(path)
	if err == nil && got != want {
		err = fmt.Errorf("the restored workspace %s differs from the backup; check the disk, and restore again", path)
	}
	return err
}

// joins returns an error if the workspaces of a backup do not belong to the database or are in use.
func (r *Repository) joins(ctx context.Context, m Manifest, d Database) error {
	var installation, server string
	for _, s := range m.Streams {
		isName := s.Kind == kindName
		if !isName && (s.Kind != kindFile || s.Name != datadir.InstanceFile) {
			continue
		}
		b, err := r.small(s)
		if err != nil {
			return err
		}
		if isName {
			server = string(b)
		} else {
			installation = string(b)
		}
	}
	if installation == "" || server == "" {
		return errors.New("the backup does not name the server of its workspaces, because it was made by an older version or without a server in the data directory; choose another backup")
	}
	return d.Joins(ctx, installation, server)
}

// small reads a small file.
func (r *Repository) small(s Stream) ([]byte, error) {
	const most = 1 << 20
	b, err := io.ReadAll(io.LimitReader(r.reader(s), most+1))
	if err == nil && len(b) > most {
		err = fmt.Errorf("the file %s is too large", s.Name)
	}
	return b, err
}

func (r *Repository) restoreFile(s Stream, dir string) error {
	if !validName([]byte(s.Name)) {
		return fmt.Errorf("the backup contains the invalid file name %q; choose another backup", s.Name)
	}
	b, err := r.small(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, s.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
