package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

const fork session.ID = "c2"

// store makes the session of a copy, as the API does.
func (r *rig) store(ctx context.Context) error {
	_, err := r.sessions.Create(ctx, fork, session.Created{Owner: "ann"}, nil)
	return err
}

// read is the text of a file of the copy, "" if there is none.
func (r *rig) read(name string) string {
	r.t.Helper()
	v, err := r.keeper.View(r.t.Context(), fork)
	if errors.Is(err, workspace.ErrNone) {
		return ""
	}
	if err != nil {
		r.t.Fatal(err)
	}
	defer v.Close()
	var b bytes.Buffer
	if _, err := v.Read(r.t.Context(), name, &b); err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}

// copied is whether the driver has a workspace under the name of the copy.
func (r *rig) copied() bool {
	r.t.Helper()
	found, err := r.driver.List(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range found {
		if f.Handle.ID == string(fork) {
			return true
		}
	}
	return false
}

// Both have the same files at first, and then each its own.
func TestCopy(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("one", "echo first > kept")
	if err := r.keeper.Copy(t.Context(), id, fork, r.store); err != nil {
		t.Fatal(err)
	}
	r.run("two", "echo second > kept")
	if got := r.read("kept"); got != "first\n" {
		t.Errorf("the copy has %q", got)
	}
	r.keeper.Sweep(t.Context())
	box, release, err := r.keeper.Use(t.Context(), fork)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Write(t.Context(), sandbox.WriteParams{PathParams: sandbox.InWorkspace("kept")}, bytes.NewReader([]byte("third"))); err != nil {
		t.Fatal(err)
	}
	release()
	if got := r.run("three", "cat kept"); got != "second" {
		t.Errorf("the original has %q", got)
	}
	if err := r.keeper.Copy(t.Context(), id, fork, r.store); !errors.Is(err, session.ErrConflict) {
		t.Errorf("a copy in the place of another: %v", err)
	}
	if got := r.read("kept"); got != "third" {
		t.Errorf("the copy has %q", got)
	}
}

// Where there is nothing yet, there is nothing to be copied.
func TestCopyOfNothing(t *testing.T) {
	r := newRig(t)
	if err := r.keeper.Copy(t.Context(), id, fork, r.store); err != nil {
		t.Fatal(err)
	}
	if got := r.read("kept"); got != "" || r.copied() {
		t.Errorf("the copy has %q", got)
	}
}

// A server that dies before it has made the session leaves a workspace that is
// without an owner: it is set aside, out of the way.
func TestCopyThatWasNotFinished(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("one", "echo first > kept")
	died := errors.New("the server died")
	if err := r.keeper.Copy(t.Context(), id, fork, func(context.Context) error { return died }); !errors.Is(err, died) || !r.copied() {
		t.Fatalf("%v", err)
	}
	r.restart()
	r.keeper.Sweep(t.Context())
	if r.copied() {
		t.Error("half a copy is kept")
	}
	if err := r.keeper.Copy(t.Context(), id, fork, func(context.Context) error { return died }); !errors.Is(err, died) {
		t.Fatal(err)
	}
	r.run("two", "echo second > kept")
	if err := r.keeper.Copy(t.Context(), id, fork, r.store); err != nil {
		t.Fatal(err)
	}
	if got := r.read("kept"); got != "second\n" {
		t.Errorf("the copy has %q", got)
	}
}

// Sweep looks at what is on disk while a copy is being made: it waits, and then
// it sees that the copy has a session.
func TestSweepLeavesCopiesAlone(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.run("one", "echo first > kept")
	swept := make(chan struct{})
	err := r.keeper.Copy(t.Context(), id, fork, func(ctx context.Context) error {
		go func() { defer close(swept); r.keeper.Sweep(context.WithoutCancel(ctx)) }()
		select { // it must not get through before we are done
		case <-swept:
			t.Error("Sweep did not wait")
		case <-r.keeper.Waiting(fork):
		}
		return r.store(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	<-swept
	if got := r.read("kept"); got != "first\n" {
		t.Errorf("the copy has %q", got)
	}
}

// A workspace that is a user's folder is not copied, and no session is made.
func TestCopyOfAFolder(t *testing.T) {
	r := newRig(t)
	r.spec.Folder = t.TempDir()
	r.claim()
	r.run("one", "echo first > kept")
	if err := r.keeper.Copy(t.Context(), id, fork, r.store); !errors.Is(err, workspace.ErrNoCopy) {
		t.Errorf("%v", err)
	}
	if _, err := r.log.Row(t.Context(), fork); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
