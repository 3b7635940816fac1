package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/settings"
)

const aboutTestMCP = "Connects to each tool server and asks for its tools. Without a body the stored servers are tried; in a body a masked key or value stands for the stored one. " +
	"Nothing is stored. The answer is 200 also when servers fail: each says for itself."

// testMCP tries tool servers out. It takes their time, so it does not keep the
// server from stopping.
func testMCP(d *Door, ctx context.Context, c *call, _ none, in api.MCPConfig) (api.MCPServers, error) {
	out := api.MCPServers{Servers: []api.MCPServerStatus{}}
	if d.TestMCP == nil {
		return out, fail(http.StatusServiceUnavailable, api.CodeUnavailable, "This server cannot try tool servers.")
	}
	stored, err := d.Settings.Get(ctx, c.who.User)
	given := len(bytes.TrimSpace(c.raw)) > 0
	if errors.Is(err, settings.ErrNotFound) && given {
		err = nil // there is nothing to fill in then
	}
	if err != nil {
		return out, usecase.SettingsMissing(err)
	}
	servers := deref(stored.MCP)
	if given {
		var faults []api.FieldError
		if servers, faults = settings.CheckMCP(in, stored.MCP, "body"); len(faults) > 0 {
			return out, &api.ValidationError{Detail: faults[:min(len(faults), maxFaults)]}
		}
	}
	if d.Redact != nil {
		d.Redact(servers.SecretValues()...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.closing, cancel)()
	states, err := d.TestMCP(ctx, c.who.User, servers)
	out.Servers = append(out.Servers, states...)
	return out, err
}
