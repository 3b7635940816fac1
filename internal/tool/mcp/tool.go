package mcp

import (
	"context"
	"fmt"

	"deckhand/internal/tool"
)

// foreign is a tool of a server. It implements tool.Tool.
type foreign struct {
	server *server
	offer  offer
	name   string
}

// Spec implements tool.Tool. A server's word that a tool only reads is not
// taken: ReadOnly stays false, so that a person can be asked.
func (f *foreign) Spec() tool.Spec {
	return tool.Spec{Name: f.name, Description: f.offer.description, Schema: f.offer.schema}
}

// Run implements tool.Tool.
func (f *foreign) Run(ctx context.Context, box tool.Box, call tool.Call) (tool.Result, error) {
	f.server.set.enter()
	defer f.server.set.leave()
	inSandbox := f.server.def.Kind == Stdio
	if call.Again && !inSandbox && !f.offer.repeatable {
		return f.unknown("The server was restarted while this call was under way"), nil
	}
	for try := 0; ; try++ {
		if !inSandbox { // the runner starts its own, and knows calls that were made before
			problem, err := f.server.reach(ctx)
			if err != nil {
				return tool.Result{}, err
			}
			if problem != "" {
				return failure(fmt.Sprintf("The MCP server %s cannot be used. %s", f.server.def.Name, problem)), nil
			}
		}
		a, err := f.server.link.call(ctx, box, f.offer.name, call)
		switch {
		case err != nil:
			return tool.Result{}, err
		case a.unsent && try == 0: // the connection was old; the call never arrived
			continue
		case a.unsent && a.failed == "":
			return failure(fmt.Sprintf("The MCP server %s cannot be reached; the call was not made.", f.server.def.Name)), nil
		case a.unknown:
			return f.unknown("The connection to the MCP server was lost during this call"), nil
		case a.failed != "":
			return failure(a.failed), nil
		}
		return render(a.raw), nil
	}
}

func (f *foreign) unknown(why string) tool.Result {
	r := failure(why + ", so its outcome is unknown: it may have been done, or not. Look before you call it again.")
	r.Failed, r.Unknown = false, true
	return r
}
