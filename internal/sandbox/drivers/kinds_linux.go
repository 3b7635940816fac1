package drivers

import (
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/local"
)

// kinds are the drivers in the order of the help. Add new ones here.
var kinds = []sandbox.Kind{local.Kind, docker.Kind, host.Kind}
