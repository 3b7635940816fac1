package idle

import (
	"time"

	"deckhand/internal/config"
)

// Flags say how long conversations are kept running, and kept at all.
type Flags struct {
	IdleClose   time.Duration `name:"idle-close" group:"sandbox" env:"DECKHAND_IDLE_CLOSE" default:"1h" help:"Stop a conversation after this idle time; the next message starts it again. 0 means never."`
	DeleteAfter config.Age    `name:"delete-after" group:"limits" env:"DECKHAND_DELETE_AFTER" default:"0" placeholder:"TIME" help:"Delete a conversation and its workspace this long after its last activity, such as 90d. Default: never."`
}
