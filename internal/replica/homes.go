package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"deckhand/internal/admission"
	"deckhand/internal/cluster"
	"deckhand/internal/datadir"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace/handle"
)

// Homes knows where the workspace of a conversation is.
type Homes struct {
	machine string // this one
	// first is the machine of workspaces that were created before machines were recorded.
	first string
}

// firstMachine is the key in the database of the first machine that used it.
const firstMachine = "first_machine"

func (h *Homes) open(ctx context.Context, db datadir.Meta, machine string) error {
	first, err := db.SetMetaOnce(ctx, firstMachine, []byte(machine))
	h.machine, h.first = machine, string(first)
	return err
}

// Machine returns the name of this machine, "" for a single server.
func (r *Replica) Machine() string { return r.homes.machine }

// home is where a workspace is: on a container engine, if engine has its ID, and otherwise on a machine. With an engine, machine is the
// one whose server recorded it. Both are "" if there is no workspace yet.
type home struct{ machine, engine string }

// of returns where the workspace of a conversation is. The workspace of one that was delegated is that of the conversation above.
func (h *Homes) of(st session.State) home {
	if len(st.Handle) > 0 {
		var recorded handle.Stored
		if json.Unmarshal(st.Handle, &recorded) == nil && recorded.Machine != "" {
			return home{recorded.Machine, recorded.Engine}
		}
		return home{h.first, recorded.Engine}
	}
	if st.Created.Machine != "" {
		return home{machine: st.Created.Machine}
	}
	if st.Created.Forked != nil { // the copy is where the original is, and was claimed there
		return home{machine: cluster.MachineOf(st.ClaimedBy)}
	}
	return home{}
}

// home returns where the workspace of a conversation is. A copy is on the engine of its original.
func (r *Replica) home(ctx context.Context, st session.State) home {
	at := r.homes.of(st)
	for depth := 0; len(st.Handle) == 0 && st.Created.Forked != nil && depth < 100; depth++ {
		above, err := r.load(ctx, st.Created.Forked.From)
		if err != nil {
			return at
		}
		st = above
		at.engine = r.homes.of(st).engine
	}
	return at
}

// server returns the live member that is to serve the workspace of a conversation. With a container engine, it is the one that works on the
// conversation, or one that all agree on among those that reach the engine. If none does, or without an engine, it is the one on the machine.
func (h home) server(all []cluster.Info, st session.State) (m cluster.Info, live bool) {
	if h.engine != "" {
		able := cluster.Reaching(all, h.engine)
		for _, m := range able {
			if m.Name == st.ClaimedBy {
				return m, true
			}
		}
		if len(able) > 0 {
			return cluster.Pick(able, st.ID), true
		}
	}
	return cluster.On(all, h.machine)
}

// root loads the conversation whose workspace one has.
func (r *Replica) root(ctx context.Context, st session.State) (session.State, error) {
	for depth := 0; st.Created.Parent != "" && depth < 100; depth++ {
		above, err := r.load(ctx, st.Created.Parent)
		if errors.Is(err, session.ErrNotFound) {
			return st, nil
		}
		if err != nil {
			return st, err
		}
		st = above
	}
	return st, nil
}

// Here returns an error for people if another server is to serve the workspace of a conversation. Its request was not passed on, because
// that one does not run, or has just ended or begun.
func (r *Replica) Here(st session.State) error {
	if r.Alone() {
		return nil
	}
	ctx := context.Background()
	at := r.home(ctx, st)
	if at == (home{}) || at.engine == "" && at.machine == r.homes.machine || at.engine != "" && st.ClaimedBy == r.Member {
		return nil
	}
	all, err := r.members(ctx)
	if err != nil {
		return err
	}
	switch m, live := at.server(all, st); {
	case live && m.Machine == r.homes.machine:
		return nil
	case live:
		return &sandbox.Unavailable{Cause: handle.ErrElsewhere, Reason: fmt.Sprintf("The workspace of this conversation is in use by the server on %s. Try again in a few seconds.", m.Host)}
	}
	if r.held.unsure() > 0 {
		return &sandbox.Unavailable{Cause: handle.ErrElsewhere, Reason: "This server has just connected to the database, and the server with the workspace of this conversation has not yet. Try again in a few seconds."}
	}
	return &sandbox.Unavailable{Cause: handle.ErrElsewhere, Reason: r.missing(ctx, at)}
}

// Spec wraps of with a check that refuses a sandbox to a conversation without a workspace that no server has claimed: the
// server that claims it later would not find a sandbox created here.
func (r *Replica) Spec(of func(context.Context, session.State) (sandbox.Spec, error)) func(context.Context, session.State) (sandbox.Spec, error) {
	if r.Alone() {
		return of
	}
	return func(ctx context.Context, st session.State) (sandbox.Spec, error) {
		if r.homes.of(st) == (home{}) && st.Claim == 0 {
			return sandbox.Spec{}, &sandbox.Unavailable{Reason: "This conversation has no workspace yet. Start the conversation, then try again."}
		}
		return of(ctx, st)
	}
}

// missing returns the text for users if no server that runs agents can use a workspace.
func (r *Replica) missing(ctx context.Context, at home) string {
	all, _ := r.members(ctx)
	m, live := cluster.On(all, at.machine)
	switch {
	case at.engine != "" && len(cluster.Reaching(all, at.engine)) > 0:
		return "The workspace of this conversation is on a container engine that only servers without the role worker can reach. The conversation continues when a server with --roles api,worker reaches the engine."
	case at.engine != "":
		return "The workspace of this conversation is on a container engine that no server reaches at the moment. The server that used it last is " + m.Place() + ". The conversation continues when a server reaches the engine."
	case live:
		return "The workspace of this conversation is " + m.Place() + ". The server with this data directory does not run agents. The conversation continues when it is started with --roles api,worker."
	}
	return "The workspace of this conversation is " + m.Place() + ". The server with this data directory is not running. The conversation continues when it is started again."
}

// Claimer decides which server works on a conversation.
type Claimer struct {
	*Replica
	Sessions *session.Sessions
	Log      session.Log
	// Load returns how many conversations this server works on or has queued. Gate is its queue.
	Load func() int
	Gate *admission.Gate

	gone chan gone
	// freed has a value when another server has free slots.
	freed chan struct{}
}

// gone is a conversation whose machine or engine is missing.
type gone struct {
	st session.State
	at home
	// ended is true if no server has a lease that could use the workspace, and false if one has, but does not run agents.
	ended bool
}

// NewClaimer returns a Claimer. Run does its background work.
func NewClaimer(r *Replica, sessions *session.Sessions, log session.Log, gate *admission.Gate, load func() int) *Claimer {
	return &Claimer{Replica: r, Sessions: sessions, Log: log, Load: load, Gate: gate, gone: make(chan gone, 256), freed: make(chan struct{}, 1)}
}

// MayTake returns nil if this server may claim a conversation that no live server holds. Otherwise it asks the server that
// should take it, if that one runs, and returns session.ErrRefused.
func (c *Claimer) MayTake(ctx context.Context, st session.State) error {
	if c.Alone() {
		return nil
	}
	top, err := c.root(ctx, st)
	if err != nil {
		return err
	}
	all, err := c.members(ctx)
	if err != nil {
		return err
	}
	at := c.home(ctx, top)
	if at == (home{}) && top.ID != st.ID { // one that was delegated works where the one above does
		at.machine = cluster.MachineOf(top.ClaimedBy)
	}
	switch {
	case at == (home{}):
		if !c.loads.accepts(st.ID) {
			full, first := c.Gate.Need(st.ID, st.Owner)
			if to := c.loads.lightest(all, c.Member, c.Load(), full, first); to != "" && to != c.Member {
				c.ask(to, st)
				return fmt.Errorf("%w: a server with less to do was asked", session.ErrRefused)
			}
		}
	case at.engine != "" || at.machine != c.homes.machine:
		m, live := at.server(all, top)
		if !live { // the answer may be old
			if all, err = c.membersNow(ctx); err != nil {
				return err
			}
			m, live = at.server(all, top)
		}
		if !live || !m.Worker {
			c.noteGone(gone{st: st, at: at, ended: !live})
			return fmt.Errorf("%w: no server that runs agents can use its workspace", session.ErrRefused)
		}
		asked := m.Name != top.ClaimedBy && c.loads.accepts(st.ID) && // by one that knows the members better
			slices.ContainsFunc(cluster.Reaching(all, at.engine), func(m cluster.Info) bool { return m.Name == c.Member })
		if m.Machine != c.homes.machine && !asked {
			c.ask(m.Name, st)
			return fmt.Errorf("%w: its workspace is used by the server on the machine %s", session.ErrRefused, m.Host)
		}
	}
	if !c.Works() {
		if at != (home{}) {
			c.noteGone(gone{st: st, at: at})
		}
		return fmt.Errorf("%w: this server does not run agents", session.ErrRefused)
	}
	return nil
}

// noteGone makes Run record that no server can continue a conversation.
func (c *Claimer) noteGone(g gone) {
	select {
	case c.gone <- g:
	default: // it is checked again later
	}
}

// checkGone checks conversations again whose servers had no lease at a time when they might have been alive.
func (c *Claimer) checkGone(ctx context.Context, ids map[session.ID]bool) {
	for id := range ids {
		if st, err := c.Sessions.Load(ctx, id); err == nil && !st.Deleted && st.Wants() {
			_ = c.MayTake(ctx, st) // asks a server that is alive now, or calls noteGone
		}
	}
}

// ask asks a member to work on a conversation.
func (c *Claimer) ask(member string, st session.State) {
	c.Publish(cluster.Wake{Kind: cluster.Take, From: c.Member, To: member, Session: st.ID, Last: st.Last, Owner: st.Owner})
}

// missingID is the ID of the note that no server runs on the machine of a conversation.
const missingID = "STATUS$ERROR_RUNTIME_DISCONNECTED"

// noteMissing records that the workspace of a conversation cannot be used, unless that is the last thing that was recorded.
func (c *Claimer) noteMissing(ctx context.Context, st session.State, at home) error {
	if st.Claim == 0 && st.Created.Machine == "" {
		return nil
	}
	note := session.Noted{ID: missingID, Error: true, Message: c.missing(ctx, at)}
	for e, err := range c.Log.Read(ctx, st.ID, st.Last-1) {
		if err != nil {
			return err
		}
		if e.Payload == session.Payload(note) {
			return nil
		}
	}
	_, err := c.Sessions.Update(ctx, st.ID, func(s session.State) ([]session.Payload, error) {
		if s.Deleted || !s.Wants() || s.Last != st.Last { // another server may have noted it
			return nil, nil
		}
		if s.Claim == 0 {
			return []session.Payload{note}, nil
		}
		return []session.Payload{session.WorkspaceStep{Step: string(sandbox.Missing)}, note}, nil
	})
	if errors.Is(err, session.ErrDeleted) {
		return nil
	}
	return err
}
