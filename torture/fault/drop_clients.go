//go:build linux

package fault

import (
	"context"
	"fmt"
)

var dropClients = Fault{
	Name: "drop-clients", What: "the connections of all followers are closed at once", Weight: 10,
	Inject: func(_ context.Context, s *Scene) (string, error) {
		return fmt.Sprintf("%d connections", s.Crowd.Drop()), nil
	},
}
