package chat

import (
	"bytes"
	"os"
	"sync/atomic"
)

// screenFile is the terminal that the renderer writes to. It knows whether the renderer has drawn: lines that are
// printed before that are lost. On a busy machine the first drawing can take longer than any fixed time.
type screenFile struct {
	*os.File
	drawn atomic.Bool
}

// Write implements io.Writer. Only a drawing has line ends: what the renderer sends before it are modes of the terminal.
func (f *screenFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if bytes.IndexByte(p, '\n') >= 0 {
		f.drawn.Store(true)
	}
	return n, err
}
