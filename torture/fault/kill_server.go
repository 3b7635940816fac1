//go:build linux

package fault

import (
	"context"
	"fmt"
	"time"
)

// Sometimes the server is killed again while it starts.
var killServer = Fault{
	Name: "kill-server", What: "kill -9 of a server, sometimes again during its start", Kills: true, Weight: 60,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		server := s.server()
		again, down := s.Random.IntN(8) == 0, s.between(0, 200*time.Millisecond)
		early := s.between(0, 150*time.Millisecond)
		if err := server.Kill(); err != nil {
			return "", err
		}
		hold(ctx, down)
		if again {
			started := make(chan error, 1)
			starting, stop := context.WithCancel(ctx)
			go func() { started <- server.Start(starting) }()
			hold(ctx, early)
			stop()
			<-started
			if err := server.Kill(); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s, down for %v, killed again during start: %t", server.Name, down.Round(time.Millisecond), again), server.Start(ctx)
	},
}
