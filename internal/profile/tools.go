package profile

import (
	"deckhand/internal/agent"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	_ "deckhand/internal/tool/toolbox" // lists the tools
)

// The agent profiles.
const (
	codeAct  = "CodeActAgent"
	readOnly = "ReadOnlyAgent"
	browsing = "BrowsingAgent"
)

// offered is a tool of this server, and what is known of it.
type offered struct {
	tool.Descriptor
	tool tool.Tool
}

// tools are those of this server, in the order in which models are told of them.
type tools []offered

func newTools(s tool.Server) (out tools) {
	for _, d := range tool.All() {
		if d.Open != nil {
			out = append(out, offered{d, d.Open(s)})
		}
	}
	return out
}

// of are the tools of an agent, in the order in which the model is told of them.
// requests are those that work where the repository lives.
func (t tools) of(name string, c tool.Conversation, requests []tool.Tool) []tool.Tool {
	var out []tool.Tool
	for _, o := range t {
		if one := o.forAgent(name); one != nil && (o.Offered == nil || o.Offered(c)) {
			out = append(out, one)
		}
	}
	for _, r := range requests {
		if name == codeAct || name == readOnly && r.Spec().ReadOnly {
			out = append(out, r)
		}
	}
	return out
}

// forAgent is the tool as an agent gets it; nil if it does not.
func (o offered) forAgent(name string) tool.Tool {
	spec := o.tool.Spec()
	switch {
	case name == readOnly && o.Viewer != nil:
		return o.Viewer
	case name == readOnly && !spec.ReadOnly && !spec.Harmless, name == browsing && !o.Browses:
		return nil
	}
	return o.tool
}

// conversationOf is what decides which tools a conversation has.
func conversationOf(st session.State, searches bool) tool.Conversation {
	return tool.Conversation{Owner: st.Owner, Searches: searches, Delegates: st.Created.Depth < agent.MaxDepth}
}

func (t tools) close() {
	for _, o := range t {
		if k, ok := o.tool.(tool.Keeper); ok {
			k.Close()
		}
	}
}

func (t tools) forget(id session.ID) {
	for _, o := range t {
		if k, ok := o.tool.(tool.Keeper); ok {
			k.Forget(string(id))
		}
	}
}
