package ports

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"deckhand/internal/sandbox"
)

// served lists the ports that users may want to visit: those with a listener, except the control
// ports of the agents' browsers, because access to one controls the browser.
func served(dir, browsers string) ([]int, error) {
	found, err := listening(dir)
	if err != nil {
		return nil, err
	}
	places, err := filepath.Glob(browsers + "*/" + sandbox.BrowserPort)
	if err != nil {
		return nil, err
	}
	for _, place := range places {
		if port, ok := drivenBy(place); ok {
			found = slices.DeleteFunc(found, func(p int) bool { return p == port })
		}
	}
	return found, nil
}

// drivenBy reads a browser's port. Programs may have put anything there: it waits for none of it, and reads little.
func drivenBy(place string) (port int, ok bool) {
	f, err := os.OpenFile(place, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, false // it ended just now, or belongs to another user
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	var head [16]byte
	n, _ := f.Read(head[:])
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	port, err = strconv.Atoi(line)
	return port, err == nil
}

// listening lists the ports that something listens on, from the kernel's tables
// in dir. A table that is missing is empty: IPv6 may be switched off.
func listening(dir string) ([]int, error) {
	found := []int{}
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(dir, table))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := parse(f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// listen is the kernel's number for the state of a socket that listens.
const listen = "0A"

// parse reads one table: a line of names, then a socket in each line, with its
// local address in the second column and its state in the fourth.
func parse(r io.Reader) ([]int, error) {
	var found []int
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		columns := strings.Fields(lines.Text())
		if len(columns) < 4 || columns[3] != listen {
			continue
		}
		_, hex, _ := strings.Cut(columns[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil || port == 0 || port == sandbox.ProxyPort {
			continue
		}
		found = append(found, int(port))
	}
	return found, lines.Err()
}
