package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds one message of a server.
const maxLine = 32 << 20

// errLong says that a line was longer than maxLine. It was passed over.
var errLong = errors.New("a line is too long")

// readLine reads a line without its end. What is too long is read to its end
// and not kept. The last line need not have an end.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long && len(line)+len(part) > limit+1 {
			long, line = true, nil
		}
		if !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil && !long:
			return bytes.TrimRight(line, "\r\n"), nil
		case err == nil:
			return nil, errLong
		}
		return nil, err
	}
}
