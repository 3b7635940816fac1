package takeover_test

import _ "deckhand/internal/tool/toolbox" // lists the tools
