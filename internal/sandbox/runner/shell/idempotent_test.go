package shell

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/runner/results"
)

func TestSameIDRunsOnce(t *testing.T) {
	b := open(t)
	syscall.Mkfifo(b.workspace+"/gate", 0o600)
	var all sync.WaitGroup
	var got [8]sandbox.Result
	var live [8]strings.Builder
	var ready sync.WaitGroup
	ready.Add(len(got))
	for i := range got {
		all.Go(func() {
			var once sync.Once
			got[i] = b.do(sandbox.Command{ID: "same", Text: "echo x | tee -a ran; read line <gate; (exit 6)"}, func(p []byte) {
				live[i].Write(p)
				once.Do(ready.Done)
			})
		})
	}
	ready.Wait()
	if err := os.WriteFile(b.workspace+"/gate", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for i := range got {
		if got[i].Exit != 6 || got[i].Output != "x\n" || live[i].String() != "x\n" || !got[i].Ended.Equal(got[0].Ended) {
			t.Errorf("caller %d got %+v and live %q", i, got[i], live[i].String())
		}
	}
	// It is done now, and stays so until it is acknowledged.
	var again strings.Builder
	r := b.do(sandbox.Command{ID: "same", Text: "echo not this"}, func(p []byte) { again.Write(p) })
	if r.Exit != 6 || again.String() != "x\n" {
		t.Errorf("afterwards: %+v and live %q", r, again.String())
	}
	b.gives("cat ran", 0, "x\n")
	if err := b.Ack(t.Context(), "same"); err != nil {
		t.Fatal(err)
	}
	if r := b.do(sandbox.Command{ID: "same", Text: "echo new"}, nil); r.Output != "new\n" {
		t.Errorf("after it was acknowledged: %+v", r)
	}
}

// The runner dies and a new one is there. What it did is known, what it was at
// is lost, and neither is done again.
func TestAfterTheRunner(t *testing.T) {
	b := open(t)
	b.do(sandbox.Command{ID: "done", Text: "echo x; exit 2"}, nil)
	b.begin(sandbox.Command{ID: "other", Text: "echo ready; sleep 1000"}, "ready")
	b.do(sandbox.Command{ID: "at it", Shell: "2", Text: "echo ready; sleep 1000", Soft: short}, nil)
	go func() { // it is at this one
		_, _ = b.Exec(t.Context(), sandbox.Command{ID: "waiting"}, nil)
	}()
	state := func() bool {
		b.shells.mu.Lock()
		defer b.shells.mu.Unlock()
		return b.shells.calls["waiting"] != nil
	}
	for !state() {
		b.do(sandbox.Command{Shell: "3", Text: ":"}, nil) // lets the other come in
	}

	c := b.config
	var err error
	// The same folder, while the first has not finished: so it is found after a death.
	if c.Results, err = results.Open(filepath.Join(filepath.Dir(c.Output), "results")); err == nil {
		err = c.Results.SetKey(make([]byte, results.KeySize))
	}
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, b.make(c))
	ask := func(cmd sandbox.Command) sandbox.Result {
		t.Helper()
		r, err := client.Exec(t.Context(), cmd, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := ask(sandbox.Command{ID: "done", Text: "echo y"}); r.Exit != 2 || r.Lost || !r.NewShell {
		t.Errorf("what was done: %+v", r)
	}
	if r := ask(sandbox.Command{ID: "other", Text: "echo y"}); r.Wait != sandbox.SoftWait {
		t.Errorf("what had a result and ran on: %+v", r)
	}
	if r := ask(sandbox.Command{ID: "waiting", Text: "echo y"}); !r.Lost || r.Exit != -1 || r.Output != "" {
		t.Errorf("what was not done: %+v", r)
	}
	if r := ask(sandbox.Command{ID: "new", Text: "echo y"}); r.Output != "y\n" {
		t.Errorf("what is new: %+v", r)
	}
}

// Close ends what runs and says so.
func TestClose(t *testing.T) {
	b := open(t)
	done := make(chan sandbox.Result, 1)
	began := make(chan struct{})
	go func() {
		done <- b.do(sandbox.Command{ID: "x", Text: "echo begun; sleep 1000"}, func([]byte) { close(began) })
	}()
	<-began
	b.shells.Close()
	if r := <-done; r.Exit != 137 || !r.NewShell {
		t.Errorf("what ran ended with %+v", r)
	}
	if _, err := b.Exec(t.Context(), sandbox.Command{ID: "y", Text: ":"}, nil); err == nil {
		t.Error("a closed one took a command")
	}
	if err := b.Interrupt(t.Context(), "", 0); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(b.workspace); err != nil {
		t.Error(err)
	}
}

// When nothing could be started nothing was done, and the id may be used again.
func TestNothingStarted(t *testing.T) {
	broken := true
	b := open(t)
	env := b.config.Env
	b.config.Env = func() []string {
		if broken {
			return []string{"PATH=/nowhere"}
		}
		return env()
	}
	client := connect(t, b.make(b.config))
	cmd := sandbox.Command{ID: "x", Text: "echo x"}
	if _, err := client.Exec(t.Context(), cmd, nil); err == nil || !strings.Contains(err.Error(), `"sh"`) {
		t.Errorf("without any shell: %v", err)
	}
	broken = false
	if r, err := client.Exec(t.Context(), cmd, nil); err != nil || r.Output != "x\n" {
		t.Errorf("with one: %+v, %v", r, err)
	}
}
