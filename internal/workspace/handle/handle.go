// Package handle says where the workspace of a session is, as the log has it.
package handle

import (
	"encoding/json"
	"errors"
	"fmt"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// ErrElsewhere means that another server works with a workspace.
var ErrElsewhere = errors.New("another server works with the workspace")

// Stored finds a sandbox, and says which run of its runner it was.
type Stored struct {
	sandbox.Handle
	Boot string `json:"boot,omitempty"`
	// Machine is the machine whose server recorded this, where several servers share the sessions. Engine is the ID of the container
	// engine, if servers of other machines can use the sandbox too.
	Machine string `json:"machine,omitempty"`
	Engine  string `json:"engine,omitempty"`
}

// Of reads what is recorded for a session: with a driver, or by the ID alone if nothing is. An error says that it needs another driver.
func Of(st session.State, driver string) (Stored, error) {
	h := Stored{Handle: sandbox.Handle{Driver: driver, ID: string(st.ID)}}
	if len(st.Handle) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(st.Handle, &h); err != nil {
		return h, fmt.Errorf("%w: the handle of the workspace: %v", session.ErrCorrupt, err)
	}
	if h.Driver != driver {
		return h, &sandbox.Unavailable{Reason: fmt.Sprintf("This conversation's workspace was created by the %s sandbox driver, but this server uses %s. Start the server with --sandbox %s to use the workspace.", h.Driver, driver, h.Driver)}
	}
	return h, nil
}

// Next is what to record of a sandbox that a driver has opened. If another server on the same engine recorded this run of its runner, it stays
// as it is: commands that run in it are those of the log.
func (was Stored) Next(d sandbox.Driver, h sandbox.Handle, boot, machine string) Stored {
	now := Stored{Handle: h, Boot: boot, Machine: machine}
	if s, ok := d.(sandbox.Sharer); ok {
		now.Engine = s.EngineOf(h)
	}
	if now.Engine != "" && now.Boot != "" && now.Boot == was.Boot {
		return was
	}
	return now
}
