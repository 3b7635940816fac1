package call

import "deckhand/internal/gitprovider"

// Adapter is a provider that can be opened. Each provider declares its own, and package
// forge lists them.
type Adapter struct {
	gitprovider.Descriptor
	// New returns the provider without blocking. A provider without New is detected by
	// requests.
	New func(Options) gitprovider.Provider
}
