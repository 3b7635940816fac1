// Package health reports the state of the whole server to administrators: its parts, its queues, and the running
// sandboxes with what they use. It also ends sandboxes for administrators.
package health

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	api "deckhand/api/health"
	"deckhand/internal/activity"
	"deckhand/internal/admission"
	"deckhand/internal/conversation"
	"deckhand/internal/machine"
	"deckhand/internal/notify"
	"deckhand/internal/queue"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Config is what a Board looks at.
type Config struct {
	Version string
	DataDir string
	// Ready says what keeps the database from working. ReadOnly is true if nothing can be stored.
	Ready    func(ctx context.Context) error
	ReadOnly bool
	// Database returns the name and version of the database.
	Database func(ctx context.Context) (string, error)
	// NATS returns the version of the NATS server, "" without a connection; nil for a single server.
	NATS func() string
	// Keeper has the sandboxes; NoSandbox is true if there can be none.
	Keeper        *workspace.Keeper
	NoSandbox     bool
	Conversations *conversation.Service
	Activity      *activity.Activity
	Git           *activity.Hosts
	// Working and Waiting count the conversations that have an agent, and those that wait for one.
	Working, Waiting func() int
	// Admission has the queue of conversations that wait for a place.
	Admission *admission.Gate
	// Requests and Streams count HTTP requests in progress and event streams.
	Requests, Streams func() int
	Queues            []Queue
	Notified          func() notify.Stats
	// SignOn asks the identity provider; nil if there is none.
	SignOn func(ctx context.Context) error
	Level  *slog.LevelVar
	Logger *slog.Logger
}

// Queue is a durable queue by its name.
type Queue struct {
	Name  string
	Store queue.Store
}

// Board is the health of the server.
type Board struct {
	Config
	started time.Time

	// looking is held while the state is collected; other callers wait and get the same result.
	looking chan struct{}
	last    *api.ServerHealth
	lastAt  time.Time
	cpu     map[session.ID]sample
	signOn  cached
	sent    window
}

// New makes a Board.
func New(c Config) *Board {
	return &Board{Config: c, started: time.Now(), looking: make(chan struct{}, 1), cpu: map[session.ID]sample{}}
}

// fresh is how long a result is reused, so that the cost does not depend on how many pages are open.
const fresh = time.Second

// Look returns the state of the server.
func (b *Board) Look(ctx context.Context) (api.ServerHealth, error) {
	select {
	case b.looking <- struct{}{}:
		defer func() { <-b.looking }()
	case <-ctx.Done():
		return api.ServerHealth{}, ctx.Err()
	}
	now := time.Now()
	if b.last != nil && now.Sub(b.lastAt) < fresh {
		return *b.last, nil
	}
	out := api.ServerHealth{Status: OK, Version: b.Version, GoVersion: runtime.Version(), System: machine.System(), StartedAt: b.started.UTC().Truncate(time.Second), CheckedAt: now.UTC(),
		LogLevel: levelName(b.Level), LastBackupAt: b.LastBackup(), Sandboxes: b.sandboxes(ctx, now), Memory: memory(), Disks: b.disks()}
	out.Queue = api.HealthQueue{Working: b.Working(), Waiting: b.Waiting(), Requests: b.Requests(), Streams: b.Streams(), Jobs: b.jobs(ctx)}
	b.places(&out.Queue)
	out.Parts = b.parts(ctx, now, out)
	for _, p := range out.Parts {
		if rank(p.Status) > rank(out.Status) {
			out.Status = p.Status
		}
	}
	if err := ctx.Err(); err != nil { // the result is incomplete
		return out, err
	}
	b.last, b.lastAt = &out, now
	return out, nil
}

// rank orders states: a part that is off is as good as one that works.
func rank(status string) int { return slices.Index([]string{Off, OK, Warning, Failed}, status) }

// maxUsers is how many users are listed.
const maxUsers = 100

// places adds the queue of conversations that wait for a place.
func (b *Board) places(q *api.HealthQueue) {
	now := b.Admission.Status()
	q.Running, q.Queued, q.Users = now.Running, now.Waiting, []api.UserUse{}
	q.Limits = api.Limits{Running: now.Limits.Running, RunningPerUser: now.RunningPerUser, Queued: now.Queued, QueuedPerUser: now.QueuedPerUser}
	for _, u := range now.Users[:min(len(now.Users), maxUsers)] {
		q.Users = append(q.Users, api.UserUse{User: u.User, Running: u.Running, Queued: u.Waiting, Reason: u.Reason})
	}
}

// jobs counts what waits in the durable queues.
func (b *Board) jobs(ctx context.Context) []api.JobLine {
	out := []api.JobLine{}
	for _, q := range b.Queues {
		if n, err := Waiting(ctx, q.Store); err == nil { // otherwise the database is reported as failing
			out = append(out, api.JobLine{Queue: q.Name, Waiting: n})
		}
	}
	return out
}

// Waiting counts the items of a queue that are to be worked on, now or later.
func Waiting(ctx context.Context, s queue.Store) (n int, err error) {
	const most, far = 10_000, 10 * 365 * 24 * time.Hour
	err = s.View(ctx, func(tx queue.Tx) error {
		lanes, _, err := tx.Ready(time.Now().Add(far), most)
		n = 0
		for _, l := range lanes {
			n += l.Waiting
		}
		return err
	})
	return n, err
}

// backupFile is touched by deckhand backup.
const backupFile = "last-backup"

// LastBackup is when the last backup was made, nil if none is known.
func (b *Board) LastBackup() *time.Time {
	info, err := os.Stat(filepath.Join(b.DataDir, backupFile))
	if err != nil {
		return nil
	}
	at := info.ModTime().UTC().Truncate(time.Second)
	return &at
}

// disks are the file systems with the data. Temporary files count only if they are elsewhere.
func (b *Board) disks() []api.DiskSpace {
	out := []api.DiskSpace{}
	seen := map[uint64]bool{}
	for _, path := range []string{b.DataDir, os.TempDir()} {
		var where syscall.Stat_t
		if syscall.Stat(path, &where) != nil || seen[uint64(where.Dev)] {
			continue
		}
		seen[uint64(where.Dev)] = true
		if d, err := Disk(path); err == nil {
			out = append(out, d)
		}
	}
	return out
}

// Disk is the space of the file system with a path.
func Disk(path string) (api.DiskSpace, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return api.DiskSpace{}, err
	}
	block := int64(fs.Bsize)
	return api.DiskSpace{Path: path, Total: int64(fs.Blocks) * block, Free: int64(fs.Bavail) * block}, nil
}
