package shell

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/runner/shell/ring"
	"deckhand/internal/sandbox/runner/shell/whole"
)

const (
	// half is how many characters of each end a cut result shows.
	half = sandbox.MaxOutput / 2
	// part is how many bytes of each end are held: enough for half, even if the
	// first character is torn.
	part = (half + 1) * utf8.UTFMax
	cut  = "[... Observation truncated due to length ...]"
	// gap is what a caller sees who did not take the output as fast as it came.
	gap = "\n[... more output than could be shown here ...]\n"
)

// window is the output that one result tells of. It holds both ends in memory,
// and grows only as far as there is output; the whole goes to a file once it
// cannot be held.
type window struct {
	mu    sync.Mutex
	keep  *whole.Folder
	total int64
	head  []byte
	tail  ring.Ring // what follows the head
	file  *whole.File
	grew  chan struct{} // closed when more comes, if there is a waiter
	ended bool
}

func newWindow(k *whole.Folder) *window { return &window{keep: k, tail: ring.Ring{Limit: part}} }

// add takes more output. It never waits for a reader.
func (w *window) add(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil && w.total+int64(len(b)) > 2*part {
		w.file = w.keep.Create()
		w.file.Add(w.head)
		w.file.Add(w.tail.Bytes())
	}
	if w.file != nil {
		w.file.Add(b)
	}
	w.total += int64(len(b))
	n := min(part-len(w.head), len(b))
	w.head = append(w.head, b[:n]...)
	w.tail.Add(b[n:])
	w.tell()
}

func (w *window) tell() {
	if w.grew != nil {
		close(w.grew)
		w.grew = nil
	}
}

// end says that no more will come.
func (w *window) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.tell()
}

// read copies output from a position on. When there is none yet, grew is closed
// once there is; it is nil at the end. A reader that fell behind is moved on,
// past the middle that is not held.
func (w *window) read(from int64, buf []byte) (n int, next int64, skipped bool, grew <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	front := int64(len(w.head))
	if start := front + w.tail.Start(); from >= front && from < start {
		from, skipped = start, true
	}
	switch {
	case from < front:
		n = copy(buf, w.head[from:])
	case from < w.total:
		n = w.tail.Read(from-front, buf)
	case !w.ended:
		if w.grew == nil {
			w.grew = make(chan struct{})
		}
		grew = w.grew
	}
	return n, from + int64(n), skipped, grew
}

// torn takes an unfinished character off the end, for the next result to begin
// with.
func (w *window) torn() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil || w.total == 0 {
		return nil // it is in the file already
	}
	end := &w.head
	if len(w.tail.Buf) > 0 {
		end = &w.tail.Buf
	}
	b := *end
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; !utf8.RuneStart(c) {
			continue
		}
		if rest := b[len(b)-i:]; rest[0] >= utf8.RuneSelf && !utf8.FullRune(rest) {
			*end = b[:len(b)-i]
			w.total -= int64(i)
			w.tail.Total = w.total - int64(len(w.head))
			return bytes.Clone(rest)
		}
		break
	}
	return nil
}

// text is the output as a result shows it, with the name of the file that has
// all of it if it was cut.
func (w *window) text() (text, file string, total int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tail := w.tail.Bytes()
	if w.file == nil && utf8.RuneCount(w.head)+utf8.RuneCount(tail) <= sandbox.MaxOutput+1 {
		// Exact only on the joined text: a character may lie across both parts.
		all := append(bytes.Clone(w.head), tail...)
		if utf8.RuneCount(all) <= sandbox.MaxOutput {
			return valid(all), "", w.total
		}
	}
	if w.file == nil {
		w.file = w.keep.Create()
		w.file.Add(w.head)
		w.file.Add(tail)
	}
	note := w.file.Close()
	var b strings.Builder
	all := w.head
	if w.total <= 2*part {
		all = append(bytes.Clone(w.head), tail...)
		tail = all
	}
	b.WriteString(valid(first(all)))
	fmt.Fprintf(&b, "\n%s\n", cut)
	if note != "" {
		fmt.Fprintf(&b, "[... %s ...]\n", note)
	}
	b.WriteString(valid(last(tail)))
	return b.String(), w.file.Name, w.total
}

// first and last are the half at either end, without a torn character at the cut.
func first(b []byte) []byte {
	at := 0
	for range half {
		_, n := utf8.DecodeRune(b[at:])
		at += n
	}
	return b[:at]
}

func last(b []byte) []byte {
	at := len(b)
	for range half {
		_, n := utf8.DecodeLastRune(b[:at])
		at -= n
	}
	return b[at:]
}

func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

func (w *window) size() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// take moves everything out of another window into this one, which is empty.
func (w *window) take(from *window) {
	from.mu.Lock()
	defer from.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total, w.head, w.tail, w.file = from.total, from.head, from.tail, from.file
	from.total, from.head, from.tail, from.file = 0, nil, ring.Ring{Limit: part}, nil
	w.tell()
}

// discard closes the file of an output that is not reported.
func (w *window) discard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		w.file.Close()
	}
}
