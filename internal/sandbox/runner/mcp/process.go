package mcp

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"deckhand/internal/sandbox/runner/spawn"
)

const (
	stderrSize = 64 << 10
	// drain is how long the pipes of a process that has ended are read for:
	// something that left its group may hold them open.
	drain = time.Second
)

// process is a running program with its pipes.
type process struct {
	proc   *spawn.Process
	stdin  *os.File
	stdout *os.File
	stderr tail
	// ended is closed once it has ended and all its words on stderr are read.
	ended chan struct{}
}

// launch starts a program.
func launch(s *spawn.Spawner, a spawn.Attr) (*process, error) {
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, err
		}
		files = append(files, r, w)
	}
	a.Files = []*os.File{files[0], files[3], files[5]}
	proc, err := s.Start(a)
	if err != nil {
		closeAll()
		return nil, err
	}
	for _, f := range a.Files {
		_ = f.Close()
	}
	p := &process{proc: proc, stdin: files[1], stdout: files[2], stderr: tail{size: stderrSize}, ended: make(chan struct{})}
	go p.watch(files[4])
	return p, nil
}

// watch reads stderr and waits for the end.
func (p *process) watch(stderr *os.File) {
	defer close(p.ended)
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(&p.stderr, stderr)
		_ = stderr.Close()
	})
	p.proc.Wait()
	// Processes that it left behind in its group are useless. The number cannot be reused
	// already: numbers are given out in turn.
	_ = syscall.Kill(-p.proc.PID, syscall.SIGKILL)
	late := time.Now().Add(drain)
	_ = stderr.SetReadDeadline(late)
	_ = p.stdout.SetReadDeadline(late)
	_ = p.stdin.Close()
	reading.Wait()
}

// status is how it ended.
func (p *process) status() string { return p.proc.Wait().String() }

// stop ends it: by closing its input, which is how a tool server is told to go,
// then by force.
func (p *process) stop(grace time.Duration) {
	_ = p.stdin.Close()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		timer := time.NewTimer(grace)
		select {
		case <-p.proc.Done():
			timer.Stop()
			<-p.ended
			return
		case <-timer.C:
		}
		_ = p.proc.Signal(sig) // to its whole group; it may have ended just now
	}
	<-p.ended
}
