package attempts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/queue"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// testShell is the shell for test commands. The agent's own shell is not used, so that its folder and environment do not change.
const testShell = "deckhand-test"

// grace is how long a test command has to exit after Ctrl-C.
const grace = 2 * time.Second

// test runs the test command in the sandbox of an attempt and records the result. The run is recorded before it starts,
// and its ID is the same after a restart, so the sandbox runs it only once and keeps the result.
func (s *Service) test(ctx context.Context, a Attempt, st session.State, turns int) error {
	// From before the tests are shown as running until before their result is.
	s.setTesting(a.ID, true)
	defer s.setTesting(a.ID, false)
	again := a.Running
	a, found, err := s.change(ctx, a, func(now *Attempt) {
		if !again {
			now.Runs++
		}
		now.Running, now.Again, now.Tested, now.next = true, false, turns, time.Time{}
	})
	if err != nil || !found {
		return err
	}
	id := fmt.Sprintf("%s-%d", testShell, a.Runs)
	result, ack := s.exec(ctx, a, st, id, again)
	s.setTesting(a.ID, false)
	if ctx.Err() != nil { // the next server fetches the result
		return nil
	}
	a, found, err = s.change(ctx, a, func(now *Attempt) { now.Running, now.Result = false, &result })
	if err != nil || !found {
		return err
	}
	ack()
	return s.report(ctx, a)
}

// exec runs the command. Call ack after the result is stored, to free it in the sandbox.
func (s *Service) exec(ctx context.Context, a Attempt, st session.State, id string, again bool) (r Result, ack func()) {
	r, ack = Result{Exit: -1, At: queue.Now()}, func() {}
	begin := time.Now()
	defer func() { r.Took, r.At = time.Since(begin).Round(time.Millisecond), queue.Now() }()
	if s.Workspaces == nil {
		r.Problem = "This server has no sandboxes."
		return r, ack
	}
	masker, err := s.Conversations.Settings.Masker(ctx, a.User)
	if err != nil {
		r.Problem = "The server cannot read your settings."
		return r, ack
	}
	box, leave, err := s.Workspaces.Use(ctx, a.ID)
	if err != nil {
		r.Problem = "The tests could not be run: " + reason(err)
		return r, ack
	}
	defer leave()
	done, err := box.Exec(ctx, sandbox.Command{ID: id, Shell: testShell, Text: inFolder(st, a.Test), Hard: TestTime, Again: again}, nil)
	if err != nil {
		r.Problem = "The tests could not be run: " + reason(err)
		return r, ack
	}
	if !done.Ended.IsZero() && done.Ended.After(done.Started) {
		begin = time.Now().Add(-done.Ended.Sub(done.Started))
	}
	r.Exit, r.Output = done.Exit, tail(masker.Part(done.Output, done.Previous, done.Wait != ""))
	switch {
	case done.Lost:
		r.Exit, r.Problem = -1, "The sandbox stopped while the tests were running."
	case done.Refused != "":
		r.Exit, r.Problem = -1, "The tests were not run: "+conversation.Sentence(done.Refused)
	case done.Wait == sandbox.HardWait:
		r.Exit, r.Problem = -1, fmt.Sprintf("The tests did not finish within %d minutes and were stopped.", int(TestTime.Minutes()))
		s.end(ctx, box, id)
	}
	return r, func() { _ = box.Ack(ctx, id) } // only frees disk space
}

// Testing reports whether the test command of an attempt is running.
func (s *Service) Testing(id session.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.testing[id]
}

func (s *Service) setTesting(id session.ID, running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.testing[id] = running; !running {
		delete(s.testing, id)
	}
}

// end stops a command that takes too long, and discards the rest of its output.
func (s *Service) end(ctx context.Context, box *sandbox.Sandbox, id string) {
	err := box.Interrupt(ctx, testShell, grace)
	if err == nil {
		_, err = box.Exec(ctx, sandbox.Command{ID: id + "-rest", Shell: testShell, Hard: grace}, nil)
		_ = box.Ack(ctx, id+"-rest")
	}
	s.complain(ctx, "cannot stop a test command", err)
}

// inFolder returns a command line that runs a command in the repository, or in the workspace if there is no repository,
// in a subshell.
func inFolder(st session.State, command string) string {
	dir := sandbox.Workspace
	if st.Checkout != nil {
		dir = st.Checkout.Dir
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	return "(cd " + quote(dir) + ` 2>/dev/null; exec "${BASH:-/bin/sh}" -c ` + quote(command) + " </dev/null)"
}

// reason returns the text of an error for the user.
func reason(err error) string {
	if u, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return u.Reason
	}
	if words, ok := sandbox.Refusal(err); ok {
		return conversation.Sentence(words)
	}
	return "the sandbox cannot be reached."
}

// tail returns the last part of an output.
func tail(output string) string {
	output = strings.TrimRight(output, "\n")
	if len(output) <= maxOutput {
		return output
	}
	output = output[len(output)-maxOutput:]
	if i := strings.IndexByte(output, '\n'); i >= 0 && i < len(output)-1 {
		output = output[i+1:]
	}
	return "…\n" + strings.ToValidUTF8(output, "")
}

// report adds a notice with the result to the conversation of the attempt.
func (s *Service) report(ctx context.Context, a Attempt) error {
	masker, err := s.Conversations.Settings.Masker(ctx, a.User)
	if err != nil {
		return err
	}
	note := session.Noted{ID: api.CodeTestsPassed, Message: "Tests passed: " + masker.String(a.Test)}
	switch r := a.Result; {
	case r.Problem != "":
		note = session.Noted{ID: api.CodeTestsFailed, Message: r.Problem, Error: true}
	case !r.Passed():
		note = session.Noted{ID: api.CodeTestsFailed, Message: fmt.Sprintf("Tests failed with exit code %d: %s", r.Exit, masker.String(a.Test)), Error: true}
	}
	return s.Conversations.Note(ctx, a.User, a.ID, note, "")
}
