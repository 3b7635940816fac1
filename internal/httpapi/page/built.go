package page

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
)

// storedPacked is the suffix of files that the build has compressed.
const storedPacked = ".gz"

// readBuilt reads a file of the page or the manual. The build compresses most of them, so that the
// binary stays small.
func readBuilt(built fs.FS, name string) ([]byte, error) {
	text, err := fs.ReadFile(built, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	stored, missing := fs.ReadFile(built, name+storedPacked)
	if missing != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// packed is nil if compression does not make the file smaller.
func packed(text []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(text)                                  // a buffer never fails
	_ = z.Close()
	if b.Len() >= len(text) {
		return nil
	}
	return b.Bytes()
}
