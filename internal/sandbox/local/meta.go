package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/cgroup"
	"deckhand/internal/sandbox/local/memo"
)

// Files in a sandbox's directory beside its folders.
const (
	metaName   = "meta.json"
	socketName = "sock"
	logName    = "log"
	// scrapPrefix starts the names of folders that are being made or removed.
	scrapPrefix = ".scrap-"
)

// meta is what is remembered of a sandbox.
type meta struct {
	// User is the first of its users on this machine, 0 if it has none of its own.
	User uint32 `json:"user,omitempty"`
	// PID, Started and Boot are the runner's process, when it was started and in
	// which run of the machine: numbers of processes are used again.
	PID     int    `json:"pid,omitempty"`
	Started string `json:"started,omitempty"`
	Boot    string `json:"boot,omitempty"`
	// Generation counts the starts.
	Generation int      `json:"generation"`
	Groups     []string `json:"groups,omitempty"`
	// Root is the folder of the base that it was last started on.
	Root string `json:"root,omitempty"`
	// Folder is the workspace if it is a folder of the machine's, "" for the sandbox's own.
	Folder string            `json:"folder,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

var metas = memo.Files[meta]{Decode: func(b []byte) (m meta, err error) { return m, json.Unmarshal(b, &m) }}

// readMeta reads what is remembered. If the machine went down before that was
// safe on disk, the owner of the workspace still says which users are taken.
func readMeta(dir string) (meta, error) {
	m, err := metas.Read(filepath.Join(dir, metaName))
	if err == nil {
		return m, nil
	}
	var st unix.Stat_t
	if e := unix.Lstat(filepath.Join(dir, box.WorkDir), &st); e != nil {
		return meta{}, err
	}
	m = meta{}
	if st.Uid >= firstUser { // the workspace may belong to any user of the range
		m.User = rangeOf(st.Uid)
	}
	return m, nil
}

// workspace is where the workspace of the sandbox in dir lies.
func (m meta) workspace(dir string) string {
	if m.Folder != "" {
		return m.Folder
	}
	return filepath.Join(dir, box.WorkDir)
}

func (m meta) write(dir string) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, metaName)
	if err := os.WriteFile(file+".new", body, 0o600); err != nil {
		return fmt.Errorf("remembering the sandbox: %w", err)
	}
	return os.Rename(file+".new", file)
}

// bootID names this run of the machine.
var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// startedAt is when a process was started, in the kernel's words; "" if it does
// not run.
func startedAt(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name, in brackets, may hold anything.
	i := strings.LastIndexByte(string(b), ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return ""
	}
	return f[19]
}

// alive says whether the runner runs.
func (m meta) alive() bool {
	return m.PID > 0 && m.Boot == bootID() && m.Started != "" && startedAt(m.PID) == m.Started
}

// end kills the runner, and with it everything in its process namespace, and
// waits for the end.
func (m meta) end(ctx context.Context) error {
	return m.ended(ctx, func(fd int) error {
		_ = cgroup.Thaw(m.Groups) // what is frozen does not end
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("ending the sandbox: %w", err)
		}
		return nil
	})
}

// ended waits until the runner has ended, after something was done to that effect.
func (m meta) ended(ctx context.Context, end func(fd int) error) error {
	if !m.alive() {
		return nil
	}
	fd, err := unix.PidfdOpen(m.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the process of the sandbox: %w", err)
	}
	defer unix.Close(fd)
	if !m.alive() { // the descriptor could be of a later process with the number
		return nil
	}
	if err := end(fd); err != nil {
		return err
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for the sandbox to end: %w", err)
		}
		if n > 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
