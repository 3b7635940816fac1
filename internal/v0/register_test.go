package v0_test

import (
	_ "deckhand/internal/gitprovider/forge" // lists the providers
	_ "deckhand/internal/tool/toolbox"      // lists the tools
)
