package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// fsyncs counts what the server flushes to the disk per acknowledged request.
// The time it takes says nothing on a machine whose host caches; the number does.
func fsyncs(b *bench) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		say("there is no strace, so nothing is counted")
		return nil
	}
	dir, err := b.folder()
	if err != nil {
		return err
	}
	trace := filepath.Join(b.dir, "fsync.trace")
	us, err := b.deckhandUnder([]string{strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", trace}, dir)
	if err != nil {
		say("strace cannot trace here, so nothing is counted")
		return nil
	}
	defer us.stop()
	if err := us.useDemo(us.key); err != nil {
		return err
	}
	// Settings first: an agent takes up what is created, and its own commits count too.
	for _, r := range []struct{ name, path, body string }{
		{"fsyncs per stored settings, one at a time", settingsPath, someSettings},
		{"fsyncs per create, one at a time", creationPath, withNothing},
	} {
		const n = 100
		total, without, err := us.flushed(trace, n, message("POST", r.path, us.addr, us.key, r.body))
		if err != nil {
			return err
		}
		b.report.add("fsync", r.name, count, float64(total)/n, 0).
			require(total >= n && without == 0, "at least one before each answer").note("%d of %d answers without", without, n)
	}
	return nil
}

// flushed makes n requests one after the other. It returns how many flushes
// there were, and how many answers came without any since the question.
func (c *child) flushed(trace string, n int, request []byte) (total, without int, err error) {
	l, err := dial(c.addr)
	if err != nil {
		return 0, 0, err
	}
	defer l.close()
	first, err := flushes(trace)
	before := first
	for range n {
		if err == nil {
			_, err = l.ask(request)
		}
		if err != nil {
			return 0, 0, err
		}
		var now int
		if now, err = flushes(trace); now == before {
			without++
		}
		before = now
	}
	return before - first, without, err
}

// flushes counts the calls in a trace. A call that others interrupt has two
// lines; only the first has the parenthesis.
func flushes(trace string) (int, error) {
	text, err := os.ReadFile(trace)
	if err != nil {
		return 0, fmt.Errorf("the trace: %w", err)
	}
	return bytes.Count(text, []byte("fsync(")) + bytes.Count(text, []byte("fdatasync(")), nil
}
