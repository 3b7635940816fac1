package propose_test

import _ "deckhand/internal/gitprovider/forge" // lists the providers
