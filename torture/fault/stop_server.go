//go:build linux

package fault

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

var stopServer = Fault{
	Name: "stop-server", What: "SIGSTOP of a server, then SIGCONT; sometimes longer than a lease", Weight: 3,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		server := s.server()
		d := s.sometimesLong(s.between(100*time.Millisecond, 2*time.Second), 6)
		if err := server.Signal(syscall.SIGSTOP); err != nil {
			return "", err
		}
		hold(ctx, d)
		return fmt.Sprintf("%s for %v", server.Name, d.Round(time.Millisecond)), server.Signal(syscall.SIGCONT)
	},
}
