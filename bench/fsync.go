package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"deckhand/bench/report"
	"deckhand/internal/load"
)

// fsyncs counts what the server flushes to the disk per acknowledged request.
// The time it takes says nothing on a machine whose host caches; the number does.
func fsyncs(b *bench) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		say("there is no strace, so nothing is counted")
		return nil
	}
	t, err := b.town(demoSettings)
	if err != nil {
		return err
	}
	trace := filepath.Join(b.dir, "fsync.trace")
	us, err := b.settleUnder([]string{strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", trace}, t)
	if err != nil {
		say("strace cannot trace here, so nothing is counted")
		return nil
	}
	defer us.Stop()
	// Settings first: an agent takes up what is created, and its own commits count too.
	for _, r := range []struct{ name, path, body string }{
		{"fsyncs per stored settings, one at a time", settingsPath, someSettings},
		{"fsyncs per create, one at a time", creationPath, withNothing},
	} {
		const n = 100
		total, without, err := flushed(us, trace, n, func(i int) []byte { return load.Message("POST", r.path, us.Addr, t.keys[i], r.body) })
		if err != nil {
			return err
		}
		b.report.Add("fsync", r.name, report.Count, float64(total)/n, 0).
			Require(total >= n && without == 0, "at least one before each answer").Comment("%d of %d answers without", without, n)
	}
	return nil
}

// flushed makes n requests one after the other. It returns how many flushes
// there were, and how many answers came without any since the question.
func flushed(us *load.Server, trace string, n int, request func(i int) []byte) (total, without int, err error) {
	l, err := load.Dial(us.Addr)
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	first, err := flushes(trace)
	before := first
	for i := range n {
		if err == nil {
			_, err = l.Ask(request(i))
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
