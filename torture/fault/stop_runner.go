//go:build linux

package fault

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

var stopRunner = Fault{
	Name: "stop-runner", What: "SIGSTOP of the runner of a sandbox, then SIGCONT", Weight: 3,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		running := s.server().Runners()
		d := s.between(100*time.Millisecond, 2*time.Second)
		if len(running) == 0 {
			return "", nil
		}
		one := running[s.Random.IntN(len(running))]
		if err := syscall.Kill(one.PID, syscall.SIGSTOP); err != nil {
			return "", nil // it has just ended
		}
		hold(ctx, d)
		_ = syscall.Kill(one.PID, syscall.SIGCONT) // it may have been ended
		return fmt.Sprintf("of %s for %v", one.ID, d.Round(time.Millisecond)), nil
	},
}
