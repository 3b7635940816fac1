package drivers

import (
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/engines"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/local"
)

// kinds are the drivers in the order of the help. Add new ones here.
var kinds = []sandbox.Kind{local.Kind, engines.Kind, host.Kind}
