package connect

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"
)

// Patience bridges the restart of an engine, or of a proxy in front of it. Sandboxes and the commands in them keep running, so
// requests that follow a lost connection are repeated for a while. An engine that has been away for longer is reported at once.
type Patience struct {
	lost atomic.Int64 // when a connection was last lost, in Unix nanoseconds
}

// Away is how long an engine may be away after a connection was lost.
const Away = time.Minute

// pause is how long a repeated request waits.
const pause = 200 * time.Millisecond

// Lost says that a connection was lost.
func (p *Patience) Lost() { p.lost.Store(time.Now().UnixNano()) }

// Do makes a request, and repeats it while the engine cannot be reached.
func (p *Patience) Do(ctx context.Context, request func() error) error {
	for {
		err := request()
		if err == nil || !client.IsErrConnectionFailed(err) || time.Since(time.Unix(0, p.lost.Load())) > Away {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
