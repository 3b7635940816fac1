package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/session"
	"deckhand/internal/socketio"
	v0 "deckhand/internal/v0"
)

// listener is one client of a conversation.
type listener struct {
	api    *Handlers
	socket *socketio.Socket
	who    access.Identity
	from   string // the client's address
	id     session.ID
	// valid checks again the key that the client was let in with.
	valid func(ctx context.Context) error
	// after is the last event that the client has, end the last one there was when it came.
	after, end int64
	// problem is why the conversation was not started; nil if it was.
	problem *usecase.Refusal

	mu     sync.Mutex
	passed int64 // events up to here were sent, or are not for the client
	until  int64 // the client is disconnected after this one; 0 for never
	stop   context.CancelCauseFunc
}

// Why a client is disconnected.
var (
	errStopped = errors.New("the conversation was stopped")
	errDeleted = errors.New("the conversation was deleted")
)

// farewell is how long a client may take to be told why it is disconnected.
const farewell = 5 * time.Second

// run tells the client everything, until something ends it.
func (l *listener) run(ctx context.Context) {
	d := l.api
	held, release := d.Life.Hold(ctx, l.who)
	defer release()
	held, l.stop = context.WithCancelCause(held)
	defer l.stop(nil)
	l.passed = l.after
	d.sockets.add(l)
	defer d.sockets.remove(l)

	begun := time.Now()
	d.Logger.InfoContext(ctx, "socket opened", "user", l.who.User, "key", l.who.KeyID, "session", l.id, "after", l.after, "from", l.from)
	err := l.follow(held)
	if cause := context.Cause(held); cause != nil {
		err = cause
	}
	d.Logger.InfoContext(ctx, "socket closed", "user", l.who.User, "session", l.id, "took", time.Since(begun), "reason", err)
	if ctx.Err() != nil || errors.Is(err, rest.ErrClosing) {
		return // it is gone, or will be with the server: told nothing, clients connect again by themselves
	}
	text, ours := parting(err)
	if !ours {
		d.Logger.ErrorContext(ctx, "cannot stream a conversation", "session", l.id, "error", err)
		l.socket.Cut("the conversation cannot be read") // the client comes back, and perhaps it can then
		return
	}
	if errors.Is(err, access.ErrRevoked) {
		l.socket.Discard()
	}
	last, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	if text != "" {
		_ = l.tell(last, text, "")
	} else {
		_ = l.socket.Offset(last, Offset(l.id, l.passed)+away) // written by this goroutine alone
	}
	l.socket.Disconnect(err.Error())
}

// parting is what a client is told that is disconnected; false if it should not be.
func parting(err error) (text string, ok bool) {
	switch {
	case errors.Is(err, errStopped): // it has seen the state
		return "", true
	case errors.Is(err, errDeleted):
		return "The conversation was deleted.", true
	case errors.Is(err, access.ErrRevoked):
		return "The key was revoked or has expired.", true
	}
	return "", false
}

// follow sends what is stored after the client's position, and what comes.
func (l *listener) follow(ctx context.Context) error {
	if l.problem != nil {
		if err := l.tell(ctx, l.problem.Text, l.problem.Code); err != nil {
			return err
		}
	}
	join, err := l.join(ctx)
	if err != nil {
		return err
	}
	for f, err := range l.api.Hub.Follow(ctx, l.id, l.after, live.FollowOptions{}) {
		switch {
		case err != nil:
			return err
		case f.Event == live.EventEnd:
			return errDeleted
		case f.Number == 0: // what is not stored is not in the dialect
			continue
		}
		if data, shown := join.Show(f.Number, f.Data); shown {
			if err := l.socket.EmitAt(ctx, Offset(l.id, f.Number), "oh_event", json.RawMessage(data)); err != nil {
				return err
			}
		}
		if l.pass(f.Number) {
			return errStopped
		}
	}
	return errDeleted
}

// tell sends what went wrong.
func (l *listener) tell(ctx context.Context, message, code string) error {
	return l.socket.Emit(ctx, "oh_event", json.RawMessage(v0.Problem(message, code)))
}

// join finds the last state among what the client missed. It looks from the end,
// where it is likely to be, in short stretches, since logs are read upwards.
func (l *listener) join(ctx context.Context) (v0.Join, error) {
	j := v0.Join{End: l.end}
	for last := l.end; last > l.after && j.State == 0; {
		from := max(l.after, last-128)
		for e, err := range l.api.Log.Read(ctx, l.id, from) {
			if err != nil {
				return j, err
			}
			if e.Number > last {
				break
			}
			f, err := v0.Encode(l.id, e)
			if err != nil {
				return j, err
			}
			if v0.TellsState(f.JSON) {
				j.State = e.Number
			}
		}
		last = from
	}
	return j, nil
}

// pass notes how far the client is, and reports whether that was the end.
func (l *listener) pass(number int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed = number
	return l.until > 0 && number >= l.until
}

func (l *listener) endAfter(number int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until = number; l.passed >= number {
		l.stop(errStopped)
	}
}
