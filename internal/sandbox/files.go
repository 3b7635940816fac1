package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"strings"
	"time"
)

// File is one entry of a folder. Names are bytes: they travel as base64 beside
// their readable form, so that none is lost.
type File struct {
	Name []byte      `json:"name"`
	Size int64       `json:"size"`
	Mode fs.FileMode `json:"mode"`
	Time time.Time   `json:"time"`
	// Link is where a symbolic link leads.
	Link []byte `json:"link,omitempty"`
}

// IsDir is true for folders.
func (f File) IsDir() bool { return f.Mode.IsDir() }

// Paths are relative to the workspace, or absolute inside the sandbox. With
// Within set, whatever leads out of the workspace (.., absolute, a symbolic
// link) is ErrEscapes.

// PathParams names a file.
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

// ReadParams names a range of a file; Length 0 is to the end.
type ReadParams struct {
	PathParams
	Offset int64 `json:"offset,omitempty"`
	Length int64 `json:"length,omitempty"`
}

// WriteParams names a file to write: in one go, so that nobody ever sees half
// of it. Missing folders are made.
type WriteParams struct {
	PathParams
	// New refuses to replace a file that exists.
	New  bool        `json:"new,omitempty"`
	Mode fs.FileMode `json:"mode,omitempty"` // default 0644, or what the file has
	// Limit is how many bytes it may have; 0 is no limit.
	Limit int64 `json:"limit,omitempty"`
	// Match is the Sum of what the file must have so that it is replaced, or the
	// error is ErrChanged; "" replaces whatever there is.
	Match string `json:"match,omitempty"`
}

// Sum returns the SHA-256 of a file's content in hexadecimal.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Stat tells of a file, without following a last symbolic link.
func (s *Sandbox) Stat(ctx context.Context, p PathParams) (File, error) {
	var f File
	return f, s.peer.Call(ctx, "stat", 0, p, &f)
}

// List tells what is in a folder, sorted by name.
func (s *Sandbox) List(ctx context.Context, p PathParams) ([]File, error) {
	var out []File
	return out, s.peer.Call(ctx, "list", 0, p, &out)
}

// Read copies a file, or a part of it, to w. It never waits: what is not a
// regular file is ErrInvalid.
func (s *Sandbox) Read(ctx context.Context, p ReadParams, w io.Writer) (File, error) {
	var f File
	return f, s.receive(ctx, "read", p, w, &f)
}

// Write writes a file from r.
func (s *Sandbox) Write(ctx context.Context, p WriteParams, r io.Reader) (File, error) {
	var f File
	method := "write"
	if p.Match != "" { // a runner of an older version would not look
		method = "replace"
	}
	call, err := s.peer.Open(ctx, method, s.fence, p)
	if err != nil {
		return f, err
	}
	defer call.Close()
	data := &source{r: r}
	_, err = io.Copy(call, data)
	if data.err != nil { // nothing is written then, and nothing is left
		call.BreakOff()
		return f, data.err
	}
	if err == nil {
		err = call.CloseWrite()
	}
	// When it takes no more, it has said why; that is worth more than our own error.
	if answer := call.Answer(&f); answer != nil || err == nil {
		return f, answer
	}
	return f, err
}

// source remembers that reading failed, which is not the other side's fault.
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

// Mkdir makes a folder and those above it.
func (s *Sandbox) Mkdir(ctx context.Context, p PathParams) error {
	return s.peer.Call(ctx, "mkdir", s.fence, p, nil)
}

// Remove deletes a file, or a folder with all that is in it.
func (s *Sandbox) Remove(ctx context.Context, p PathParams) error {
	return s.peer.Call(ctx, "remove", s.fence, p, nil)
}

// Format is how an archive is packed.
type Format string

// The formats.
const (
	Zip Format = "zip"
	Tar Format = "tar"
)

// ArchiveParams names a folder to pack. Symbolic links are packed as links and
// never followed; sockets, pipes and devices are left out.
type ArchiveParams struct {
	PathParams
	Format Format `json:"format"`
}

// Archive packs a folder into w.
func (s *Sandbox) Archive(ctx context.Context, p ArchiveParams, w io.Writer) error {
	return s.receive(ctx, "archive", p, w, nil)
}

// Change of a file that was watched.
type Change struct {
	Path []byte `json:"path"`
	// Op is created, written, removed, or "overflow" when changes were lost:
	// then look for yourself.
	Op string `json:"op"`
}

// Watch tells of changes in a folder and those below it until ctx ends.
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

// Usage is what the workspace takes up on disk, in bytes.
func (s *Sandbox) Usage(ctx context.Context) (int64, error) {
	var n int64
	return n, s.peer.Call(ctx, "usage", 0, nil, &n)
}

// Unlinked is what files take up that were deleted and are still open.
func (s *Sandbox) Unlinked(ctx context.Context) (int64, error) {
	var n int64
	return n, s.peer.Call(ctx, "unlinked", 0, nil, &n)
}

// receive makes a call whose data goes to w.
func (s *Sandbox) receive(ctx context.Context, method string, in any, w io.Writer, out any) error {
	call, err := s.peer.Open(ctx, method, 0, in)
	if err != nil {
		return err
	}
	defer call.Close()
	if _, err := io.Copy(w, call); err != nil {
		return err
	}
	return call.Answer(out)
}
