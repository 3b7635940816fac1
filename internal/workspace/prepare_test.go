package workspace_test

import (
	"context"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// A session whose preparation waits for a person is prepared further at its next use, also
// if the answer is being recorded at the moment at which the sandbox is given out.
func TestPrepareFurtherAfterAnAnswer(t *testing.T) {
	r := newRig(t)
	const asking = session.ID("asking")
	if _, err := r.sessions.Create(t.Context(), asking, session.Created{Owner: "ann", Repository: "octo/app"}, nil); err != nil {
		t.Fatal(err)
	}
	calls := 0
	answered := make(chan error, 1)
	r.keeper.Prepare = func(context.Context, session.State, *sandbox.Sandbox, func(sandbox.Progress)) error {
		if calls++; calls > 1 {
			return nil
		}
		answering := make(chan struct{})
		go func() {
			_, err := r.sessions.Update(context.WithoutCancel(t.Context()), asking, func(session.State) ([]session.Payload, error) {
				select {
				case <-answering:
				default:
					close(answering)
				}
				<-time.After(50 * time.Millisecond) // the store takes its time
				return nil, nil
			})
			answered <- err
		}()
		<-answering
		return nil
	}
	for range 2 {
		_, release, err := r.keeper.Use(t.Context(), asking)
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if err := <-answered; err != nil || calls != 2 {
		t.Errorf("it was prepared %d times: %v", calls, err)
	}
}
