package page

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
)

// storedPacked is how the name of a file ends that the build has compressed.
const storedPacked = ".gz"

// readBuilt reads a file of the page or the manual. The build compresses most of them, so that the
// program stays small.
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

// packed is nil where it would not be smaller.
func packed(text []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // there is such a level
	_, _ = z.Write(text)                                  // memory takes everything
	_ = z.Close()
	if b.Len() >= len(text) {
		return nil
	}
	return b.Bytes()
}
