//go:build linux

package fault

import (
	"context"
	"time"
)

var cutModel = Fault{
	Name: "cut-model", What: "no packets between a server and the model", Weight: 8,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		return s.cut(ctx, s.server().Host, s.World.Model.Host, s.between(100*time.Millisecond, 4*time.Second))
	},
}
