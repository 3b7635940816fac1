//go:build linux

package fault

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

var stopDatabase = Fault{
	Name: "stop-database", What: "SIGSTOP of all processes of PostgreSQL, then SIGCONT", Weight: 4, Possible: onPostgres,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		d := s.sometimesLong(s.between(100*time.Millisecond, 3*time.Second), 8)
		if err := s.World.Database.Signal(syscall.SIGSTOP); err != nil {
			return "", err
		}
		hold(ctx, d)
		return fmt.Sprintf("for %v", d.Round(time.Millisecond)), s.World.Database.Signal(syscall.SIGCONT)
	},
}
