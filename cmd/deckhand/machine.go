package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"deckhand/internal/httpapi"
	"deckhand/internal/sandbox"
)

// shareFlags keep one user from taking the whole machine, and all sandboxes together from taking it from the server.
// What is not given depends on the machine.
type shareFlags struct {
	UserRateLimit      float64  `name:"user-rate-limit" env:"DECKHAND_USER_RATE_LIMIT" placeholder:"N" help:"Requests per second and user, across all keys. Default: 4 times --rate-limit."`
	UserKeys           int      `name:"user-keys" env:"DECKHAND_USER_KEYS" default:"100" placeholder:"N" help:"Maximum number of active keys per user (default: ${default})."`
	UserSandboxes      int      `name:"user-sandboxes" env:"DECKHAND_USER_SANDBOXES" placeholder:"N" help:"Maximum number of running sandboxes per user. Default: one per 128 MiB of this machine's memory, but at least 16."`
	UserDisk           byteSize `name:"user-disk" env:"DECKHAND_USER_DISK" placeholder:"SIZE" help:"Disk limit for all workspaces of a user; above it, no more sandboxes are started. Not for docker. Default: half of the disk."`
	SandboxesMemory    byteSize `name:"sandboxes-memory" env:"DECKHAND_SANDBOXES_MEMORY" placeholder:"SIZE" help:"Memory limit for all local sandboxes together. Default: 80% of this machine's memory."`
	SandboxesProcesses int      `name:"sandboxes-processes" env:"DECKHAND_SANDBOXES_PROCESSES" placeholder:"N" help:"Limit of processes and threads for all local sandboxes together. Default: 75% of this machine's limit."`
	BodyMemory         byteSize `name:"body-memory" env:"DECKHAND_BODY_MEMORY" placeholder:"SIZE" help:"Memory limit for request bodies in progress; each user may use an eighth, but at least 64M. Default: 1/16 of this machine's memory, between 128M and 1G."`
}

// perUser is how many sandboxes of one user may run.
func (f shareFlags) perUser() int {
	if f.UserSandboxes > 0 {
		return f.UserSandboxes
	}
	return max(16, int(machineMemory()/(128<<20)))
}

// diskPerUser is what the workspaces of one user may take up on disk, 0 if the driver does not know its disk.
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

// together bounds all local sandboxes at once.
func (f shareFlags) together() sandbox.Limits {
	l := sandbox.Limits{Memory: int64(f.SandboxesMemory), Processes: f.SandboxesProcesses}
	if l.Memory <= 0 {
		l.Memory = machineMemory() / 10 * 8
	}
	if l.Processes <= 0 {
		l.Processes = machineTasks() / 4 * 3
	}
	return l
}

// bodies bounds the memory of request bodies.
func (f shareFlags) bodies() httpapi.Bodies {
	total := int64(f.BodyMemory)
	if total <= 0 {
		total = min(max(machineMemory()/16, 128<<20), 1<<30)
	}
	return httpapi.Bodies{Total: total, PerUser: max(total/8, 64<<20)}
}

// machineMemory is how much memory there is for this process and its sandboxes, in bytes: the machine's, or that of the
// container it runs in.
func machineMemory() int64 {
	most := int64(4 << 30) // if nobody says
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil && info.Totalram > 0 {
		most = int64(info.Totalram) * int64(max(info.Unit, 1))
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if n := readNumber(file); n > 0 {
			most = min(most, n)
		}
	}
	return most
}

// machineTasks is how many processes and threads there can be.
func machineTasks() int {
	most := int64(32 << 10)
	for i, file := range []string{"/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"} {
		if n := readNumber(file); n > 0 && (i == 0 || n < most) {
			most = n
		}
	}
	return int(most)
}

// readNumber reads a file with one number, 0 if it has none.
func readNumber(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
