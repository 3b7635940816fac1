//go:build linux

package fault

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"deckhand/torture/world"
)

func several(w *world.World) bool { return w.NATS != nil }

var killNATS = Fault{
	Name: "kill-nats", What: "kill -9 of NATS, then a restart", Kills: true, Weight: 8, Possible: several,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		down := s.between(0, 2*time.Second)
		if err := s.World.NATS.Kill(); err != nil {
			return "", err
		}
		hold(ctx, down)
		return fmt.Sprintf("down for %v", down.Round(time.Millisecond)), s.World.NATS.Start(ctx)
	},
}

var stopNATS = Fault{
	Name: "stop-nats", What: "SIGSTOP of NATS, then SIGCONT", Weight: 3, Possible: several,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		d := s.between(100*time.Millisecond, 3*time.Second)
		if err := s.World.NATS.Signal(syscall.SIGSTOP); err != nil {
			return "", err
		}
		hold(ctx, d)
		return fmt.Sprintf("for %v", d.Round(time.Millisecond)), s.World.NATS.Signal(syscall.SIGCONT)
	},
}

var cutNATS = Fault{
	Name: "cut-nats", What: "no packets between a server and NATS; sometimes longer than a lease", Weight: 8, Possible: several,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		return s.cut(ctx, s.server().Host, s.World.NATS.Host, s.sometimesLong(s.between(100*time.Millisecond, 3*time.Second), 6))
	},
}

var cutServers = Fault{
	Name: "cut-servers", What: "no packets between two servers; sometimes longer than a lease", Weight: 6, Possible: several,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		all := s.World.Servers
		a := s.Random.IntN(len(all))
		b := (a + 1 + s.Random.IntN(len(all)-1)) % len(all)
		return s.cut(ctx, all[a].Host, all[b].Host, s.sometimesLong(s.between(100*time.Millisecond, 3*time.Second), 6))
	},
}
