//go:build linux

package fault

import (
	"context"
	"fmt"
	"math"
	"time"

	"deckhand/torture/world"
	"deckhand/torture/world/clock"
)

// The longest jump is below what ends the life of anything that is kept for a day.
var jumpClock = Fault{
	Name: "clock", What: "the wall clock of a server jumps, by up to three hours in either direction", Weight: 6,
	Possible: func(w *world.World) bool { return clock.Possible && w.Clocks },
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		server := s.server()
		most := float64(3 * time.Hour / time.Second)
		jump := time.Duration(math.Exp(s.Random.Float64()*math.Log(most))) * time.Second
		if s.Random.IntN(2) == 0 {
			jump = -jump
		}
		back, d := s.Random.IntN(2) == 0, s.between(100*time.Millisecond, 2*time.Second)
		server.Clock.Set(jump)
		hold(ctx, d)
		if back {
			server.Clock.Set(0)
		}
		return fmt.Sprintf("%s differs by %v, back after %v: %t", server.Name, jump, d.Round(time.Millisecond), back), nil
	},
}
