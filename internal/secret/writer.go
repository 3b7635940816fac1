package secret

import (
	"io"
	"sync"
)

// Writer masks what passes through it. It holds back only text that may be the
// beginning of a secret, until the next write, Flush or Close decides.
type Writer struct {
	r    *Redactor
	w    io.Writer
	mu   sync.Mutex
	held []byte
	pass pass
	err  error
}

// Writer returns a masking writer in front of w. Its output is what String would
// make of the whole text, however it is cut into writes.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{r: r, w: w} }

// Write takes all of b, or fails with the error of the writer behind.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	w.held = append(w.held, b...)
	if err := w.send(false); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush writes out what is held back. A secret that continues after it is not recognised.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	return w.send(true)
}

// Close flushes. It does not close the writer behind.
func (w *Writer) Close() error { return w.Flush() }

func (w *Writer) send(final bool) error {
	p := &w.pass
	w.r.mu.RLock()
	p.masked = true // the output always goes through out
	p.run(&w.r.forms, string(w.held), final)
	w.r.mu.RUnlock()
	if len(p.out) > 0 {
		_, w.err = w.w.Write(p.out)
	}
	// Forget what is decided; inside a secret, the bytes seen of it need not be kept.
	done := p.at
	w.held = append(w.held[:0], w.held[done:]...)
	p.out = p.out[:0]
	p.copied = max(p.copied-done, 0)
	p.maskEnd = max(p.maskEnd-done, 0)
	p.at = 0
	return w.err
}
