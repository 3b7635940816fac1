// Package embedded contains the runner as part of deckhand. make build compiles
// cmd/runner first and puts it, compressed, into the folder bin next to this file.
package embedded

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

//go:embed all:bin
var bin embed.FS

// ErrMissing says that deckhand was compiled without its runner.
var ErrMissing = errors.New("this deckhand was built without its runner, so it cannot make sandboxes; build it with: make build")

// Install unpacks the runner for the architecture of this program into dir and returns its
// path, which is always the same: containers that are stopped will look for it there.
// Sandboxes that run keep the file they were started with.
func Install(dir string) (string, error) { return install(bin, dir, "runner") }

// InstallFor is Install for an architecture, such as arm64. The error is ErrMissing if this
// program contains no runner for it.
func InstallFor(dir, arch string) (string, error) {
	if arch == runtime.GOARCH {
		return Install(dir)
	}
	return install(bin, dir, "runner-"+arch)
}

func install(from fs.FS, dir, name string) (string, error) {
	packed, err := fs.ReadFile(from, "bin/"+name+".gz")
	if err != nil {
		return "", ErrMissing
	}
	sum := sha256.Sum256(packed)
	path, stamp, want := filepath.Join(dir, name), filepath.Join(dir, name+".sum"), []byte(hex.EncodeToString(sum[:]))
	known, err := os.ReadFile(stamp)
	if _, lost := os.Stat(path); err == nil && lost == nil && bytes.Equal(known, want) {
		return path, nil
	}
	if err = unpack(packed, dir, path); err == nil {
		err = os.WriteFile(stamp, want, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("the runner cannot be unpacked: %w", err)
	}
	return path, nil
}

// unpack writes to a temporary name first, so that an incomplete runner is never started.
func unpack(packed []byte, dir, path string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".runner-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(f.Chmod(0o755), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
