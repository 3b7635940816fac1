package workspace_test

import (
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
