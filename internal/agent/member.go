package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"deckhand/internal/agent/backlog"
	"deckhand/internal/cluster"
	"deckhand/internal/session"
)

// join makes the loop a member of the cluster: it holds a lease, keeps it, and
// hears what other members publish. leave undoes it, after all workers have ended.
func (l *Loop) join(ctx context.Context) (leave func(), err error) {
	stop, err := l.Wakes.Subscribe(l.Member, l.woken)
	if err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	if err := l.Leases.Hold(ctx, l.Member); err != nil && ctx.Err() == nil {
		stop()
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	var keeping sync.WaitGroup
	keep, end := context.WithCancel(context.WithoutCancel(ctx))
	if within := l.Leases.Duration() / 3; within > 0 {
		live, _ := l.Leases.Live(ctx) // known before the index is asked, so that none leaves unnoticed
		keeping.Go(func() { l.keepLease(keep, within, live) })
	}
	return func() {
		end()
		keeping.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
		defer cancel()
		if err := l.Leases.Release(ctx, l.Member); err != nil {
			l.Logger.Warn("the lease was not released; it ends by itself", "error", err)
		} else {
			l.Wakes.Publish(cluster.Wake{Kind: cluster.MemberLeft, From: l.Member})
		}
		stop()
	}, nil
}

// keepLease renews the lease, and looks for members that are not alive any more:
// their sessions may be taken over. It does so often, because that is how long a
// dead member is not noticed; each attempt may take as long as within.
func (l *Loop) keepLease(ctx context.Context, within time.Duration, known []string) {
	tick := time.NewTicker(within / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		live, err := l.renew(ctx, within)
		if err != nil {
			if ctx.Err() == nil {
				l.Logger.Warn("the lease was not renewed", "error", err)
			}
			continue
		}
		l.Admission.SetLiveServers(live)
		if slices.ContainsFunc(known, func(member string) bool { return !slices.Contains(live, member) }) {
			l.memberLeft()
		}
		known = live
	}
}

// renew extends the lease and returns the live members. An expired lease is taken again: the log
// shows which sessions other members have taken since.
func (l *Loop) renew(ctx context.Context, within time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := l.Leases.Renew(ctx, l.Member)
	if errors.Is(err, cluster.ErrExpired) {
		err = l.Leases.Hold(ctx, l.Member)
	}
	if err != nil {
		return nil, err
	}
	return l.Leases.Live(ctx)
}

// woken handles messages of other members. A session without a holder is left to the member that
// changed it, and to sweep.
func (l *Loop) woken(w cluster.Wake) {
	switch w.Kind {
	case cluster.MemberLeft:
		l.Admission.ServerEnded(w.From)
		l.memberLeft()
		return
	case cluster.Load:
		return
	}
	// The notification may be old: if the session waits here, the log shows whether another member has it.
	wanted := w.Kind == cluster.RowChanged && (w.Holder == l.Member || l.Admission.Waits(w.Session)) || w.Kind == cluster.Take && w.To == l.Member
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.grew(w.Session, w.Last):
		if w.Kind == cluster.Take && wanted { // the worker may be about to leave the session to another member
			l.working[w.Session].dirty.Store(true)
		}
	case wanted:
		l.enqueue(backlog.Entry{ID: w.Session, Owner: w.Owner, Last: w.Last, Urgent: true})
	}
}

// memberLeft has sweep look for sessions that a member has left behind.
func (l *Loop) memberLeft() {
	select {
	case l.memberGone <- struct{}{}:
	default:
	}
}

// takes claims the session, or refuses with ErrHeld because another member that
// is alive holds it. Who is alive is asked now, since a claim on an old answer
// could take a session from a member that joined since.
func (l *Loop) takes(ctx context.Context, w *worker, s session.State) ([]session.Payload, error) {
	w.holder = ""
	by := s.Holder()
	if by == l.Member {
		return s.Take(l.Member)
	}
	var live []string
	if by != "" {
		var err error
		if live, err = l.Leases.Live(ctx); err != nil {
			return nil, fmt.Errorf("list live members: %w", err)
		}
	}
	payloads, err := s.Take(l.Member, live...)
	if errors.Is(err, session.ErrHeld) {
		w.holder = by
	}
	if err == nil && l.MayTake != nil {
		err = l.MayTake(ctx, s)
	}
	return payloads, err
}

// retryReleased queues a session again that another member held, if that member
// left before the worker ended: sweep passed the session over then. As long as
// it is alive, it works on the session.
func (l *Loop) retryReleased(ctx context.Context, w *worker) {
	live, err := l.Leases.Live(ctx)
	if err != nil || slices.Contains(live, w.holder) {
		return
	}
	l.enqueueIdle(backlog.Entry{ID: w.id, Owner: w.owner})
}
