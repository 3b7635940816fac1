package cgroup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoFreezer says that a group cannot be frozen.
var ErrNoFreezer = errors.New("there is no freezer for the group")

// freezer is a version's way to freeze a group: what to write to which file, and the line
// of the file state that says that all its processes are frozen.
type freezer struct{ file, freeze, thaw, state, frozen string }

var freezers = []freezer{
	{file: "cgroup.freeze", freeze: "1", thaw: "0", state: "cgroup.events", frozen: "frozen 1"},
	{file: "freezer.state", freeze: "FROZEN", thaw: "THAWED", state: "freezer.state", frozen: "FROZEN"},
}

// freezeTime is how long the processes of a group may take to be frozen. One that the
// disk keeps waiting takes longer, and is not waited for.
const freezeTime = time.Second

func freezerOf(dirs []string) (string, freezer, bool) {
	for _, f := range freezers {
		for _, dir := range dirs {
			if _, err := os.Stat(filepath.Join(dir, f.file)); err == nil {
				return dir, f, true
			}
		}
	}
	return "", freezer{}, false
}

// Freeze stops all processes of a group until Thaw. They do not notice.
func Freeze(ctx context.Context, dirs []string) error {
	dir, f, ok := freezerOf(dirs)
	if !ok {
		return ErrNoFreezer
	}
	if err := write(dir, f.file, f.freeze); err != nil {
		return err
	}
	end := time.Now().Add(freezeTime)
	for wait := 100 * time.Microsecond; time.Now().Before(end); wait *= 2 {
		state, err := os.ReadFile(filepath.Join(dir, f.state))
		if err != nil {
			return errors.Join(err, Thaw(dirs))
		}
		for line := range strings.Lines(string(state)) {
			if strings.TrimSpace(line) == f.frozen {
				return nil
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), Thaw(dirs))
		}
	}
	return nil
}

// Thaw lets the processes of a group go on, if they were frozen.
func Thaw(dirs []string) error {
	dir, f, ok := freezerOf(dirs)
	if !ok {
		return nil
	}
	return write(dir, f.file, f.thaw)
}

// Guard starts a process that thaws a group when this one ends, however it ends: what is
// frozen cannot even end itself. release ends the guard, and returns when it has ended.
func Guard(dirs []string) (release func(), err error) {
	dir, f, ok := freezerOf(dirs)
	if !ok {
		return nil, ErrNoFreezer
	}
	cmd := exec.Command("/bin/sh", "-c", `read -r _; printf %s "$2" > "$1"`, "sh", filepath.Join(dir, f.file), f.thaw)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals for our group are not for it
	cmd.Env, cmd.Dir = []string{}, "/"
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { _ = in.Close(); _ = cmd.Wait() }, nil
}

// Processes lists the processes of a group.
func Processes(dirs []string) ([]int, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(dirs[0], "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var out []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 { // 0 is one that we cannot see
			out = append(out, pid)
		}
	}
	return out, nil
}
