//go:build !linux

package health

import "deckhand/api"

// memory is that of the machine; unknown here.
func memory() api.MachineMemory { return api.MachineMemory{} }
