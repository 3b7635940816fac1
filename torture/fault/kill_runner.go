//go:build linux

package fault

import (
	"context"
	"syscall"
)

var killRunner = Fault{
	Name: "kill-runner", What: "kill -9 of the runner of a sandbox, which ends the sandbox", Kills: true, Weight: 20,
	Inject: func(_ context.Context, s *Scene) (string, error) {
		running := s.server().Runners()
		if len(running) == 0 {
			return "", nil
		}
		one := running[s.Random.IntN(len(running))]
		if err := syscall.Kill(one.PID, syscall.SIGKILL); err != nil {
			return "", nil // it has just ended
		}
		return "of " + one.ID, nil
	},
}
