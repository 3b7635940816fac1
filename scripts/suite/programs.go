package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// programs are what many packages of tests start, by the variable that tells a
// test where to find one. Each package would link its own otherwise.
var programs = map[string]string{
	"DECKHAND_SUITE_RUNNER": "./cmd/runner",
	"DECKHAND_SUITE_HELPER": "./internal/sandbox/sandboxtest/helper",
}

// buildPrograms builds them below dir and returns the variables. The path of a program
// has the hash of its content, so that go test reuses a result only if the program is the same.
func buildPrograms(ctx context.Context, dir string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // sandboxes run as other users
		return nil, err
	}
	var env, kept []string
	for name, pkg := range programs {
		built := filepath.Join(dir, "built", filepath.Base(pkg))
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", built, pkg)
		cmd.Env = plainEnv(os.Environ())
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("building %s: %w", pkg, err)
		}
		content, err := os.ReadFile(built)
		if err != nil {
			return nil, err
		}
		hash := sha256.Sum256(content)
		path := filepath.Join(dir, hex.EncodeToString(hash[:6]), filepath.Base(pkg))
		if err := place(path, content); err != nil {
			return nil, err
		}
		env, kept = append(env, name+"="+path), append(kept, filepath.Base(filepath.Dir(path)))
	}
	return env, removeOthers(dir, append(kept, "built"))
}

// place writes a program if it is not there yet, whole or not at all.
func place(path string, content []byte) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", content, 0o755); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// removeOthers removes programs that were built from older sources.
func removeOthers(dir string, kept []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(kept, e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
