package conversation

import (
	"context"
	"errors"
	"strings"

	"deckhand/api"
	"deckhand/internal/session"
)

// MaxDepth is how many conversations may stand above one that delegates.
const MaxDepth = 2

// Delegate is the command of an agent to have a task done in a conversation of its own, in the same workspace.
type Delegate struct {
	Parent session.State
	// Child is the id of the new conversation, the same when the command is sent again.
	Child session.ID
	Agent string
	Task  string
	// Reserve sets money aside for the child in the parent's log, unless that is done, and returns the parent after it.
	Reserve func(context.Context) (session.State, error)
}

// Delegate creates the child: it has the repository, the instructions and the tool servers of its parent, and may spend
// what Reserve set aside. Sent again after a crash, it uses the reservation and the child that are there: the reservation is
// stored first, so no child can spend money that its parent does not count.
func (s *Service) Delegate(ctx context.Context, d Delegate) error {
	p := d.Parent.Created
	switch {
	case strings.TrimSpace(d.Task) == "":
		return refuse(Invalid, api.CodeBadRequest, "inputs.task is required: describe the task.")
	case p.Depth >= MaxDepth:
		return refuse(Conflict, api.CodeConversationRefused, "Delegation is limited to two levels. Do the task in this conversation.")
	}
	if there, err := s.child(ctx, d); there || err != nil {
		return err
	}
	parent, err := d.Reserve(ctx)
	var over *session.BudgetError
	if errors.As(err, &over) {
		return refuse(Unmet, api.CodeBudget, "Nothing was delegated: "+over.Error()+".")
	}
	if err != nil {
		return err
	}
	title, err := s.firstWords(ctx, session.State{}, d.Parent.Owner, d.Task)
	if err != nil {
		return err
	}
	grant, granted := parent.Granted(d.Child)
	_, err = s.Sessions.Create(ctx, d.Child, session.Created{Owner: d.Parent.Owner, Trigger: TriggerDelegation, Repository: p.Repository, Branch: p.Branch, Provider: p.Provider,
		Instructions: p.Instructions, MCP: p.MCP, Parent: d.Parent.ID, Depth: p.Depth + 1, Agent: d.Agent, Grant: grant, Granted: granted}, &session.UserSaid{Text: d.Task}, title...)
	if errors.Is(err, session.ErrConflict) { // another delivery was faster
		_, err = s.child(ctx, d)
	}
	return err
}

// child is true if an earlier delivery created the child.
func (s *Service) child(ctx context.Context, d Delegate) (bool, error) {
	st, err := s.Sessions.Load(ctx, d.Child)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case st.Created.Parent != d.Parent.ID: // users may choose ids
		return false, refuse(Conflict, api.CodeConversationTaken, "Nothing was delegated: the ID of the new conversation is already in use. Delegate again.")
	}
	return true, nil
}
