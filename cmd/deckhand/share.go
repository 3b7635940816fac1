package main

import (
	"cmp"
	"time"

	"deckhand/internal/config"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/machine"
	"deckhand/internal/sandbox"
)

// shareFlags limit what a user, and all sandboxes together, may use. The defaults depend on the machine.
type shareFlags struct {
	UserRateLimit      float64         `name:"user-rate-limit" env:"DECKHAND_USER_RATE_LIMIT" placeholder:"N" help:"Maximum requests per second per user, across all keys. Default: 4 times --rate-limit."`
	UserKeys           int             `name:"user-keys" env:"DECKHAND_USER_KEYS" default:"100" placeholder:"N" help:"Maximum number of active keys per user (default: ${default})."`
	UserSandboxes      int             `name:"user-sandboxes" env:"DECKHAND_USER_SANDBOXES" placeholder:"N" help:"Maximum number of running sandboxes per user; idle ones are suspended to make room. Default: one per 128 MiB of this machine's memory, but at least 16."`
	SuspendAfter       time.Duration   `name:"suspend-after" env:"DECKHAND_SUSPEND_AFTER" default:"30s" placeholder:"DURATION" help:"Suspend a sandbox in which nothing runs after this time without a call; the next call continues it. 0 disables suspension (default: ${default})."`
	MaxLiveSandboxes   int             `name:"max-live-sandboxes" env:"DECKHAND_MAX_LIVE_SANDBOXES" placeholder:"N" help:"Number of running sandboxes above which the least recently used ones are suspended without waiting. Default (0): one per 64 MiB of this machine's memory, but at least 100."`
	UserDisk           config.ByteSize `name:"user-disk" env:"DECKHAND_USER_DISK" placeholder:"SIZE" help:"Disk limit for all workspaces of a user; above it, no new sandboxes start. Does not apply to docker. Default: half of the disk."`
	SandboxesMemory    config.ByteSize `name:"sandboxes-memory" env:"DECKHAND_SANDBOXES_MEMORY" placeholder:"SIZE" help:"Memory limit for all local sandboxes together. Default: 80% of this machine's memory."`
	SandboxesProcesses int             `name:"sandboxes-processes" env:"DECKHAND_SANDBOXES_PROCESSES" placeholder:"N" help:"Maximum number of processes and threads in all local sandboxes together. Default: 75% of this machine's limit."`
	BodyMemory         config.ByteSize `name:"body-memory" env:"DECKHAND_BODY_MEMORY" placeholder:"SIZE" help:"Memory limit for request bodies in progress; each user may use an eighth, but at least 64M. Default: 1/16 of this machine's memory, between 128M and 1G."`
}

// perUser is the maximum number of running sandboxes of a user.
func (f shareFlags) perUser() int {
	return cmp.Or(f.UserSandboxes, max(16, int(machine.Memory()/(128<<20))))
}

// diskPerUser is the disk limit for the workspaces of a user; 0 if the driver does not know its disk.
func (f shareFlags) diskPerUser(d sandbox.Driver) int64 {
	if f.UserDisk > 0 {
		return int64(f.UserDisk)
	}
	if s, ok := d.(sandbox.Spacer); ok {
		if now, err := s.Space(); err == nil {
			return now.Bytes / 2
		}
	}
	return 0
}

// together limits all local sandboxes together.
func (f shareFlags) together() sandbox.Limits {
	return sandbox.Limits{Memory: cmp.Or(int64(f.SandboxesMemory), machine.Memory()/10*8), Processes: cmp.Or(f.SandboxesProcesses, machine.Tasks()/4*3)}
}

// bodies limits the memory for request bodies.
func (f shareFlags) bodies() rest.Bodies {
	total := int64(f.BodyMemory)
	if total <= 0 {
		total = min(max(machine.Memory()/16, 128<<20), 1<<30)
	}
	return rest.Bodies{Total: total, PerUser: max(total/8, 64<<20)}
}
