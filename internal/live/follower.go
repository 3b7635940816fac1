package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"deckhand/internal/session"
)

// Bounds of a page. A reader takes pages from the log and closes the read
// before it writes to its client, so that a client that does not read never
// holds up the database.
const (
	pageItems = 128
	pageBytes = 256 << 10
)

// idleCheck is how long a reader without heartbeats waits before it looks whether a wake-up was lost.
const idleCheck = 15 * time.Second

// errStop says that the one who ranges over Follow has had enough.
var errStop = errors.New("stopped by the reader")

// follower is one reader. It belongs to one goroutine.
type follower struct {
	hub    *Hub
	feed   *feed
	cursor int64 // the last event that was taken
	// verified is false while it is only the client's word that the event at cursor exists.
	verified bool
	round    int64 // the feed's round that was taken last; guarded by feed.mu

	// settled is the last model call whose end was taken: nothing more of it is shown.
	settled string
	call    string // the open call of which offset bytes were taken
	offset  int

	place   *Frame // the place in the queue that was given last; nil if none
	early   []item // taken by begin
	changed <-chan struct{}
}

// sink is where frames go.
type sink interface {
	frame(Frame) error
	flush() error // everything that is there now was given to frame
}

// FollowOptions are how to follow.
type FollowOptions struct {
	// Heartbeat makes Follow yield an EventPing when nothing was yielded for so long; 0 is never.
	Heartbeat time.Duration
	// Format chooses an encoder of the Hub.
	Format Format
}

// Follow yields the frames of the session's events after the given number,
// each once and in order, and goes on with new ones as they come; in between,
// deltas of the answer that is being written. It ends after EventEnd, or with
// one error: the context's cause, ErrAhead, or what the log or the encoder said.
func (h *Hub) Follow(ctx context.Context, id session.ID, after int64, o FollowOptions) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		f := h.join(id, o.Format, after)
		defer h.leave(f)
		if err := f.run(ctx, o.Heartbeat, yielder(yield)); err != nil && !errors.Is(err, errStop) {
			yield(Frame{}, err)
		}
	}
}

// yielder is the sink of Follow.
type yielder func(Frame, error) bool

func (y yielder) frame(f Frame) error {
	if !y(f, nil) {
		return errStop
	}
	return nil
}
func (yielder) flush() error { return nil }

// begin takes what there is already, so that what is wrong is known before anything is sent.
func (f *follower) begin(ctx context.Context) (err error) {
	f.early, err = f.next(ctx)
	return err
}

// run gives the sink everything, until the session is deleted (nil) or something ends it.
func (f *follower) run(ctx context.Context, heartbeat time.Duration, out sink) error {
	idle := heartbeat
	if idle <= 0 {
		idle = idleCheck
	}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		items, err := f.next(ctx)
		if err != nil {
			return err
		}
		sent, ended, err := f.give(items, out)
		if err == nil && len(items) == 0 { // the stored goes first: it may be the end of what is being written
			if sent, err = f.giveDelta(out); err == nil {
				var moved bool
				moved, err = f.givePlace(out)
				sent = sent || moved
			}
		}
		if err == nil && sent {
			err = out.flush()
			timer.Reset(idle)
		}
		if err != nil || ended {
			return err
		}
		if len(items) > 0 {
			continue // there may be more
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			f.feed.recheck()
			if heartbeat > 0 {
				if err := errors.Join(out.frame(Frame{Event: EventPing}), out.flush()); err != nil {
					return err
				}
			}
			timer.Reset(idle)
		}
	}
}

// give hands over stored events.
func (f *follower) give(items []item, out sink) (sent, ended bool, err error) {
	for _, it := range items {
		if it.settles != "" {
			f.settled = it.settles
		}
		if it.shown {
			if err := out.frame(it.frame); err != nil {
				return sent, false, err
			}
			sent = true
		}
		if it.end {
			return true, true, out.frame(Frame{Number: it.number, Event: EventEnd, Data: []byte("{}")})
		}
	}
	return sent, false, nil
}

// giveDelta hands over what was written of the open answer since the last time.
func (f *follower) giveDelta(out sink) (bool, error) {
	frame, ok := f.hub.open.since(f)
	if !ok {
		return false, nil
	}
	return true, out.frame(frame)
}

// next takes stored events without waiting; none if there are no new ones.
// Afterwards changed is closed as soon as there may be.
func (f *follower) next(ctx context.Context) ([]item, error) {
	if items := f.early; len(items) > 0 {
		f.early = nil
		return items, nil
	}
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		v := f.feed.view(f)
		if f.changed = v.changed; v.err != nil || !v.behind {
			return v.items, v.err
		}
		before := f.cursor
		page, atEnd, err := f.page(ctx)
		if err != nil {
			return nil, err
		}
		if atEnd {
			if f.feed.base(f.cursor); f.cursor == before && f.behind() {
				return nil, fmt.Errorf("%w: it has nothing after event %d, and had", session.ErrCorrupt, before)
			}
		}
		if len(page) > 0 {
			return page, nil
		}
	}
}

// behind reports whether the feed's tail begins after the cursor.
func (f *follower) behind() bool {
	f.feed.mu.Lock()
	defer f.feed.mu.Unlock()
	return f.cursor < f.feed.floor
}

// page reads the log from the cursor on, at most so much as fits in a page.
func (f *follower) page(ctx context.Context) (page []item, atEnd bool, err error) {
	from, size := f.cursor, 0
	if !f.verified {
		from-- // the event at the cursor must be there
	}
	for e, err := range f.hub.log.Read(ctx, f.feed.id, from) {
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, false, err
		}
		known := !f.verified && e.Number == f.cursor
		f.verified, f.cursor = true, e.Number
		if _, deleted := e.Payload.(session.Deleted); known && deleted {
			return []item{{number: e.Number, end: true}}, true, nil
		} else if known {
			continue
		}
		it, needed, err := f.feed.item(e)
		if err != nil {
			return nil, false, err
		}
		if needed {
			page, size = append(page, it), size+len(it.frame.Data)
		}
		if len(page) >= pageItems || size >= pageBytes {
			return page, false, nil
		}
	}
	if !f.verified {
		return nil, false, fmt.Errorf("%w: event %d", ErrAhead, f.cursor)
	}
	return page, true, nil
}
