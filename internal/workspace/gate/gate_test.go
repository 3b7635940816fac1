package gate

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestGate(t *testing.T) {
	t.Parallel()
	var g Gate
	if err := g.Wait(t.Context()); err != nil || g.Busy() {
		t.Errorf("a new gate: busy %v, %v", g.Busy(), err)
	}
	leave, ok := g.Try()
	if !ok || !g.Busy() {
		t.Fatal("the first one cannot enter")
	}
	if _, ok := g.Try(); ok {
		t.Error("a second one entered")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := g.Enter(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Enter: %v", err)
	}
	var all sync.WaitGroup
	inside := 0
	for range 8 {
		all.Go(func() {
			leave, err := g.Enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			inside++ // the race detector notices if two do
			leave()
		})
	}
	leave()
	all.Wait()
	if inside != 8 || g.Busy() {
		t.Errorf("%d came through, busy %v", inside, g.Busy())
	}
}
