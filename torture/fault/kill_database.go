//go:build linux

package fault

import (
	"context"
	"fmt"
	"time"
)

var killDatabase = Fault{
	Name: "kill-database", What: "kill -9 of all processes of PostgreSQL, then a restart", Kills: true, Weight: 15, Possible: onPostgres,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		down := s.between(0, time.Second)
		if err := s.World.Database.Kill(); err != nil {
			return "", err
		}
		hold(ctx, down)
		return fmt.Sprintf("down for %v", down.Round(time.Millisecond)), s.World.Database.Start(ctx)
	},
}
