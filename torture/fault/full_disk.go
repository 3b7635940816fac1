//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var fullDisk = Fault{
	Name: "full-disk", What: "no space is left on the disk of a server; sometimes the server is killed meanwhile", Kills: false, Weight: 2,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		server := s.server()
		d, kill := s.between(200*time.Millisecond, 2*time.Second), s.Random.IntN(3) == 0
		if err := server.FillDisk(); err != nil {
			return "", errors.Join(err, server.DrainDisk())
		}
		hold(ctx, d)
		var err error
		if kill {
			err = server.Kill()
		}
		if err = errors.Join(err, server.DrainDisk()); err == nil && kill {
			err = server.Start(ctx)
		}
		return fmt.Sprintf("%s for %v, killed meanwhile: %t", server.Name, d.Round(time.Millisecond), kill), err
	},
}
