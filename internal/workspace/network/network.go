// Package network says how a conversation may reach the network.
package network

import (
	"context"

	"deckhand/internal/sandbox/egress"
	"deckhand/internal/session"
)

// Policy is how a conversation may reach the network by its own wish; "" is as
// the server says.
func Policy(st session.State) egress.Policy {
	if st.Egress.Mode == "" {
		return egress.Policy{Mode: egress.Open}
	}
	return egress.Policy{Mode: egress.Mode(st.Egress.Mode), Allow: st.Egress.Allow}
}

// PolicyOf is the policy that holds for a sandbox: the server's and its
// conversation's, whichever is stricter. A script of a repository that is not
// trusted reaches what is on an allowlist, and otherwise nothing.
func PolicyOf(sessions *session.Sessions, server egress.Policy) func(ctx context.Context, id string) (egress.Policy, error) {
	return func(ctx context.Context, id string) (egress.Policy, error) {
		// What is in memory may be old: another server may have changed it.
		st, err := sessions.Load(ctx, session.ID(id))
		if err != nil {
			return egress.Policy{Mode: egress.Off}, err
		}
		both := egress.Stricter(server, Policy(st))
		if st.Confined() && both.Mode == egress.Open {
			both = egress.Policy{Mode: egress.Off}
		}
		return both, nil
	}
}
