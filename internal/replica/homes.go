package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"deckhand/internal/cluster"
	"deckhand/internal/datadir"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// Homes knows on which machine the workspace of a conversation is.
type Homes struct {
	machine string // this one
	// first has the workspaces that were made before machines were recorded.
	first string
}

// firstMachine is the name under which the database keeps the machine that used it first.
const firstMachine = "first_machine"

func (h *Homes) open(ctx context.Context, db datadir.Meta, machine string) error {
	first, err := db.SetMetaOnce(ctx, firstMachine, []byte(machine))
	h.machine, h.first = machine, string(first)
	return err
}

// Machine is the name of this machine, "" for a server that is alone.
func (r *Replica) Machine() string { return r.homes.machine }

// of is the machine with the workspace of a conversation, "" if there is none yet. The workspace of one that was
// delegated is that of the conversation above.
func (h *Homes) of(st session.State) string {
	if len(st.Handle) > 0 {
		var recorded struct {
			Machine string `json:"machine"`
		}
		if json.Unmarshal(st.Handle, &recorded) == nil && recorded.Machine != "" {
			return recorded.Machine
		}
		return h.first
	}
	if st.Created.Forked != nil { // the copy is where the original is, and was claimed there
		return cluster.MachineOf(st.ClaimedBy)
	}
	return ""
}

// root loads the conversation whose workspace one has.
func (r *Replica) root(ctx context.Context, load func(context.Context, session.ID) (session.State, error), st session.State) (session.State, error) {
	for depth := 0; st.Created.Parent != "" && depth < 100; depth++ {
		above, err := load(ctx, st.Created.Parent)
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

// Here returns an error for people if the workspace of a conversation is on another machine. Its request was not passed
// on, because no server runs there.
func (r *Replica) Here(st session.State) error {
	if r.Alone() {
		return nil
	}
	home := r.homes.of(st)
	if home == "" || home == r.homes.machine {
		return nil
	}
	return &sandbox.Unavailable{Reason: r.missing(context.Background(), home)}
}

// Spec returns a function that refuses a sandbox to a conversation that has no workspace and on which no server works:
// one that was made here would not be found by the server that works on it later.
func (r *Replica) Spec(of func(context.Context, session.State) (sandbox.Spec, error)) func(context.Context, session.State) (sandbox.Spec, error) {
	if r.Alone() {
		return of
	}
	return func(ctx context.Context, st session.State) (sandbox.Spec, error) {
		if r.homes.of(st) == "" && st.Claim == 0 {
			return sandbox.Spec{}, &sandbox.Unavailable{Reason: "This conversation has no workspace yet. Start the conversation, then try again."}
		}
		return of(ctx, st)
	}
}

// missing says that a machine is gone.
func (r *Replica) missing(ctx context.Context, machine string) string {
	all, _ := r.members(ctx)
	m, _ := cluster.On(all, machine)
	return fmt.Sprintf("The workspace of this conversation is on the machine %s, where no server runs at the moment. The conversation continues when the server there is started again.", m.Host)
}

// Claimer decides which server works on a conversation.
type Claimer struct {
	*Replica
	Sessions *session.Sessions
	Log      session.Log
	// Load is how many conversations this server works on or has waiting.
	Load func() int

	gone chan gone
}

// gone is a conversation whose machine is missing.
type gone struct {
	st      session.State
	machine string
}

// NewClaimer makes a Claimer. Run does its background work.
func NewClaimer(r *Replica, sessions *session.Sessions, log session.Log, load func() int) *Claimer {
	return &Claimer{Replica: r, Sessions: sessions, Log: log, Load: load, gone: make(chan gone, 256)}
}

// MayTake returns nil if this server may claim a conversation that no other live one holds. Otherwise it asks the
// right one, if it runs, and the error is session.ErrRefused.
func (c *Claimer) MayTake(ctx context.Context, st session.State) error {
	if c.Alone() {
		return nil
	}
	top, err := c.root(ctx, c.Sessions.Load, st)
	if err != nil {
		return err
	}
	all, err := c.members(ctx)
	if err != nil {
		return err
	}
	home := c.homes.of(top)
	if home == "" && top.ID != st.ID { // one that was delegated works where the one above does
		home = cluster.MachineOf(top.ClaimedBy)
	}
	if home != "" && home != c.homes.machine {
		m, live := cluster.On(all, home)
		if !live { // the answer may be old
			if all, err = c.membersNow(ctx); err != nil {
				return err
			}
			m, live = cluster.On(all, home)
		}
		if live {
			c.ask(m.Name, st)
			return fmt.Errorf("%w: its workspace is on the machine %s", session.ErrRefused, m.Host)
		}
		select {
		case c.gone <- gone{st, home}:
		default: // it is looked at again
		}
		return fmt.Errorf("%w: its workspace is on the machine %s, which is gone", session.ErrRefused, m.Host)
	}
	if home == "" && !c.loads.accepts(st.ID) {
		if to := c.loads.lightest(all, c.Member, c.Load()); to != "" && to != c.Member {
			c.ask(to, st)
			return fmt.Errorf("%w: a server with less to do was asked", session.ErrRefused)
		}
	}
	if !c.Works() {
		return fmt.Errorf("%w: this server does not run agents", session.ErrRefused)
	}
	return nil
}

// ask asks a member to work on a conversation.
func (c *Claimer) ask(member string, st session.State) {
	c.Publish(cluster.Wake{Kind: cluster.Take, From: c.Member, To: member, Session: st.ID, Last: st.Last, Owner: st.Owner})
}

// missingID marks the note about a machine that is gone.
const missingID = "STATUS$ERROR_RUNTIME_DISCONNECTED"

// noteMissing records that the machine of a conversation is gone, unless that is the last thing that was recorded.
func (c *Claimer) noteMissing(ctx context.Context, st session.State, machine string) error {
	if st.Claim == 0 {
		return nil
	}
	note := session.Noted{ID: missingID, Error: true, Message: c.missing(ctx, machine)}
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
		return []session.Payload{note}, nil
	})
	if errors.Is(err, session.ErrDeleted) {
		return nil
	}
	return err
}
