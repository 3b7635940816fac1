package portable

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"

	"deckhand/api"
)

// A file of a few hundred kilobytes can hold as many events as fit, so only a few files are in memory at the same time.
func TestImportsInMemoryAreFew(t *testing.T) {
	t.Parallel()
	s := &Service{}
	begun := forged(t, head...)
	var readers sync.WaitGroup
	var pipes []*io.PipeWriter
	started := make(chan struct{}, maxReading)
	for range maxReading {
		out, in := io.Pipe()
		pipes = append(pipes, in)
		readers.Go(func() {
			r, err := newReader(io.MultiReader(bytes.NewReader(begun[:20]), &noted{started, out}))
			if err == nil {
				_, err = s.store(t.Context(), nil, "ada", "x", r, &api.ImportedConversation{})
			}
			if !errors.Is(err, errDamaged) {
				t.Error(err)
			}
		})
	}
	for range maxReading {
		<-started
	}
	r, err := newReader(bytes.NewReader(begun))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store(t.Context(), nil, "bob", "y", r, &api.ImportedConversation{}); !errors.Is(err, errFull) {
		t.Errorf("one more: %v", err)
	}
	for _, p := range pipes {
		p.Close()
	}
	readers.Wait()
	if s.reading != 0 {
		t.Errorf("%d are still counted", s.reading)
	}
}

// noted says when it is read first.
type noted struct {
	started chan<- struct{}
	io.Reader
}

func (n *noted) Read(b []byte) (int, error) {
	if n.started != nil {
		n.started <- struct{}{}
		n.started = nil
	}
	return n.Reader.Read(b)
}
