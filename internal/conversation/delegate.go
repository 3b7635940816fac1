package conversation

import (
	"strings"

	"deckhand/api"
	"deckhand/internal/session"
)

// MaxDepth is how many conversations may stand above one that delegates.
const MaxDepth = 2

// Delegate is the command of an agent to have a task done in a conversation of its own, in the same workspace.
type Delegate struct {
	Parent session.State
	Agent  string
	Task   string
}

// Check refuses a task that cannot be delegated.
func (d Delegate) Check() error {
	if strings.TrimSpace(d.Task) == "" {
		return refuse(Invalid, api.CodeBadRequest, "inputs.task is required: describe the task.")
	}
	if d.Parent.Created.Depth >= MaxDepth {
		return refuse(Conflict, api.CodeConversationRefused, "A delegated conversation cannot delegate. Do the task here.")
	}
	return nil
}

// Created is the new conversation: it has the repository, the instructions and the tool servers of its parent, and may
// spend what the parent set aside for it.
func (d Delegate) Created(grant session.Money, granted bool) session.Created {
	p := d.Parent.Created
	return session.Created{Owner: d.Parent.Owner, Trigger: TriggerDelegation, Repository: p.Repository, Branch: p.Branch, Provider: p.Provider,
		Instructions: p.Instructions, MCP: p.MCP, Parent: d.Parent.ID, Depth: p.Depth + 1, Agent: d.Agent, Grant: grant, Granted: granted}
}
