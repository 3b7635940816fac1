package gitgate

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// maxCommands bounds what a push says before its commits: some ten thousand
// branches at once.
const maxCommands = 2 << 20

// PushError says why a push is not passed on.
type PushError string

func (e PushError) Error() string { return string(e) }

const (
	errPush    PushError = "this is not a push as git sends it"
	errOptions PushError = "push options are not passed on: with them a host does other things than take commits, such as making a repository public; push without -o"
	errMany    PushError = "this pushes too many branches at once"
)

// ReadPush reads what a push asks for, up to where its commits begin, and
// returns what it has read. Push options are refused: hosts do with them what
// otherwise takes their API. The error is a PushError, or that of the body.
func ReadPush(body io.Reader) ([]byte, error) {
	var read bytes.Buffer
	in := io.TeeReader(body, &read)
	for read.Len() < maxCommands {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return nil, short(err)
		}
		n, err := strconv.ParseUint(string(size[:]), 16, 16)
		switch {
		case err == nil && n == 0: // the end of the list
			return read.Bytes(), nil
		case err != nil || n < 4:
			return nil, errPush
		}
		line := make([]byte, n-4)
		if _, err := io.ReadFull(in, line); err != nil {
			return nil, short(err)
		}
		// What the client can do stands behind the first command, but git would
		// believe it behind any.
		if _, can, _ := bytes.Cut(line, []byte{0}); bytes.Contains(can, []byte("push-options")) {
			return nil, errOptions
		}
	}
	return nil, errMany
}

// HideOptions takes push options out of the beginning of what a host says that
// it can do, so that git says plainly that they are not to be had. The length
// stays the same, for it stands before each line.
func HideOptions(head []byte) []byte {
	names, can, ok := bytes.Cut(head, []byte{0})
	if !ok {
		return head
	}
	can = bytes.Replace(can, []byte(" push-options"), []byte(" push-refused"), 1)
	return append(append(bytes.Clone(names), 0), can...)
}

// short tells a body that ends too early from one that cannot be read.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errPush
	}
	return err
}
