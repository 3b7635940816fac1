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

	"deckhand/internal/sandbox"
)

// served lists what people may want to visit: the ports that something listens on, but for
// those by which the agents' browsers are driven. Whoever reaches one commands a browser.
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
		said, err := os.ReadFile(place)
		if err != nil {
			continue // it ended just now, or is somebody else's
		}
		line, _, _ := strings.Cut(string(said), "\n")
		if port, err := strconv.Atoi(line); err == nil {
			found = slices.DeleteFunc(found, func(p int) bool { return p == port })
		}
	}
	return found, nil
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
