package telemetry

import (
	"io"
	"sync"
	"time"
)

const (
	// maxLines is the maximum size of the queued lines in bytes. Beyond that, Write waits.
	maxLines = 1 << 20
	// closeTime is how long Close waits for a blocked writer, such as a pipe that no program reads.
	closeTime = 2 * time.Second
)

// Lines writes log lines in the background, all queued ones with one call, so that requests do not wait for each other's
// lines. A process that is killed loses the lines of its last microseconds.
type Lines struct {
	w io.Writer

	mu      sync.Mutex
	change  sync.Cond // waiting, writing or closed has changed
	waiting []byte
	writing bool
	closed  bool
	ended   bool // all lines are written
	done    chan struct{}
}

// NewLines starts to write to w, until Close.
func NewLines(w io.Writer) *Lines {
	l := &Lines{w: w, done: make(chan struct{})}
	l.change.L = &l.mu
	go l.run()
	return l
}

// Write queues a line. After Close, it writes directly, or drops the line if the writer still blocks and the queue is full.
func (l *Lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > maxLines && !l.closed {
		l.change.Wait()
	}
	if l.ended {
		return l.w.Write(line)
	}
	if len(l.waiting) <= maxLines {
		l.waiting = append(l.waiting, line...)
	}
	if !l.writing {
		l.change.Broadcast()
	}
	return len(line), nil
}

// Close writes the queued lines, unless the writer blocks. It may be called twice.
func (l *Lines) Close() {
	l.mu.Lock()
	l.closed = true
	l.change.Broadcast()
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-time.After(closeTime):
	}
}

func (l *Lines) run() {
	defer close(l.done)
	var batch []byte
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.waiting) == 0 {
			if l.closed {
				l.ended = true
				return
			}
			l.change.Wait()
		}
		batch, l.waiting = l.waiting, batch[:0]
		l.writing = true
		l.mu.Unlock()
		_, _ = l.w.Write(batch) // there is no other place to report it
		l.mu.Lock()
		l.writing = false
		l.change.Broadcast()
	}
}
