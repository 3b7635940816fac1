package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"strings"
	"time"

	"deckhand/internal/sandbox/rpc"
)

// File is an entry of a folder. Names are bytes: they are sent as base64 next to their
// readable form, so that none is lost.
type File struct {
	Name []byte      `json:"name"`
	Size int64       `json:"size"`
	Mode fs.FileMode `json:"mode"`
	Time time.Time   `json:"time"`
	// Link is the target of a symbolic link.
	Link []byte `json:"link,omitempty"`
}

// IsDir reports whether it is a folder.
func (f File) IsDir() bool { return f.Mode.IsDir() }

// Paths are relative to the workspace, or absolute inside the sandbox. With Within, a
// path that leads out of the workspace (.., absolute, a symbolic link) is ErrEscapes.

// PathParams is the path of a file.
type PathParams struct {
	Path   []byte `json:"path"`
	Within bool   `json:"within,omitempty"`
}

// InWorkspace returns the parameters of a path that must not lead out of the workspace.
func InWorkspace(path string) PathParams { return PathParams{Path: []byte(path), Within: true} }

// Within reports whether the clean path p is dir or is below it.
func Within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// ReadParams is a range of a file; Length 0 is to the end.
type ReadParams struct {
	PathParams
	Offset int64 `json:"offset,omitempty"`
	Length int64 `json:"length,omitempty"`
}

// WriteParams is a file to write. It is replaced atomically, and missing folders are
// created.
type WriteParams struct {
	PathParams
	// New refuses to replace an existing file.
	New  bool        `json:"new,omitempty"`
	Mode fs.FileMode `json:"mode,omitempty"` // default 0644, or what the file has
	// Limit is the maximum size in bytes; 0 is no limit.
	Limit int64 `json:"limit,omitempty"`
	// Match is the expected Sum of the existing file, else ErrChanged; "" replaces any
	// file.
	Match string `json:"match,omitempty"`
}

// Sum returns the SHA-256 of a file's content in hexadecimal.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Stat returns a file, without following a final symbolic link.
func (s *Sandbox) Stat(ctx context.Context, p PathParams) (File, error) {
	var f File
	return f, s.call(ctx, "stat", 0, p, &f)
}

// List returns the entries of a folder, sorted by name.
func (s *Sandbox) List(ctx context.Context, p PathParams) ([]File, error) {
	var out []File
	return out, s.call(ctx, "list", 0, p, &out)
}

// Read copies a file, or a part of it, to w. It never blocks: anything but a regular file
// is ErrInvalid.
func (s *Sandbox) Read(ctx context.Context, p ReadParams, w io.Writer) (File, error) {
	var f File
	return f, s.receive(ctx, "read", p, w, &f)
}

// Write writes a file from r.
func (s *Sandbox) Write(ctx context.Context, p WriteParams, r io.Reader) (File, error) {
	var f File
	method := "write"
	if p.Match != "" { // an older runner would ignore it
		method = "replace"
	}
	call, err := s.open(ctx, method, s.fence, p)
	if err != nil {
		return f, err
	}
	defer call.Close()
	data := &source{r: r}
	_, err = io.Copy(call, data)
	if data.err != nil { // nothing was written
		call.BreakOff()
		return f, data.err
	}
	if err == nil {
		err = call.CloseWrite()
	}
	// If the runner stopped reading, its error is more useful than ours.
	if answer := call.Answer(&f); answer != nil || err == nil {
		return f, answer
	}
	return f, err
}

// Save is Write for the agent: it is refused while the sandbox is above its disk limit.
func (s *Sandbox) Save(ctx context.Context, p WriteParams, r io.Reader) (File, error) {
	if s.isFull() {
		return File{}, &rpc.Error{Message: Full}
	}
	return s.Write(ctx, p, r)
}

// source remembers read errors of the caller's reader.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Mkdir creates a folder and its parents.
func (s *Sandbox) Mkdir(ctx context.Context, p PathParams) error {
	return s.call(ctx, "mkdir", s.fence, p, nil)
}

// Remove deletes a file, or a folder with its contents.
func (s *Sandbox) Remove(ctx context.Context, p PathParams) error {
	return s.call(ctx, "remove", s.fence, p, nil)
}

// Format is an archive format.
type Format string

// The formats.
const (
	Zip Format = "zip"
	Tar Format = "tar"
)

// ArchiveParams is a folder to pack. Symbolic links are packed as links and never
// followed; sockets, pipes and devices are skipped.
type ArchiveParams struct {
	PathParams
	Format Format `json:"format"`
}

// Archive packs a folder into w.
func (s *Sandbox) Archive(ctx context.Context, p ArchiveParams, w io.Writer) error {
	return s.receive(ctx, "archive", p, w, nil)
}

// Change is a change of a watched file.
type Change struct {
	Path []byte `json:"path"`
	// Op is created, written, removed, or "overflow" if changes were lost.
	Op string `json:"op"`
}

// Watch reports changes in a folder and below it until ctx ends.
func (s *Sandbox) Watch(ctx context.Context, p PathParams, changed func(Change)) error {
	call, err := s.peer.Open(ctx, "watch", 0, p)
	if err != nil {
		return err
	}
	defer call.Close()
	if err := eachJSON(call, changed); err != nil {
		return err
	}
	return call.Answer(nil)
}

// Usage returns the disk usage of the workspace in bytes.
func (s *Sandbox) Usage(ctx context.Context) (int64, error) {
	var n int64
	return n, s.peer.Call(ctx, "usage", 0, nil, &n)
}

// Unlinked returns the size of deleted files that are still open.
func (s *Sandbox) Unlinked(ctx context.Context) (int64, error) {
	var n int64
	return n, s.peer.Call(ctx, "unlinked", 0, nil, &n)
}

// receive makes a call whose data is written to w.
func (s *Sandbox) receive(ctx context.Context, method string, in any, w io.Writer, out any) error {
	call, err := s.open(ctx, method, 0, in)
	if err != nil {
		return err
	}
	defer call.Close()
	if _, err := io.Copy(w, call); err != nil {
		return err
	}
	return call.Answer(out)
}
