//go:build linux

package fault

import (
	"context"
	"fmt"
	"time"

	"deckhand/torture/world"
)

var cutDatabase = Fault{
	Name: "cut-database", What: "no packets between a server and the database; sometimes longer than a lease", Weight: 10, Possible: onPostgres,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		d := s.sometimesLong(s.between(100*time.Millisecond, 3*time.Second), 8)
		return s.cut(ctx, s.server().Host, s.World.Database.Host, d)
	},
}

// cut ends the traffic between two hosts for some time.
func (s *Scene) cut(ctx context.Context, a, b *world.Host, d time.Duration) (string, error) {
	how := []string{world.Silent, world.Refused}[s.Random.IntN(2)]
	if err := s.World.Network.Cut(a, b, how); err != nil {
		return "", err
	}
	hold(ctx, d)
	return fmt.Sprintf("between %s and %s (%s) for %v", a.Name, b.Name, how, d.Round(time.Millisecond)), s.World.Network.Heal(a, b)
}
