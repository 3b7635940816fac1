package tool

import (
	"context"
	"encoding/json"
	"net/http"
	"path"

	"deckhand/internal/risk"
	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/v0/form"
)

// Descriptor is all that code outside of a tool's folder knows of it, apart from its Spec. Each
// tool declares its own there, and package toolbox lists them. No other code compares names:
// what depends on the tool is a field here.
//
// It belongs to the name, not to a conversation: calls in old logs are shown by it too.
type Descriptor struct {
	// Name is what models, logs and patterns call the tool.
	Name string
	// Rate says how dangerous a call is, with a sentence for the person who is asked.
	Rate func(args json.RawMessage) (risk.Rating, string)
	// RateIn is Rate for a tool whose calls depend on the folder in which the call before them left the shell: below the
	// workspace, or the whole path of a folder outside. It is nil for others.
	RateIn func(folder string, args json.RawMessage) (risk.Rating, string)
	// Patterns are those that allow a part of its calls for good; nil if a pattern is
	// the name of the tool and allows every call.
	Patterns *Patterns
	// Legacy is how legacy clients see it; nil for the form of tool servers' tools.
	Legacy *form.Form
	// Display is how people see it, in the terminal, on the page and when they are asked.
	Display Display

	// Open makes the tool, once for a server. It is nil for a tool that is made for each
	// conversation elsewhere, or that is retired.
	Open func(Server) Tool
	// Viewer is the tool for agents that change nothing, if it is another one than Open
	// makes. Without it they get the tool if its Spec is ReadOnly or Harmless.
	Viewer Tool
	// Browses says that an agent that only browses has it too.
	Browses bool
	// Offered says whether a conversation has it; nil if every conversation does.
	Offered func(Conversation) bool

	// Retired says that only old logs and recordings have calls of it. Instead makes a
	// recorded action a call of the tool that does it today; nil if the action belongs to
	// that tool itself.
	Retired bool
	Instead *Instead
}

// Instead is what is called today for a retired tool.
type Instead struct {
	Tool string
	Read func(*form.Writer, form.Recorded) error
}

// Server is what tools are made with. A tool takes what it needs.
type Server struct {
	// Outward is the way out of the sandboxes.
	Outward sandbox.Outward
	// Client reaches services of others, under the policy for that.
	Client *http.Client
	// SearchURL is the address of the search service, and SearchKey the key of a user for it.
	SearchURL string
	SearchKey func(ctx context.Context, owner string) (string, error)
	// Skill gives the text of a skill, or of one of its files if file is not empty.
	// What is not there is fs.ErrNotExist, in words for the agent.
	Skill func(ctx context.Context, session, owner, name, file string) (string, error)
}

// Conversation is what decides whether a conversation has a tool.
type Conversation struct {
	// Owner is the user whose it is.
	Owner string
	// Searches says that its owner has a key for the search service.
	Searches bool
	// Delegates says that it may start conversations of its own.
	Delegates bool
}

// Keeper is a Tool that keeps something for each conversation.
type Keeper interface {
	// Forget drops what it keeps for a conversation. It may be called twice.
	Forget(session string)
	// Close drops everything. Nothing is called after it.
	Close()
}

var (
	// registered are the tools, in the order in which models are told of them.
	registered []Descriptor
	byName     = map[string]int{}
)

// Register adds a tool. It is called before anything is looked up, by package toolbox.
func Register(d Descriptor) {
	if _, taken := Find(d.Name); taken || !toolName.MatchString(d.Name) {
		panic("the tool name " + d.Name + " is taken or not a name")
	}
	if d.Rate == nil {
		panic("the tool " + d.Name + " does not say how dangerous its calls are")
	}
	secret.AddCommon(d.Name) // models and clients go by it
	byName[d.Name] = len(registered)
	registered = append(registered, d)
}

// All are the tools, in the order in which models are told of them.
func All() []Descriptor { return registered }

// Names are the names of all tools. No foreign tool may have one of them: clients would take it
// for a built-in tool.
func Names() []string {
	names := make([]string, len(registered))
	for i, d := range registered {
		names[i] = d.Name
	}
	return names
}

// Find returns the descriptor of a tool. A tool of a tool server has none.
func Find(name string) (Descriptor, bool) {
	i, ok := byName[name]
	if !ok {
		return Descriptor{Name: name}, false
	}
	return registered[i], true
}

// Describe is Find for what a missing descriptor changes nothing.
func Describe(name string) Descriptor {
	d, _ := Find(name)
	return d
}

// ForAction returns the tool that a legacy action, or an observation of that name, is a call of.
func ForAction(action string) (Descriptor, form.Action, bool) {
	for _, d := range registered {
		if d.Legacy == nil {
			continue
		}
		if a, ok := d.Legacy.Actions[action]; ok {
			return d, a, true
		}
	}
	return Descriptor{}, form.Action{}, false
}

// Rate rates a call of a tool by its rules. The reason is a sentence for the user who approves.
// readOnly is what the tool declares; it is ignored for tools of MCP servers.
func Rate(name string, readOnly bool, args json.RawMessage) (risk.Rating, string) {
	d, ours := Find(name)
	switch {
	case ours:
		return d.Rate(args)
	case readOnly:
		return risk.Medium, "This tool belongs to an MCP server. It claims to be read-only, but its arguments leave the conversation."
	}
	return risk.Unknown, "This tool belongs to an MCP server, and its effect is unknown."
}

// RateIn is Rate for a call that is made in a folder.
func RateIn(folder, name string, readOnly bool, args json.RawMessage) (risk.Rating, string) {
	if d := Describe(name); d.RateIn != nil {
		return d.RateIn(folder, args)
	}
	return Rate(name, readOnly, args)
}

// Place says why patterns do not allow a call in a folder, "" if they may: they were given for calls in the workspace, and
// the same call does something else in another folder.
func Place(folder, name string, args json.RawMessage) string {
	d := Describe(name)
	if d.RateIn == nil || folder == "" {
		return ""
	}
	if path.IsAbs(folder) {
		return "The shell is in " + Path([]byte(folder)) + ", outside the workspace."
	}
	here, _ := d.Rate(args)
	if there, _ := d.RateIn(folder, args); there.Worse(here) {
		return "The shell is in the folder " + Path([]byte(folder)) + "."
	}
	return ""
}

// Unreadable reports whether the rules could not parse a call, such as a command whose name is only known at run time.
// Tools of MCP servers have no rules.
func Unreadable(name string, r risk.Rating) bool {
	_, ours := Find(name)
	return ours && r == risk.Unknown
}
