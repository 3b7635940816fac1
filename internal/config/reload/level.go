package reload

import (
	"strings"

	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/control"
)

// LevelCommand is deckhand log-level.
type LevelCommand struct {
	config.DataFlags
	Level string `arg:"" optional:"" default:"" enum:",debug,info,warn,error" help:"New log level: debug, info, warn or error. Default: print the current one."`
}

// Run shows or changes the log level of the running server.
func (c *LevelCommand) Run(o *cli.Output) error {
	return ask(o, c.DataDir, strings.TrimSpace(control.LogLevel+" "+c.Level))
}

// SetLevel changes the log level if level is not "", and returns the current one. The change applies until the
// next reload or restart.
func (r *Reloader) SetLevel(level string) string {
	if r == nil {
		return failed + "this process has no log level to change"
	}
	if level != "" {
		if err := r.Level.UnmarshalText([]byte(level)); err != nil {
			return failed + "the log level is debug, info, warn or error"
		}
		r.Log.Warn("log level changed", "log_level", level)
	}
	return strings.ToLower(r.Level.Level().String())
}
