package mcp

import (
	"strings"
	"sync"

	"deckhand/internal/clip"
)

// tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	size int
	buf  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if n > t.size {
		b = b[n-t.size:]
	}
	if over := len(t.buf) + len(b) - t.size; over > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[over:])]
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// String is what is kept, as text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.buf), "\uFFFD")
}

// lastWords are the last few lines, for an error message.
func (t *tail) lastWords() string {
	const lines, bytes = 10, 2000
	text := strings.TrimSpace(t.String())
	s := clip.End(text, bytes)
	if s != text {
		s = "…" + s // the server masks what is left of a secret at a cut
	}
	all := strings.Split(s, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
