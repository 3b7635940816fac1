package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/spawn"
)

// defaultLimit is how much of each output of a program is kept.
const defaultLimit = 1 << 20

// run runs a program to its end, without a shell or a terminal.
func (s *Shells) run(ctx context.Context, c *rpc.Call) (any, error) {
	var p sandbox.Process
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	if len(p.Args) == 0 {
		return nil, fmt.Errorf("%w: there is no program to run", rpc.ErrInvalid)
	}
	limit := p.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	var in io.Reader
	if p.Stdin {
		in = c
	}
	return s.runProcess(ctx, p, in, min(limit, maxLimit))
}

// maxLimit keeps an answer within what one call can carry.
const maxLimit = 8 << 20

func (s *Shells) runProcess(ctx context.Context, p sandbox.Process, in io.Reader, limit int64) (any, error) {
	var pipes pipes
	defer pipes.close()
	dir := p.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.folder(), dir)
	}
	more := make([]string, 0, len(p.Env))
	for name, value := range p.Env {
		more = append(more, name+"="+value)
	}
	slices.Sort(more)
	attr := spawn.Attr{Args: p.Args, Dir: dir, Env: s.environ(more...), Files: make([]*os.File, 3), Together: true, Offline: p.Offline, Shrink: p.Shrink}
	if p.Own {
		attr.Env = spawn.SystemFirst(attr.Env)
	}
	var stdin *os.File
	if in != nil {
		attr.Files[0], stdin = pipes.make()
	}
	stdout, outside := pipes.make()
	stderr, errside := pipes.make()
	attr.Files[1], attr.Files[2] = outside, errside
	if pipes.err != nil {
		return nil, pipes.err
	}
	proc, err := s.config.Spawner.Start(attr)
	if err != nil {
		return nil, err
	}
	for _, f := range attr.Files { // the process has its own now
		if f != nil {
			f.Close()
		}
	}
	unwatch := context.AfterFunc(ctx, func() { _ = proc.Signal(syscall.SIGKILL) })
	defer unwatch()
	if stdin != nil {
		go func() { // ends with the call
			_, _ = io.Copy(stdin, in)
			stdin.Close()
		}()
	}
	var r sandbox.ProcessResult
	var cutOut, cutErr bool
	var readers sync.WaitGroup
	readers.Go(func() { r.Stdout, cutOut = drain(stdout, limit) })
	readers.Go(func() { r.Stderr, cutErr = drain(stderr, limit) })
	r.Exit = proc.Wait().Code
	// Its group was killed with it. What left the group may still hold the pipes
	// and is not waited for.
	for _, f := range []*os.File{stdout, stderr} {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
	readers.Wait()
	r.Cut = cutOut || cutErr
	return r, ctx.Err()
}

// drain reads everything and keeps the beginning. After its deadline it still
// takes what is there.
func drain(f *os.File, limit int64) (kept []byte, cut bool) {
	buf := make([]byte, 32<<10)
	take := func(n int) {
		fits := min(limit-int64(len(kept)), int64(n))
		kept = append(kept, buf[:fits]...)
		cut = cut || fits < int64(n)
	}
	for {
		n, err := f.Read(buf)
		take(n)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return kept, cut
		}
	}
	for n, sum := rest(f, buf), 0; n > 0 && sum < maxPipe; n = rest(f, buf) {
		take(n)
		sum += n
	}
	return kept, cut
}

// maxPipe is how much a pipe can hold. A program with more output is still writing.
const maxPipe = 1 << 20

// pipes makes pipes and closes both ends of all of them in the end.
type pipes struct {
	files []*os.File
	err   error
}

func (p *pipes) make() (r, w *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		p.err = errors.Join(p.err, err)
		return nil, nil
	}
	p.files = append(p.files, r, w)
	return r, w
}

func (p *pipes) close() {
	for _, f := range p.files {
		_ = f.Close()
	}
}
