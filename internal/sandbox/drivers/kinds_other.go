//go:build !linux

package drivers

import (
	"fmt"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/engines"
)

// kinds are the drivers in the order of the help. The runner is a Linux program, so the drivers that run it directly
// on this machine return an error that says so.
var kinds = []sandbox.Kind{linuxOnly("local", "Linux namespaces, no daemon", true), engines.Kind, linuxOnly("host", "no sandbox", false)}

func linuxOnly(name, label string, confined bool) sandbox.Kind {
	return sandbox.Kind{
		Properties: sandbox.Properties{Name: name, Label: label + "; Linux only", Confined: confined},
		Open: func(sandbox.Options) (sandbox.Driver, error) {
			return nil, fmt.Errorf("--sandbox %s is only available on Linux; use --sandbox docker", name)
		},
	}
}
