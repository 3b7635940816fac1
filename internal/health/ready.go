package health

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"syscall"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/meter"
)

// Store is a database that can report problems.
type Store interface {
	Ping(ctx context.Context) error
	Healthy() error
}

// Errors of Ready.
var (
	errDatabase = errors.New("the database does not respond; the server log has the reason")
	errDisk     = errors.New("the disk is nearly full: agents cannot write until space is freed")
)

// Ready returns the readiness check of a server. Everyone may see its errors, so they do not contain the address of the database: the log has
// the details, once each time that the database stops responding.
func Ready(db Store, dataDir string, log *slog.Logger) func(context.Context) error {
	var down atomic.Bool
	return func(ctx context.Context) error {
		if err := db.Ping(ctx); err != nil {
			if ctx.Err() == nil && !down.Swap(true) {
				log.Error("the database does not respond", "error", err)
			}
			return errDatabase
		}
		if down.Swap(false) {
			log.Warn("the database responds again")
		}
		if err := db.Healthy(); err != nil {
			return err
		}
		return DiskFull(dataDir)
	}
}

// DiskFull returns an error if the disk with the data directory is so full that sandboxes cannot write.
func DiskFull(dataDir string) error {
	var fs syscall.Statfs_t
	if syscall.Statfs(dataDir, &fs) != nil {
		return nil
	}
	block := int64(fs.Bsize)
	if meter.Tight(sandbox.Space{Bytes: int64(fs.Blocks) * block, FreeBytes: int64(fs.Bavail) * block, Inodes: int64(fs.Files), FreeInodes: int64(fs.Ffree)}) {
		return errDisk
	}
	return nil
}
