//go:build linux

package fault

import (
	"context"
	"fmt"
	"time"

	"deckhand/torture/world"
)

var slowModel = Fault{
	Name: "slow-model", What: "the model sends its answers in small pieces with pauses", Weight: 6,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		pause, d := s.between(20*time.Millisecond, 200*time.Millisecond), s.between(time.Second, 4*time.Second)
		s.World.Model.Set(world.Mood{Pause: pause})
		hold(ctx, d)
		s.World.Model.Set(world.Mood{})
		return fmt.Sprintf("pauses of %v for %v", pause.Round(time.Millisecond), d.Round(time.Millisecond)), nil
	},
}
