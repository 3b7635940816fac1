package mcp

import (
	"context"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/httpapi/status"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/tool/propose"
)

// conversationHeader names the conversation that a pull request belongs to, as
// legacy agents send it.
const conversationHeader = "X-OpenHands-ServerConversation-ID"

// addProposing adds the tools that open pull requests. They are the agent's own tools,
// run as the user of the key.
func addProposing(s *sdk.Server) {
	for _, spec := range propose.Specs() {
		s.AddTool(&sdk.Tool{Name: spec.Name, Description: spec.Description, InputSchema: spec.Schema},
			func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				v, ok := ctx.Value(visitKey{}).(*visit)
				if !ok {
					return nil, errors.New("tool call without a request context")
				}
				r, err := v.propose(spec.Name, req.Params.Arguments)
				if err != nil {
					r = tool.Failf("%s", status.Of(err).Msg)
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Text}}, IsError: r.Failed}, nil
			})
	}
}

// propose runs one of these tools, for the conversation that the request names, if any.
func (v *visit) propose(name string, args []byte) (tool.Result, error) {
	d, user := v.api, v.call.Who.User
	if d.Proposers == nil {
		return tool.Failf("Pull requests cannot be opened on this server."), nil
	}
	id := session.ID(v.call.HTTP.Header.Get(conversationHeader))
	if id != "" {
		if _, err := d.Conversations.Row(v.ctx, user, id); err != nil {
			return tool.Result{}, err
		}
		v.call.Session = string(id)
	}
	tools, err := d.Proposers(v.ctx, user, id)
	if err != nil {
		return tool.Result{}, err
	}
	for _, t := range tools {
		if t.Spec().Name != name {
			continue
		}
		r, err := t.Run(v.ctx, nil, tool.Call{Args: args, Session: string(id), Owner: user})
		if err != nil && v.ctx.Err() == nil {
			d.Logger.ErrorContext(v.ctx, "pull request failed", "tool", name, "error", err)
		}
		return r, err
	}
	return tool.Failf("No token that %s can use is stored. Store one in the settings.", name), nil
}
