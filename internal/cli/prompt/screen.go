package prompt

import (
	"bytes"
	"os"
	"sync/atomic"
)

// Screen is the terminal that the renderer writes to. It knows whether the renderer has drawn: lines that are
// printed before that are lost. On a busy machine the first drawing can take longer than any fixed time.
type Screen struct {
	*os.File
	drawn atomic.Bool
}

// Write implements io.Writer. Only a drawing has line ends: what the renderer sends before it are modes of the terminal.
func (s *Screen) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	if bytes.IndexByte(p, '\n') >= 0 {
		s.drawn.Store(true)
	}
	return n, err
}

// Drawn reports whether the renderer has drawn.
func (s *Screen) Drawn() bool { return s.drawn.Load() }
