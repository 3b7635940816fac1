package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// A runner whose records may have gaps is asked about a call that a server recorded and
// perhaps did not send. If the call can have been sent to an earlier runner, its outcome
// is unknown. If it is newer than this runner, it was never begun, and it runs.
func TestCallsRecordedAfterTheRunner(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("1", "true")
	if st := r.state(); st.HandleAt != 0 {
		t.Errorf("the first handle is of event %d", st.HandleAt)
	}
	// As after a restart of the machine, or in a container that was replaced.
	files, err := filepath.Glob(filepath.Join(r.dir, string(id), "*", "results", "boot"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.kill()
	r.until("the sandbox is started again and recorded", func() bool { return r.state().HandleAt > 0 })
	at := r.state().HandleAt
	again := func(name string, number int64) sandbox.Result {
		t.Helper()
		box, release, err := r.keeper.Use(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		res, err := box.For(number).Exec(t.Context(), sandbox.Command{ID: name, Again: true, Text: "echo " + name + " >> runs"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for range 2 {
		if res := again("older", at-1); !res.Lost {
			t.Errorf("a call from before the runner: %+v", res)
		}
		if res := again("other-log", 0); !res.Lost {
			t.Errorf("a call of another log: %+v", res)
		}
		if res := again("newer", at+1); res.Lost || res.Exit != 0 {
			t.Errorf("a call that only this runner can have got: %+v", res)
		}
		r.restart()
	}
	if got := r.run("2", "cat runs"); got != "newer" {
		t.Errorf("what ran: %q", got)
	}
}

func (r *rig) state() session.State {
	r.t.Helper()
	st, err := r.sessions.Load(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}
