package gitview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/spawn"
)

// flags switch off what makes git run other programs, wait or write. Only the
// repository's own configuration is read, so Git LFS has to be named.
var flags = []string{
	"git", "--no-pager", "--no-optional-locks", "--literal-pathspecs",
	"-c", "safe.directory=*", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false",
	"-c", "filter.lfs.clean=git-lfs clean -- %f", "-c", "filter.lfs.smudge=git-lfs smudge -- %f", "-c", "filter.lfs.process=git-lfs filter-process", "-c", "filter.lfs.required=false",
}

// env is the environment of git in a repository. Naming the repository keeps
// git from looking for another one above it, and from caring whose it is.
func (v *View) env(r repo) []string {
	env := slices.DeleteFunc(slices.Clone(v.config.Env()), func(e string) bool {
		return strings.HasPrefix(e, "GIT_") || strings.HasPrefix(e, "LC_ALL=") || strings.HasPrefix(e, "LANGUAGE=")
	})
	env = append(env, "LC_ALL=C", "GIT_DIR="+r.dir+"/.git", "GIT_WORK_TREE="+r.dir, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	return append(env, r.env...)
}

// exitError is a git that was not content.
type exitError struct {
	status spawn.Status
	stderr string
}

func (e *exitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %v", e.status)
	}
	return "git: " + e.stderr
}

// Is tells a folder that is no repository, and one that another git works in, from other failures.
func (e *exitError) Is(target error) bool {
	switch target {
	case rpc.ErrNoRepo:
		return strings.Contains(e.stderr, "not a git repository")
	case rpc.ErrBusy:
		return strings.Contains(e.stderr, ".lock': File exists")
	}
	return false
}

// grace is how long output is waited for when git has ended but something it
// started still holds the other end.
const grace = 2 * time.Second

// errTimeout is the cause when a git command is stopped after the timeout.
var errTimeout = fmt.Errorf("%w: a git command took too long. Check the repository for slow filters or very large files", rpc.ErrInvalid)

// run runs git in a repository and passes its output to read. If read fails or takes longer than
// the timeout, git is stopped.
func (v *View) run(ctx context.Context, r repo, stdin string, read func(io.Reader) error, args ...string) error {
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, v.config.Timeout, errTimeout)
	defer cancel()
	c, err := v.start(r, stdin, args)
	if err != nil {
		return err
	}
	defer c.close()
	kill := func() { _ = c.process.Signal(syscall.SIGKILL) }
	defer context.AfterFunc(ctx, kill)()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-c.process.Done()
		_ = c.out.SetReadDeadline(time.Now().Add(grace))
		_ = c.err.SetReadDeadline(time.Now().Add(grace))
	}()
	said := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(c.err, 4<<10))
		_, _ = io.Copy(io.Discard, c.err)
		said <- strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
	}()
	err = read(c.out)
	if err != nil {
		kill()
	}
	status := c.process.Wait()
	<-ended
	stderr := <-said
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case status.Code != 0:
		return &exitError{status, strings.TrimPrefix(stderr, "fatal: ")}
	}
	return nil
}

// child is a git that runs.
type child struct {
	process      *spawn.Process
	in, out, err *os.File
	fed          chan struct{}
}

func (c *child) close() {
	c.out.Close()
	c.err.Close()
	_ = c.in.SetWriteDeadline(time.Now()) // a program that git started may hold the other end
	<-c.fed
}

func (v *View) start(r repo, stdin string, args []string) (*child, error) {
	var pipes [6]*os.File
	for i := 0; i < len(pipes); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(pipes[:])
			return nil, err
		}
		pipes[i], pipes[i+1] = r, w
	}
	p, err := v.config.Spawner.Start(spawn.Attr{
		Args: append(slices.Clone(flags), args...), Dir: r.dir, Env: v.env(r), Files: []*os.File{pipes[0], pipes[3], pipes[5]},
		Together: true, Offline: true, // filters of the repository run with it
	})
	if err != nil {
		closeAll(pipes[:])
		return nil, fmt.Errorf("git cannot be started in this sandbox (%w): install it, or use an image that has it", err)
	}
	pipes[0].Close()
	pipes[3].Close()
	pipes[5].Close()
	fed := make(chan struct{})
	go func() { // a pipe takes 64 kB at once, and a list of paths may be longer
		defer close(fed)
		_, _ = pipes[1].WriteString(stdin) // git that ends early says why itself
		pipes[1].Close()
	}()
	return &child{p, pipes[1], pipes[2], pipes[4], fed}, nil
}

func closeAll(fs []*os.File) {
	for _, f := range fs {
		if f != nil {
			f.Close()
		}
	}
}

// text runs git and returns its output. More than limit bytes are ErrTooBig.
func (v *View) text(ctx context.Context, r repo, stdin string, limit int64, args ...string) ([]byte, error) {
	var out []byte
	err := v.run(ctx, r, stdin, func(from io.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(from, limit+1))
		if err == nil && int64(len(out)) > limit {
			err = rpc.ErrTooBig
		}
		return err
	}, args...)
	return out, err
}

// code is the exit code of a git that was not content, 0 for all other errors.
func code(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.status.Code
	}
	return 0
}
