package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
)

// Files of a repository. Names with tempPrefix are left from an interrupted backup.
const (
	formatFile  = "format"
	lockFile    = "lock"
	chunkDir    = "chunks"
	manifestDir = "backups"
	tempPrefix  = ".tmp-"
	formatText  = "deckhand backup 1\n"
	suffix      = ".json"
)

// Repository is an open folder with backups.
type Repository struct {
	dir  string
	lock *os.File
	// Progress, if set, is called with the number of bytes read or written since the last call.
	Progress func(n int)

	mu      sync.Mutex
	have    map[Hash]bool
	touched map[string]bool // folders of chunks with new names
	added   atomic.Int64    // bytes
}

// Manifest describes one backup.
type Manifest struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Version is the version of the program, Database the kind of database, and Schema its schema version.
	Version  string `json:"version"`
	Database string `json:"database"`
	Schema   int64  `json:"schema"`
	// Added is the number of bytes that the backup added to the folder.
	Added   int64    `json:"added"`
	Streams []Stream `json:"streams"`
}

// Kinds of streams.
const (
	kindDatabase  = "database"
	kindWorkspace = "workspace"
	kindFile      = "file"
	kindKey       = "master key"
	kindName      = "server name"
)

// Size returns the size of the restored backup in bytes.
func (m Manifest) Size() (n int64) {
	for _, s := range m.Streams {
		n += s.Size
	}
	return n
}

// count returns the number of streams of a kind.
func (m Manifest) count(kind string) (n int) {
	for _, s := range m.Streams {
		if s.Kind == kind {
			n++
		}
	}
	return n
}

// printable reports whether all texts can be shown in a terminal as they are.
func (m Manifest) printable() bool {
	texts := []string{m.Name, m.Version, m.Database}
	for _, s := range m.Streams {
		texts = append(texts, s.Kind, s.Name)
	}
	return !slices.ContainsFunc(texts, func(s string) bool {
		return strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
	})
}

// Workspaces is how many workspaces a backup has.
func (m Manifest) Workspaces() int { return m.count(kindWorkspace) }

// HasKey reports whether a backup contains the master key.
func (m Manifest) HasKey() bool { return m.count(kindKey) > 0 }

// Create opens a folder for writing, with an exclusive lock until Close, and creates it if it is missing.
func Create(dir string) (*Repository, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	_, err := os.Lstat(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		names, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if !strings.HasPrefix(n.Name(), tempPrefix) && n.Name() != lockFile {
				return nil, fmt.Errorf("%s contains other files; use an empty or a new folder for backups", dir)
			}
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	r, err := open(dir, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{chunkDir, manifestDir} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, r.Close())
		}
	}
	if err := errors.Join(checkDirs(filepath.Join(dir, chunkDir), filepath.Join(dir, manifestDir)), r.write(filepath.Join(dir, formatFile), []byte(formatText))); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Sizes of the largest files that are read.
const (
	maxStored   = 2 * maxChunk
	maxManifest = 1 << 30
	maxFormat   = 1 << 10
)

// readFile reads a file of a repository, which may come from a stranger: no link is followed, no pipe waited for, and no file too
// large for the memory is read.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is not a file, or too large", path)
	}
	return io.ReadAll(io.LimitReader(f, most+1))
}

// checkDirs returns an error for a link in place of a folder: what is removed from chunks would be removed elsewhere.
func checkDirs(paths ...string) error {
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder; restore the backups from another copy, or use another folder", path)
		}
	}
	return nil
}

// Open opens a folder for reading.
func Open(dir string) (*Repository, error) {
	text, err := readFile(filepath.Join(dir, formatFile), maxFormat)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
			return nil, fmt.Errorf("the folder %s does not exist", dir)
		}
		return nil, fmt.Errorf("%s contains no backups", dir)
	}
	if err != nil {
		return nil, err
	}
	if string(text) != formatText {
		return nil, fmt.Errorf("%s was written by a newer version of deckhand; use that version", dir)
	}
	return open(dir, syscall.LOCK_SH)
}

func open(dir string, how int) (*Repository, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		f, err = os.Open(dir) // read-only: no backup can be writing
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another backup or restore is using %s; wait until it has finished", dir)
	}
	return &Repository{dir: dir, lock: f, touched: map[string]bool{}}, nil
}

// Close releases the lock of the folder.
func (r *Repository) Close() error { return r.lock.Close() }

func (r *Repository) progress(n int) {
	if r.Progress != nil {
		r.Progress(n)
	}
}

func (r *Repository) chunk(h Hash) string {
	name := h.String()
	return filepath.Join(r.dir, chunkDir, name[:2], name)
}

// write writes a file atomically. Its content is synced, its name is not.
func (r *Repository) write(path string, content []byte) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// put stores a chunk unless it is already stored.
func (r *Repository) put(h Hash, chunk []byte) error {
	path := r.chunk(h)
	r.mu.Lock()
	known := r.have[h]
	r.have[h] = true
	r.touched[filepath.Dir(path)] = r.touched[filepath.Dir(path)] || !known
	r.mu.Unlock()
	if known {
		return nil
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	stored := encode(chunk)
	r.added.Add(int64(len(stored)))
	return r.write(path, stored)
}

// scan lists the stored chunks, and removes temporary files of interrupted backups.
func (r *Repository) scan() error {
	r.have = map[Hash]bool{}
	for _, dir := range []string{r.dir, filepath.Join(r.dir, manifestDir)} {
		left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return r.each(func(path string, h Hash) error {
		r.have[h] = true
		return nil
	})
}

// each calls do for all stored chunks, and removes all other files.
func (r *Repository) each(do func(path string, h Hash) error) error {
	root := filepath.Join(r.dir, chunkDir)
	dirs, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if err := checkDirs(filepath.Join(root, d.Name())); err != nil {
			return err
		}
		names, err := os.ReadDir(filepath.Join(root, d.Name()))
		if err != nil {
			return err
		}
		for _, n := range names {
			var h Hash
			path := filepath.Join(root, d.Name(), n.Name())
			if h.UnmarshalText([]byte(n.Name())) == nil {
				err = do(path, h)
			} else {
				err = os.Remove(path)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// commit makes the chunks durable and stores the manifest.
func (r *Repository) commit(m Manifest) error {
	for dir, changed := range r.touched {
		if changed {
			if err := syncDir(dir); err != nil {
				return err
			}
		}
	}
	if err := syncDir(filepath.Join(r.dir, chunkDir)); err != nil {
		return err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	dir := filepath.Join(r.dir, manifestDir)
	if err := r.write(filepath.Join(dir, m.Name+suffix), append(append(hex.AppendEncode(nil, sum[:]), '\n'), body...)); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(r.dir))
}

// List returns all backups, oldest first.
func (r *Repository) List() ([]Manifest, error) {
	dir := filepath.Join(r.dir, manifestDir)
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []Manifest
	for _, n := range names {
		name, ok := strings.CutSuffix(n.Name(), suffix)
		if !ok || strings.HasPrefix(name, tempPrefix) {
			continue
		}
		m, err := r.manifest(name)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Manifest) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Find returns the backup with this name, or the newest one if the name is empty.
func (r *Repository) Find(name string) (Manifest, error) {
	if name != "" {
		if m, err := r.manifest(filepath.Base(name)); !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
		return Manifest{}, fmt.Errorf("no backup %s in %s; see: deckhand backup list %s", name, r.dir, r.dir)
	}
	all, err := r.List()
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s contains no finished backup", r.dir)
	}
	if err != nil {
		return Manifest{}, err
	}
	return all[len(all)-1], nil
}

func (r *Repository) manifest(name string) (m Manifest, err error) {
	text, err := readFile(filepath.Join(r.dir, manifestDir, name+suffix), maxManifest)
	if err != nil {
		return m, err
	}
	sum, body, _ := bytes.Cut(text, []byte("\n"))
	var want Hash
	if want.UnmarshalText(sum) != nil || sha256.Sum256(body) != want || json.Unmarshal(body, &m) != nil || m.Name != name || !m.printable() {
		return m, fmt.Errorf("the manifest of backup %q is damaged; delete %q to remove this backup", name, filepath.Join(r.dir, manifestDir, name+suffix))
	}
	return m, nil
}

// Verify reads all chunks of a backup and checks their hashes.
func (r *Repository) Verify(ctx context.Context, m Manifest) error {
	var wait sync.WaitGroup
	var bad atomic.Pointer[error]
	work := make(chan Hash)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for h := range work {
				chunk, err := r.load(h)
				if r.progress(len(chunk)); err != nil {
					bad.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	seen := map[Hash]bool{}
	for _, s := range m.Streams {
		for _, h := range s.Chunks {
			if !seen[h] && bad.Load() == nil && ctx.Err() == nil {
				seen[h] = true
				work <- h
			}
		}
	}
	close(work)
	wait.Wait()
	if err := bad.Load(); err != nil {
		return fmt.Errorf("backup %s is not valid: %w", m.Name, *err)
	}
	return ctx.Err()
}

// Prune removes all but the newest keep backups (0 keeps all), and all chunks that no backup needs. It returns the names of
// the removed backups.
func (r *Repository) Prune(keep int) (removed []string, err error) {
	all, err := r.List()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.dir, manifestDir)
	for keep > 0 && len(all) > keep {
		if err := os.Remove(filepath.Join(dir, all[0].Name+suffix)); err != nil {
			return removed, err
		}
		removed, all = append(removed, all[0].Name), all[1:]
	}
	if err := syncDir(dir); err != nil { // before their chunks are removed
		return removed, err
	}
	needed := map[Hash]bool{}
	for _, m := range all {
		for _, s := range m.Streams {
			for _, h := range s.Chunks {
				needed[h] = true
			}
		}
	}
	return removed, r.each(func(path string, h Hash) error {
		if needed[h] {
			return nil
		}
		return os.Remove(path)
	})
}
