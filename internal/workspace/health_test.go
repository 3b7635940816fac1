package workspace_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// A runner that was stopped by a signal does not answer: that is noticed, the command's
// outcome is unknown, and the sandbox is there again.
func TestFrozenRunner(t *testing.T) {
	r := newRig(t)
	r.stop()
	r.silence = 10 * time.Second
	r.open()
	r.claim()
	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	begun := make(chan struct{}, 100)
	lost := make(chan error, 1)
	go func() {
		_, err := box.Exec(t.Context(), sandbox.Command{ID: "long", Text: "echo begun; sleep 1000"}, func([]byte) { begun <- struct{}{} })
		lost <- err
	}()
	<-begun
	if err := syscall.Kill(r.pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; err == nil {
		t.Error("a command of a frozen runner has a result")
	}
	r.until("it is said", func() bool {
		n := events[session.Noted](r)
		return len(n) > 0 && strings.Contains(n[0].Message, "did not respond")
	})
	again, release2, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release2()
	res, err := again.Exec(t.Context(), sandbox.Command{ID: "long", Again: true, Text: "exit 9"}, nil)
	if err != nil || !res.Lost || !strings.Contains(again.Ended(), "did not respond") {
		t.Errorf("%q: %+v, %v", again.Ended(), res, err)
	}
}

// frozen is a rig with a command whose runner was stopped by a signal, and whose server has ended.
func frozen(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.claim()
	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	begun := make(chan struct{}, 100)
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = box.Exec(t.Context(), sandbox.Command{ID: "long", Text: "echo begun; sleep 1000"}, func([]byte) { begun <- struct{}{} })
	}()
	<-begun
	if err := syscall.Kill(r.pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.stop()
	<-left
	return r
}

// A server that finds a runner that does not answer ends it: the command's outcome is unknown,
// and the sandbox is there again.
func TestRunnerFrozenBeforeAttach(t *testing.T) {
	r := frozen(t)
	r.silence = 2 * time.Second
	r.open()
	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	res, err := box.Exec(t.Context(), sandbox.Command{ID: "long", Again: true, Text: "exit 9"}, nil)
	if err != nil || !res.Lost || !strings.Contains(box.Ended(), "did not respond for 2s") {
		t.Errorf("%q: %+v, %v", box.Ended(), res, err)
	}
	if n := events[session.Noted](r); len(n) != 1 || !strings.Contains(n[0].Message, "did not respond for 2s") {
		t.Errorf("the notices are %+v", n)
	}
	if got := r.run("next", "echo fine"); got != "fine" {
		t.Errorf("after that: %q", got)
	}
}

// A stop does not wait for the answer of a runner, nor for the next sweep.
func TestStopWhileRunnerIsFrozen(t *testing.T) {
	r := frozen(t)
	r.silence = time.Hour
	r.open()
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error, 1)
	go func() {
		_, _, err := r.keeper.Use(ctx, id)
		opened <- err
	}()
	<-r.keeper.Opening(id)
	begin := time.Now()
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("") })
	cancel() // as the loop does
	if err := <-opened; err == nil {
		t.Error("a frozen runner was attached to")
	}
	r.until("the runner has ended", func() bool { return !r.running() })
	if took := time.Since(begin); took > 45*time.Second {
		t.Errorf("it took %s, as long as until the sweep", took)
	}
}

// pid is the process of the session's runner.
func (r *rig) pid() int {
	r.t.Helper()
	var meta struct{ PID int }
	b, err := os.ReadFile(filepath.Join(r.dir, string(id), "meta.json"))
	if err == nil {
		err = json.Unmarshal(b, &meta)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return meta.PID
}

// A command that takes all processes of a sandbox is ended, and the result says why. The next
// command runs when all processes have ended.
func TestForkBombIsEndedAndSaid(t *testing.T) {
	r := newRig(t)
	r.spec.Limits.Processes = 200
	r.claim()
	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	said := make(chan struct{})
	var seen strings.Builder
	var once sync.Once
	var res sandbox.Result
	ended := make(chan error, 1)
	go func() {
		var err error
		res, err = box.Exec(t.Context(), sandbox.Command{ID: "bomb", Text: "while :; do sleep 1000 & done"}, func(b []byte) {
			if seen.Write(b); strings.Contains(seen.String(), "Process limit reached") {
				once.Do(func() { close(said) })
			}
		})
		ended <- err
	}()
	select {
	case <-said:
	case err := <-ended:
		ended <- err
	}
	next, err := box.Exec(t.Context(), sandbox.Command{ID: "next", Text: "echo fine | cat"}, nil)
	if err != nil || next.Refused != "" || !strings.HasSuffix(next.Output, "fine\n") {
		t.Errorf("a command after the remark: %+v, %v", next, err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(res.Output, "Process limit reached") {
		t.Errorf("exit code %d: %s", res.Exit, res.Output)
	}
	if got := r.run("after", "echo fine | cat"); !strings.HasSuffix(got, "fine") {
		t.Errorf("after that: %q", got)
	}
}
