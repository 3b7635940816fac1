package runner

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

// A runner ends an hour after its last command if no server is attached, and at once
// when its folder is gone.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	r, err := New(Config{State: filepath.Join(dir, "state"), Output: filepath.Join(dir, "output"), Workspace: dir, Network: sandbox.Isolated,
		Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	is := func(when string, after time.Duration, part string) {
		t.Helper()
		why := r.abandoned(time.Now().Add(after), AbandonedAfter)
		if part == "" && why != "" || !strings.Contains(why, part) {
			t.Errorf("%s, after %s: %q", when, after, why)
		}
	}
	is("no server", 59*time.Minute, "")
	is("no server", 61*time.Minute, "no server was attached")

	ours, theirs := net.Pipe()
	r.Attach(theirs)
	box, err := sandbox.Connect(t.Context(), sandbox.Link{ID: "x", Conn: ours})
	if err != nil {
		t.Fatal(err)
	}
	is("a server is attached", 100*time.Hour, "")
	begun := make(chan struct{}, 100)
	done := make(chan error, 1)
	go func() {
		_, err := box.Exec(t.Context(), sandbox.Command{ID: "1", Text: "echo begun; read line"}, func([]byte) { begun <- struct{}{} })
		done <- err
	}()
	<-begun
	box.Close()
	if err := <-done; err == nil {
		t.Error("the command ended")
	}
	for len(r.attachedPeers()) > 0 { // its end is noticed soon
		<-time.After(time.Millisecond)
	}
	is("a command runs", 23*time.Hour, "")
	is("a command runs", 25*time.Hour, "no server was attached")
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	is("its folder is gone", 0, "removed")
}

func (r *Runner) attachedPeers() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return make([]int, len(r.peers))
}
