package httpapi

import _ "deckhand/internal/tool/toolbox" // lists the tools
