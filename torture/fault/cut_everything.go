//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deckhand/torture/world"
)

var cutEverything = Fault{
	Name: "cut-everything", What: "a server reaches no other host", Weight: 3, Possible: onPostgres,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		server, d := s.server(), s.between(100*time.Millisecond, 3*time.Second)
		n, others := s.World.Network, []*world.Host{s.World.Database.Host, s.World.Model.Host}
		if s.World.NATS != nil {
			others = append(others, s.World.NATS.Host)
		}
		for _, other := range s.World.Servers {
			if other != server {
				others = append(others, other.Host)
			}
		}
		var err error
		for _, other := range others {
			err = errors.Join(err, n.Cut(server.Host, other, world.Silent))
		}
		hold(ctx, d)
		for _, other := range others {
			err = errors.Join(err, n.Heal(server.Host, other))
		}
		return fmt.Sprintf("around %s for %v", server.Name, d.Round(time.Millisecond)), err
	},
}
