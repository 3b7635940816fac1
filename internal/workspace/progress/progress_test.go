package progress

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/sandbox"
)

// A start that is quick leaves nothing in the log; of a longer one, each step is recorded.
func TestSteps(t *testing.T) {
	starting, pulling := sandbox.Progress{Step: sandbox.Starting}, sandbox.Progress{Step: sandbox.Pulling}
	for name, c := range map[string]struct {
		start func(*Steps)
		want  []sandbox.Step
	}{
		"quick": {func(s *Steps) { s.Tell(starting) }, nil},
		"slow": {func(s *Steps) {
			s.Tell(starting)
			time.Sleep(patience + 1)
		}, []sandbox.Step{sandbox.Starting}},
		"two steps": {func(s *Steps) {
			s.Tell(pulling)
			time.Sleep(patience + 1)
			s.Tell(starting)
		}, []sandbox.Step{sandbox.Pulling, sandbox.Starting}},
		"the first of two is quick": {func(s *Steps) {
			s.Tell(pulling)
			s.Tell(starting)
			time.Sleep(patience + 1)
		}, []sandbox.Step{sandbox.Starting}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []sandbox.Step
				s := New(func(p sandbox.Progress) { got = append(got, p.Step) })
				c.start(s)
				s.End()
				s.Tell(starting)
				synctest.Wait()
				if !slices.Equal(got, c.want) {
					t.Errorf("recorded %q, want %q", got, c.want)
				}
				if !s.Any() {
					t.Error("there was no progress")
				}
			})
		})
	}
}
