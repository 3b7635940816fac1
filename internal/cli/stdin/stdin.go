// Package stdin reads standard input as a part of a task.
package stdin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/cli"
)

// firstByte is the time to wait for the first byte, if the task is an argument. In CI, standard input may be a pipe that
// stays open and empty.
const firstByte = 5 * time.Second

// Task is cli.ReadTask, and appends what is piped to standard input to a task that was given as an argument.
func Task(task, command string, stderr io.Writer) (string, error) {
	given := strings.TrimSpace(task) != "" && task != "-"
	task, err := cli.ReadTask(task, command)
	if err != nil || !given || !piped(os.Stdin) {
		return task, err
	}
	if ready, err := wait(os.Stdin, firstByte); err != nil || !ready {
		fmt.Fprintf(stderr, "deckhand: standard input is open but has no data after %s; continuing without it\n", firstByte)
		return task, err
	}
	input, err := cli.ReadInput()
	if err == nil && strings.TrimSpace(input) != "" {
		task += "\n\n" + input
	}
	if err == nil && len(task) > cli.MaxTask {
		err = cli.ErrTooLong
	}
	return task, err
}

// piped reports whether the input may have data for this command: it is a pipe, a socket, or a file that was not read before. A
// file that a shell loop reads is left to the loop.
func piped(in *os.File) bool {
	info, err := in.Stat()
	if err != nil {
		return false
	}
	if info.Mode().IsRegular() {
		at, err := in.Seek(0, io.SeekCurrent)
		return err == nil && at == 0
	}
	return info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// wait waits until there is data or the other end is closed. It reports false if neither happens in time.
func wait(in *os.File, limit time.Duration) (bool, error) {
	end := time.Now().Add(limit)
	for {
		left := max(time.Until(end), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0, err
		}
	}
}
