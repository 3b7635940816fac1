package replica

import (
	"context"
	"net/http"
	"sync"

	"deckhand/internal/access"
	"deckhand/internal/admission"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Parts are the parts of a server that deal with other servers. Join creates them.
type Parts struct {
	*Replica
	*Claimer
	*Deltas
	Relay
	rates *access.Gate
}

// Join creates the parts of this server. gate is its queue, rates has its rate limits, and load returns how many conversations it
// works on or has queued.
func (r *Replica) Join(sessions *session.Sessions, log session.Log, index session.Index, hub Hub, gate *admission.Gate, rates *access.Gate, load func() int) *Parts {
	r.sessions = sessions
	p := &Parts{Replica: r, Claimer: NewClaimer(r, sessions, log, gate, load), Deltas: NewDeltas(r, hub), Relay: Relay{Replica: r, Sessions: sessions, Index: index}, rates: rates}
	if !r.Alone() {
		r.peers.Sessions = sessions
		gate.Join(r.Member, r.Works())
		rates.Shared = r.Shared()
		rates.ShareLimits()
	}
	return p
}

// Tell sets what is notified of changes that other servers make.
func (p *Parts) Tell(keeper *workspace.Keeper, lists Lists, observers ...session.Observer) {
	p.Observers = observers
	p.Watchers = []Watcher{
		{keeper, func(id session.ID, _ string) bool { return keeper.Keeps(id) }},
		{lists, func(_ session.ID, owner string) bool { return lists.Follows(owner) }},
	}
}

// Lists are notified of changed rows, and know whose conversations are shown.
type Lists interface {
	session.Watcher
	Follows(owner string) bool
}

// Run does the background work until ctx ends. handler answers requests that other servers forward, and has reports
// whether a port of a local sandbox has this label.
func (p *Parts) Run(ctx context.Context, handler http.Handler, has func(ctx context.Context, label string, port int) bool) error {
	if p.Alone() {
		return nil
	}
	p.peers.Ports = has
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var tasks sync.WaitGroup
	for _, run := range []func(context.Context) error{p.Claimer.Run, p.shareQueue, p.shareRates, p.announce, p.Deltas.Run, p.Relay.Run, func(ctx context.Context) error { return p.peers.Serve(ctx, handler) }} {
		tasks.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	tasks.Wait()
	if err := context.Cause(ctx); err != nil && err != context.Canceled {
		return err
	}
	return nil
}
