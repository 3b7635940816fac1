package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/execstream"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/words"
)

// parked is a connection that Start made to see whether the runner answers, kept
// for the Attach that usually follows.
type parked struct {
	box   *sandbox.Sandbox
	timer *time.Timer
}

// parkTime is how long a connection waits for its Attach.
const parkTime = time.Minute

func (d *Driver) park(id string, box *sandbox.Sandbox) {
	p := &parked{box: box}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.parked[id] != nil {
		go box.Close()
		return
	}
	d.parked[id] = p
	p.timer = time.AfterFunc(parkTime, func() {
		if taken := d.unpark(id, p); taken != nil {
			taken.Close()
		}
	})
}

// unpark takes the connection that waits for id, and only that one if it is given.
func (d *Driver) unpark(id string, only *parked) *sandbox.Sandbox {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.parked[id]
	if p == nil || only != nil && p != only {
		return nil
	}
	p.timer.Stop()
	delete(d.parked, id)
	return p.box
}

// drop closes the connection that waits for id.
func (d *Driver) drop(id string) {
	if box := d.unpark(id, nil); box != nil {
		box.Close()
	}
}

// Attach connects to the runner.
func (d *Driver) Attach(ctx context.Context, h sandbox.Handle) (box *sandbox.Sandbox, err error) {
	if err := sandbox.CheckID(h.ID); err != nil {
		return nil, err
	}
	if box := d.unpark(h.ID, nil); box != nil {
		select {
		case <-box.Done():
			box.Close()
		default:
			return box, nil
		}
	}
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	err = d.patience.Do(ctx, func() error {
		if err := d.settle(ctx, h); err != nil {
			return err
		}
		c, e := d.find.Container(ctx, names.Box, h.ID)
		if e != nil || c == nil {
			return cmp.Or(e, sandbox.ErrGone)
		}
		v := dataOf(h)
		box, err = d.connect(ctx, link{id: h.ID, container: c.ID, program: v.Runner, user: v.User, onClose: d.patience.Lost})
		return err
	})
	return box, err
}

// link says which runner to connect to.
type link struct {
	id, container, program string
	// user runs the connector; "" is the user of the container.
	user     string
	isolated bool
	onClose  func()
}

// connect reaches the runner of a container and hears it say hello.
func (d *Driver) connect(ctx context.Context, l link) (*sandbox.Sandbox, error) {
	conn, err := d.dial(ctx, l)
	if err != nil {
		return nil, err
	}
	to := sandbox.Link{ID: l.id, Conn: conn, Outward: d.options.Outward, OnClose: l.onClose}
	if l.isolated {
		to.Outward = nil
	}
	box, err := sandbox.Connect(ctx, to)
	if err == nil {
		return box, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if said := conn.Complaint(); said != "" {
		err = fmt.Errorf("%w (it said: %s)", err, said)
	}
	return nil, d.whyNot(ctx, l.container, err)
}

// whyNot tells a runner that does not answer from one that is not there any more.
func (d *Driver) whyNot(ctx context.Context, name string, err error) error {
	got, inspectErr := d.engine.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if words.IsNotThere(inspectErr) {
		return fmt.Errorf("%w: %w", sandbox.ErrGone, err)
	}
	if inspectErr != nil {
		return d.words.Says(inspectErr)
	}
	if state := got.Container.State; state != nil && !state.Running {
		why := fmt.Sprintf("its runner ended with exit code %d", state.ExitCode)
		if state.OOMKilled {
			why = "it ran out of memory"
		}
		if last := d.lastWords(ctx, name); last != "" {
			why += ": " + last
		}
		return fmt.Errorf("%w: %s", sandbox.ErrGone, why)
	}
	return err
}

// lastWords is the end of what the runner wrote to its standard error.
func (d *Driver) lastWords(ctx context.Context, name string) string {
	r, err := d.engine.ContainerLogs(ctx, name, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "5"})
	if err != nil {
		return ""
	}
	defer r.Close()
	var out bytes.Buffer
	_, _ = stdcopy.StdCopy(&out, &out, io.LimitReader(r, 64<<10))
	return words.Brief(errors.New(strings.ToValidUTF8(out.String(), "?")))
}

// dial runs the runner's own connector in the container: its standard input and
// output are the connection. That is the only thing ever run by the engine.
func (d *Driver) dial(ctx context.Context, l link) (*execstream.Conn, error) {
	made, err := d.engine.ExecCreate(ctx, l.container, client.ExecCreateOptions{
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
		WorkingDir: "/", User: l.user,
		Cmd: []string{l.program, "dial", "--socket", socketPath},
	})
	if words.IsNotThere(err) || words.IsAsleep(err) {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, words.Brief(err))
	}
	if err != nil {
		return nil, d.words.Says(err)
	}
	attached, err := d.engine.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if ctx.Err() != nil {
		if err == nil {
			attached.Close()
		}
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, d.whyNot(ctx, l.container, err)
	}
	return execstream.New(attached.HijackedResponse), nil
}
