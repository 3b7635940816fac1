//go:build !linux

package health

import api "deckhand/api/health"

// memory is that of the machine; unknown here.
func memory() api.MachineMemory { return api.MachineMemory{} }
