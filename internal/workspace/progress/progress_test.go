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
		start []any // steps, and times that go by
		want  []sandbox.Step
	}{
		"quick":                     {[]any{starting}, nil},
		"slow":                      {[]any{starting, patience + 1}, []sandbox.Step{sandbox.Starting}},
		"two steps":                 {[]any{pulling, patience + 1, starting}, []sandbox.Step{sandbox.Pulling, sandbox.Starting}},
		"the first of two is quick": {[]any{pulling, starting, patience + 1}, []sandbox.Step{sandbox.Starting}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []sandbox.Step
				s := New(func(p sandbox.Progress) { got = append(got, p.Step) })
				for _, do := range c.start {
					switch do := do.(type) {
					case sandbox.Progress:
						s.Tell(do)
					case time.Duration:
						time.Sleep(do)
					}
				}
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
