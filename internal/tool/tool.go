// Package tool is the port to what an agent can do: each tool is a folder
// below with its text for the model beside its code. What runs anything runs it
// in a sandbox, never on the machine of the server.
package tool

import (
	"context"
	"encoding/json"

	"deckhand/internal/sandbox"
)

// Spec is what the model is told of a tool.
type Spec struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments. The loop checks every call
	// against it before the tool sees it.
	Schema json.RawMessage
	// ReadOnly says that no call of it changes anything anywhere.
	ReadOnly bool
	// Harmless says that there is nothing to ask a person about: it only thinks,
	// plans or ends the turn.
	Harmless bool
	// Sandbox says that every call needs the sandbox: it is started when the model begins one.
	Sandbox bool
	// Wary says why a person should be asked about a call every time, whatever they
	// allowed before, and "" if that is not needed. It knows what no rule about
	// arguments can: whose conversation it is. It may be nil.
	Wary func(args json.RawMessage) string
}

// Box gives the conversation's sandbox, which is started if need be. A tool that
// does not need one does not ask for it.
type Box func(ctx context.Context) (*sandbox.Sandbox, error)

// Call is one use of a tool.
type Call struct {
	// ID is the same when the call is made again after a restart; the sandbox
	// then gives the result of the first one.
	ID string
	// Number is that of the event in the conversation's log that recorded the call.
	Number int64
	// Again says that the call may have been begun before, by a server that died
	// since. A tool that cannot find out what became of it answers Unknown.
	Again bool
	// Up says that the sandbox was started before this: without it, nothing can
	// have been begun in it. See Repeats.
	Up   bool
	Args json.RawMessage
	// Session and Owner are whose call it is.
	Session string
	Owner   string
	// Shell is the shell to use, "" for the conversation's own.
	Shell string
	// Previous are the Details of this tool's last successful result in the conversation.
	Previous json.RawMessage
	// Mask hides the owner's secrets in a text; may be nil. The result is masked anyway: this is for tools that show parts of
	// a text, since calls for small parts could show all of a secret.
	Mask func(string) string
	// Live takes output while it comes; may be nil.
	Live func([]byte)
}

// Repeats says that the sandbox may know this call already.
func (c Call) Repeats() bool { return c.Again && c.Up }

// Result is what a call gave.
type Result struct {
	Text string
	// Images are data: URLs for models that see.
	Images []string
	// Failed says that the tool could not do what was asked; the model learns from the text.
	Failed bool
	// Unknown means that it is not known whether it was done.
	Unknown bool
	// Ends says that the agent considers its task done.
	Ends bool
	// Follows means that the text begins where that of an earlier result ended, Continues that it goes on in a later one.
	Follows, Continues bool
	// Details are what a tool says beside its text, for clients.
	Details json.RawMessage
}

// Tool is something an agent can do.
type Tool interface {
	Spec() Spec
	// Run does the call. An error is not the model's business: the sandbox was
	// lost, or ctx ended.
	Run(ctx context.Context, box Box, call Call) (Result, error)
}
