// Command helper is what the conformance suite runs inside a sandbox: a tool
// server, things that listen and dial, and attempts to get out. It is static
// and brought along by the suite, so that no test depends on what an image has.
//
// It ends with 0 when what it was asked for was done, with 1 when that was
// refused (and says how), and with 2 when it was asked for nonsense: a test that
// wants a refusal can tell it from a mistake of its own.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// errUsage is a mistake of the test, not a refusal.
var errUsage = errors.New("usage")

var commands = map[string]func(args []string) error{
	"mcp":        mcp,
	"listen":     listen,
	"dial":       dial,
	"unix":       dialUnix,
	"command":    command,
	"resolve":    resolve,
	"interfaces": interfaces,
	"flood":      flood,
	"hold":       hold,
	"locked":     locked,
	"swap":       swap,
	"forkbomb":   forkBomb,
	"pause":      pause,
	"membomb":    memoryBomb,
	"burn":       burn,
	"fds":        descriptors,
	"find":       find,
	"ps":         processes,
	"sockets":    sockets,
	"open":       open,
	"write":      write,
	"rights":     rights,
	"ptrace":     trace,
	"connectors": connectors,
	"signal":     signalProcess,
	"syscall":    try,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Println("usage: helper", names(commands))
		os.Exit(2)
	}
	err := commands[os.Args[1]](os.Args[2:])
	switch {
	case errors.Is(err, errUsage):
		fmt.Println(err)
		os.Exit(2)
	case err != nil:
		fmt.Println("refused:", word(err), err)
		os.Exit(1)
	}
}

// word is the kernel's name for an error, "" if it is not the kernel's.
func word(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return ""
}

func names[T any](m map[string]T) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// number is the argument at place i.
func number(args []string, i int) (int, error) {
	if i >= len(args) {
		return 0, fmt.Errorf("%w: argument %d is missing", errUsage, i+1)
	}
	n, err := strconv.Atoi(args[i])
	if err != nil {
		return 0, fmt.Errorf("%w: %v", errUsage, err)
	}
	return n, nil
}

// text is the argument at place i.
func text(args []string, i int) (string, error) {
	if i >= len(args) {
		return "", fmt.Errorf("%w: argument %d is missing", errUsage, i+1)
	}
	return args[i], nil
}
