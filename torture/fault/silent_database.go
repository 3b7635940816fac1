//go:build linux

package fault

import (
	"context"
	"fmt"
	"time"

	"deckhand/torture/world"
)

// silentDatabase lasts longer than all time limits of statements and connections.
var silentDatabase = Fault{
	Name: "silent-database", What: "no packets between a server and the database for a minute, without an error on either side", Weight: 1,
	Possible: onPostgres,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		server, d := s.server(), s.between(55*time.Second, 65*time.Second)
		if !s.Long {
			return "", nil
		}
		if err := s.World.Network.Cut(server.Host, s.World.Database.Host, world.Silent); err != nil {
			return "", err
		}
		hold(ctx, d)
		return fmt.Sprintf("between %s and the database for %v", server.Name, d.Round(time.Millisecond)), s.World.Network.Heal(server.Host, s.World.Database.Host)
	},
}
