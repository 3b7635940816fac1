package gitprovider

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// maxRefs limits how much of a list of refs is read. A larger repository is assumed to
// have the branch: otherwise the clone fails.
const maxRefs = 32 << 20

// hasBranch reads a git server's list of refs until it finds the branch. The list is in
// pkt-lines: four hexadecimal digits with the length, including themselves, and then the
// line.
func hasBranch(r io.Reader, branch string) (bool, error) {
	limited := &io.LimitedReader{R: r, N: maxRefs}
	in := bufio.NewReader(limited)
	want := "refs/heads/" + branch
	seen := false
	for flushes := 0; flushes < 2; { // one ends the announcement of the service, one the refs
		line, err := packet(in)
		switch {
		case err != nil && limited.N <= 0:
			return true, nil
		case err != nil && (!seen || !errors.Is(err, io.EOF)):
			return false, err
		case err != nil: // the final flush is missing, but the list is complete
			return false, nil
		case line == nil:
			flushes++
			continue
		}
		seen = true
		text, _, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\x00") // capabilities follow the first ref
		if _, name, ok := strings.Cut(text, " "); ok && name == want {
			return true, nil
		}
	}
	return false, nil
}

var errPacket = errors.New("this is not a list of refs")

// packet reads one line; nil is a flush.
func packet(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(string(head[:]), 16, 16)
	switch {
	case err != nil, n != 0 && n < 4:
		return nil, errPacket
	case n == 0:
		return nil, nil
	}
	line := make([]byte, n-4)
	if _, err := io.ReadFull(r, line); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return line, nil
}
