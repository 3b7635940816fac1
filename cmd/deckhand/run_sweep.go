package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"deckhand/internal/datadir"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/sandbox/tree"
)

// passingName is the file that marks the data of a run as temporary. It contains the
// driver and the name of its sandbox.
const passingName = "passing"

// mark writes the file. The data directory is locked by now.
func (a *runServer) mark(ctx context.Context) error {
	instance, err := datadir.Instance(ctx, a.data.db)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, passingName), []byte(a.driver.Name+" "+instance), 0o600)
}

// sweep removes the sandboxes and data of runs that were killed.
func (f *localFlags) sweep(ctx context.Context, logger *slog.Logger) {
	marks, _ := filepath.Glob(filepath.Join(f.DataDir, "run", "*", passingName))
	for _, mark := range marks {
		if err := f.sweepOne(ctx, filepath.Dir(mark), logger); err != nil {
			logger.Warn("cannot clean up after a killed run", "folder", filepath.Dir(mark), "error", err)
		}
	}
}

func (f *localFlags) sweepOne(ctx context.Context, dir string, logger *slog.Logger) error {
	unlock, err := datadir.Lock(dir)
	if err != nil {
		return nil // still running
	}
	defer unlock()
	mark, err := os.ReadFile(filepath.Join(dir, passingName))
	if err != nil {
		return err
	}
	name, instance, _ := strings.Cut(string(mark), " ")
	flags := f.sandboxFlags
	flags.Sandbox = name
	if err := drivers.DestroyAll(ctx, flags.Driver(dir, instance, nil, logger)); err != nil {
		return err
	}
	return tree.Remove(dir)
}
