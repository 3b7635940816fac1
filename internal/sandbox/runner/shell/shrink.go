package shell

import (
	"context"
	"strings"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
)

// shrinkTime bounds a command without a time limit of its own.
const shrinkTime = 2 * time.Minute

// shrink runs a command in a process of its own that can read and delete files, but not make
// or write any. Where the kernel cannot do that, the shell runs it.
func (s *Shells) shrink(c *call) {
	cmd := c.command
	limit := cmd.Hard
	if limit <= 0 {
		limit = shrinkTime
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	dir := s.home()
	if sh, err := s.shell(cmd.Shell, false); err == nil && sh != nil {
		sh.mu.Lock()
		dir = sh.dir
		sh.mu.Unlock()
	}
	got, err := s.runProcess(ctx, sandbox.Process{Args: []string{s.Program(), "-c", "exec 2>&1\n" + cmd.Text}, Dir: dir, Shrink: true}, nil, defaultLimit)
	done, ran := got.(sandbox.ProcessResult)
	if !ran {
		c.command.Shrink = false
		s.begin(c)
		return
	}
	r := sandbox.Result{ID: cmd.ID, Exit: done.Exit, Dir: dir, Shrink: true, Started: c.began, Ended: time.Now()}
	text := strings.ToValidUTF8(string(done.Stdout)+string(done.Stderr), "\uFFFD")
	if err != nil {
		text += "\n[The command was ended after " + limit.String() + ".]"
	}
	r.Bytes, r.Output = int64(len(text)), clip.Middle(text, sandbox.MaxOutput)
	c.window.add([]byte(r.Output))
	s.record(c, r)
}
