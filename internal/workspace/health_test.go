package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// fewProcesses is a sandbox that may have few processes.
func fewProcesses(t *testing.T) (r *rig, run func(text string) sandbox.Result) {
	t.Helper()
	r = newRig(t)
	r.spec.Limits.Processes = 200
	r.claim()
	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	n := 0
	return r, func(text string) sandbox.Result {
		t.Helper()
		n++
		res, err := box.Exec(t.Context(), sandbox.Command{ID: fmt.Sprint("bomb", n), Text: text}, nil)
		if err != nil || res.Refused != "" {
			t.Fatalf("%s: %s %v", text, res.Refused, err)
		}
		return res
	}
}

// A command that keeps a sandbox at its limit of processes is ended, and its result says why.
// The shell stays as it was.
func TestForkBombIsEndedAndSaid(t *testing.T) {
	r, run := fewProcesses(t)
	run("cd /tmp; kept=7")
	for _, bomb := range []string{
		"while :; do sleep 1000 & done; echo after",
		`perl -e '$SIG{$_} = "IGNORE" for qw(TERM INT HUP); fork while 1'; echo after`,
		`python3 -c 'import subprocess
while True:
  try: subprocess.Popen(["sleep", "1000"], start_new_session=True)
  except OSError: pass'; echo after`,
	} {
		res := run(bomb)
		if !strings.Contains(res.Output, "Process limit reached: the processes of this command used all 200") || strings.Contains(res.Output, "\nafter") || res.Exit < 128 || res.NewShell {
			t.Errorf("%s: exit code %d, new shell %t: %s", bomb, res.Exit, res.NewShell, res.Output)
		}
		// Bash may still report jobs that were killed.
		if got := run("echo fine $kept | cat; pwd").Output; !strings.HasPrefix(got, "fine 7\n") || !strings.Contains(got, "\n/tmp\n") {
			t.Errorf("after %s: %q", bomb, got)
		}
	}
	r.until("it is said", func() bool {
		n := events[session.Noted](r)
		return len(n) > 0 && strings.Contains(n[0].Message, "Process limit reached")
	})
}

// Fork bombs in the background are ended, and the commands after them are not.
func TestForkBombInTheBackground(t *testing.T) {
	for _, bomb := range []string{":(){ :|:& };:", "perl -e 'fork while 1' &", "(setsid perl -e 'use POSIX; while (1) { setsid() if !fork }' &)"} {
		t.Run(bomb[:4], func(t *testing.T) {
			_, run := fewProcesses(t)
			run("cd /tmp; kept=7")
			run(bomb)
			seen := ""
			for range 300 {
				res := run("sleep 0.1; echo fine $kept | cat; pwd")
				seen += res.Output
				// The one that is told of the limit may have failed at it.
				told := strings.Contains(res.Output, "Process limit reached")
				if res.Exit != 0 && !told || res.NewShell || !told && (!strings.Contains(res.Output, "fine 7\n") || !strings.HasSuffix(res.Output, "/tmp\n")) {
					t.Fatalf("exit code %d, new shell %t: %s", res.Exit, res.NewShell, res.Output)
				}
				if strings.Contains(seen, "Process limit reached: background processes of an earlier command used all 200") {
					break
				}
			}
			if strings.Count(seen, "Process limit reached") != 1 {
				t.Errorf("it is not said once: %s", seen)
			}
			if got := run("sleep 0.1; echo fine | cat"); got.Exit != 0 || !strings.HasSuffix(got.Output, "fine\n") {
				t.Errorf("after that: %d %s", got.Exit, got.Output)
			}
		})
	}
}
