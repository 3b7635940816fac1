package telemetry

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a writer that can be blocked.
type slow struct {
	hold  chan struct{}
	calls int
	text  bytes.Buffer
}

func (s *slow) Write(b []byte) (int, error) {
	<-s.hold
	s.calls++
	return s.text.Write(b)
}

// Every line is written once and in one piece, and queued lines are written together.
func TestLines(t *testing.T) {
	t.Parallel()
	w := &slow{hold: make(chan struct{})}
	l := NewLines(w)
	var want []string
	var wait sync.WaitGroup
	for i := range 100 {
		line := fmt.Sprintf("line %d", i)
		want = append(want, line)
		wait.Go(func() { _, _ = l.Write([]byte(line + "\n")) })
	}
	wait.Wait() // no Write waits for the writer
	close(w.hold)
	l.Close()
	l.Close()
	got := strings.Fields(strings.ReplaceAll(w.text.String(), "line ", ""))
	slices.Sort(got)
	slices.Sort(want)
	if len(got) != len(want) || w.calls > 3 {
		t.Errorf("%d lines in %d calls", len(got), w.calls)
	}
	for i := range want {
		if "line "+got[i] != want[i] {
			t.Fatalf("%q %q", got, want)
		}
	}
	_, _ = l.Write([]byte("after\n"))
	if !strings.HasSuffix(w.text.String(), "after\n") {
		t.Error("a line after the end is lost")
	}
}

// A blocked writer does not fill the memory.
func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	w := &slow{hold: make(chan struct{})}
	l := NewLines(w)
	line := bytes.Repeat([]byte("x"), 64<<10)
	written := make(chan int)
	go func() {
		defer close(written)
		for range 64 {
			_, _ = l.Write(line)
			written <- 1
		}
	}()
	n := 0
	for range 10 { // less than the bound
		n += <-written
	}
	go close(w.hold)
	for range written {
		n++
	}
	l.Close()
	if n != 64 || w.text.Len() != 64*len(line) || w.calls < 4 {
		t.Errorf("%d lines, %d bytes in %d calls", n, w.text.Len(), w.calls)
	}
}

// A writer that blocks does not keep the end of the process, and takes its lines when it continues.
func TestCloseWhileBlocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &slow{hold: make(chan struct{})}
		l := NewLines(w)
		_, _ = l.Write([]byte("first\n"))
		synctest.Wait() // it is being written
		begin := time.Now()
		l.Close()
		if took := time.Since(begin); took != closeTime {
			t.Errorf("it took %v", took)
		}
		line := bytes.Repeat([]byte("x"), 64<<10)
		for range 64 { // more than the bound
			_, _ = l.Write(line)
		}
		close(w.hold)
		l.Close()
		if got := w.text.Len(); !strings.HasPrefix(w.text.String(), "first\nx") || got > 2*maxLines {
			t.Errorf("%d bytes were written", got)
		}
	})
}
