package v0_test

import _ "deckhand/internal/gitprovider/forge" // lists the providers
