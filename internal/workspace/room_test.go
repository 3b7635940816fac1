package workspace_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/workspace"
)

// Sandboxes in which nothing runs do not keep their owner from starting others.
func TestIdleSandboxesMakeRoom(t *testing.T) {
	r := suspending(t, workspace.Suspension{After: time.Hour})
	r.keeper.PerUser = 2
	const n = 6
	var all sync.WaitGroup
	for i := range n {
		r.session(i)
		if i < 3 {
			r.use(i, fmt.Sprintf("x=%d", i))
			continue
		}
		all.Go(func() { r.use(i, fmt.Sprintf("x=%d", i)) }) // two of them at most have room at the same moment
		if i == 4 {
			all.Wait()
		}
	}
	all.Wait()
	if got := r.keeper.Running(); got > 2 {
		t.Errorf("%d sandboxes run", got)
	}
	for i := range n {
		if got := r.use(i, "echo $x"); got != fmt.Sprint(i) {
			t.Errorf("%d continues with %q", i, got)
		}
	}

	var boxes [2]func()
	for i := range boxes {
		_, release, err := r.keeper.Use(t.Context(), name(i))
		if err != nil {
			t.Fatal(err)
		}
		boxes[i] = release
	}
	_, _, err := r.keeper.Use(t.Context(), name(2))
	var u *sandbox.Unavailable
	if !errors.As(err, &u) || !strings.Contains(u.Reason, "limit of 2 running sandboxes") {
		t.Errorf("%v", err)
	}
	for _, release := range boxes {
		release()
	}
	if got := r.use(2, "echo again $x"); got != "again 2" {
		t.Errorf("%q", got)
	}
}
