package call

import "deckhand/internal/gitprovider"

// Adapter is a provider that can be opened. Each declares its own, and package
// forge lists them.
type Adapter struct {
	gitprovider.Descriptor
	// New makes the provider; it waits for nobody. A provider without it is asked
	// what it is.
	New func(Options) gitprovider.Provider
}
