package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// Write writes a file of the workspace in one go.
func Write(ctx context.Context, root *os.Root, p sandbox.WriteParams, r io.Reader) (sandbox.File, error) {
	return At(root, sandbox.Workspace).Write(ctx, p, r)
}

// Mkdir makes a folder and those above it.
func Mkdir(root *os.Root, p []byte) error { return At(root, sandbox.Workspace).Mkdir(p) }

// Remove deletes a file, or a folder with all that is in it.
func Remove(root *os.Root, p []byte) error { return At(root, sandbox.Workspace).Remove(p) }

// Write writes a file in one go: into a file beside it that takes its place
// when everything has come. A link that is replaced is followed, a file that
// has other names keeps its content under those. If it fails nothing is left
// behind, also none of the folders that were missing.
func (t Tree) Write(ctx context.Context, p sandbox.WriteParams, r io.Reader) (sandbox.File, error) {
	if p.Limit < 0 {
		return sandbox.File{}, invalid("write", p.Path, "a limit cannot be negative")
	}
	rel, err := t.resolve(p.Path, !p.New)
	if err != nil {
		return sandbox.File{}, err
	}
	if rel == "." {
		return sandbox.File{}, invalid("write", p.Path, "it is a folder")
	}
	if err := t.writable(rel); err != nil {
		return sandbox.File{}, fail("write", p.Path, err)
	}
	f, err := t.write(ctx, rel, p, r)
	return f, fail("write", p.Path, err)
}

func (t Tree) write(ctx context.Context, rel string, p sandbox.WriteParams, r io.Reader) (sandbox.File, error) {
	var none sandbox.File
	d, missing, err := t.deepest(path.Dir(rel))
	if err != nil {
		return none, err
	}
	defer d.close()
	name := path.Base(rel)
	attr, err := d.attributes(name, p, len(missing) > 0)
	if err != nil {
		return none, err
	}
	tmp, f, err := d.temporary()
	if err != nil {
		return none, err
	}
	defer func() {
		f.Close()
		// A process that was being started at the same time holds the file open until its exec:
		// running the written file has to wait for that.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}()
	placed := false
	defer func() {
		if !placed {
			_ = unix.Unlinkat(d.fd(), tmp, 0)
		}
	}()
	if err := fill(ctx, f, r, p.Limit); err != nil {
		return none, err
	}
	if err := attr.apply(f); err != nil {
		return none, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return none, err
	}
	if p.Match != "" { // as late as can be
		if err := d.matches(ctx, name, p.Match, len(missing) > 0); err != nil {
			return none, err
		}
	}
	into, err := d.makeAll(missing)
	if err != nil {
		return none, err
	}
	defer into.close()
	if err := d.rename(tmp, into, name, p.New); err != nil {
		return none, err
	}
	placed = true
	return describe(name, &st), nil
}

// matches reports whether a file has the content of which this is the sum.
func (d *folder) matches(ctx context.Context, name, sum string, missing bool) error {
	if missing {
		return rpc.ErrChanged
	}
	f, err := d.open(name, unix.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return rpc.ErrChanged
	}
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &during{ctx, f}); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return rpc.ErrChanged
	}
	return nil
}

// makeAll makes nested folders and opens the last. They get the owner of the folder above.
func (d *folder) makeAll(missing []string) (*folder, error) {
	last, err := d.folder(".")
	if err != nil {
		return nil, err
	}
	for _, name := range missing {
		next, err := last.make(name)
		last.close()
		if err != nil {
			return nil, err
		}
		last = next
	}
	return last, nil
}

func (d *folder) make(name string) (*folder, error) {
	made := unix.Mkdirat(d.fd(), name, 0o755)
	if made != nil && !errors.Is(made, syscall.EEXIST) {
		return nil, made
	}
	next, err := d.folder(name)
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			err = fs.ErrExist
		}
		return nil, err
	}
	if st, err := d.self(); made == nil && err == nil {
		_ = unix.Fchown(next.fd(), int(st.Uid), int(st.Gid)) // only root may, and only root needs to
	}
	return next, nil
}

// attributes are what a file has besides its content.
type attributes struct {
	mode     uint32
	uid, gid int
}

// attributes takes those of the file that will be replaced, or what is usual in the folder.
// Setuid and setgid bits are not passed on to new content.
func (d *folder) attributes(name string, p sandbox.WriteParams, missing bool) (attributes, error) {
	a := attributes{mode: 0o644}
	like, err := d.self()
	if err != nil {
		return a, err
	}
	if !missing {
		st, err := d.lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return a, err
		case p.New:
			return a, fs.ErrExist
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			return a, fmt.Errorf("%w: it is a folder", rpc.ErrInvalid)
		case st.Mode&unix.S_IFMT != unix.S_IFREG:
			return a, errIrregular
		default:
			like, a.mode = st, uint32(st.Mode)&0o777
		}
	}
	if p.Mode.Perm() != 0 {
		a.mode = uint32(p.Mode.Perm())
	}
	a.uid, a.gid = int(like.Uid), int(like.Gid)
	return a, nil
}

func (a attributes) apply(f *os.File) error {
	_ = f.Chown(a.uid, a.gid) // only root may, and only root needs to
	return f.Chmod(fs.FileMode(a.mode))
}

const (
	tmpPrefix = ".deckhand-"
	tmpSuffix = ".tmp"
)

// isTemporary is true for the names of files that are not finished.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, tmpPrefix) && strings.HasSuffix(name, tmpSuffix)
}

// temporary makes a file that only its owner can read.
func (d *folder) temporary() (string, *os.File, error) {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	name := tmpPrefix + hex.EncodeToString(b[:]) + tmpSuffix
	f, err := d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	return name, f, err
}

// fill copies at most limit bytes, all if it is 0.
func fill(ctx context.Context, f *os.File, r io.Reader, limit int64) error {
	r = &during{ctx, r}
	if limit > 0 {
		r = io.LimitReader(r, limit+1)
	}
	n, err := io.CopyBuffer(writeOnly{f}, r, make([]byte, 64<<10))
	if err != nil {
		return err
	}
	if limit > 0 && n > limit {
		return fmt.Errorf("%w: a file may have %d bytes here", rpc.ErrTooBig, limit)
	}
	return nil
}

// writeOnly hides all but Write, so that CopyBuffer uses our buffer.
type writeOnly struct{ io.Writer }

// during reads until ctx ends.
type during struct {
	ctx context.Context
	r   io.Reader
}

func (d *during) Read(b []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	return d.r.Read(b)
}

// rename gives a file its final name. A link that appeared there is replaced, not followed.
func (d *folder) rename(tmp string, into *folder, name string, exclusive bool) error {
	if !exclusive {
		return retry(func() error { return unix.Renameat(d.fd(), tmp, into.fd(), name) })
	}
	err := retry(func() error { return renameNew(d.fd(), tmp, into.fd(), name) })
	if isAny(err, syscall.EINVAL, syscall.ENOSYS) { // some file systems cannot
		if err = unix.Linkat(d.fd(), tmp, into.fd(), name, 0); err == nil {
			err = unix.Unlinkat(d.fd(), tmp, 0)
		}
	}
	return err
}

// Mkdir makes a folder and those above it. One that exists is fine.
func (t Tree) Mkdir(p []byte) error {
	rel, err := t.resolve(p, true)
	if err != nil {
		return err
	}
	if err := t.writable(rel); err != nil {
		return fail("make", p, err)
	}
	d, missing, err := t.deepest(rel)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		err = fs.ErrExist
	}
	if err != nil {
		return fail("make", p, err)
	}
	defer d.close()
	last, err := d.makeAll(missing)
	if err != nil {
		return fail("make", p, err)
	}
	last.close()
	return nil
}

// Remove deletes a file or link, or a folder with all that is in it.
func (t Tree) Remove(p []byte) error {
	rel, err := t.resolve(p, false)
	if err != nil {
		return err
	}
	if rel == "." {
		return invalid("remove", p, "it holds everything else")
	}
	if err := t.writable(rel); err != nil {
		return fail("remove", p, err)
	}
	if _, err := t.root.Lstat(rel); err != nil {
		return fail("remove", p, err)
	}
	return fail("remove", p, t.root.RemoveAll(rel))
}
