package account

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/settings"
)

const aboutTestMCP = "Connects to each MCP server and lists its tools. Without a body, tests the stored servers; in a body, a masked key or value means the stored one. " +
	"Nothing is stored. The response is 200 even if servers fail: see the result of each server."

// testMCP tries tool servers out. It takes their time, so it does not keep the
// server from stopping.
func (d *Handlers) testMCP(ctx context.Context, c *rest.Call, _ rest.None, in api.MCPConfig) (api.MCPServers, error) {
	out := api.MCPServers{Servers: []api.MCPServerStatus{}}
	if d.TestMCP == nil {
		return out, rest.Fail(http.StatusServiceUnavailable, api.CodeUnavailable, "MCP servers cannot be tested on this server.")
	}
	stored, err := d.Settings.Get(ctx, c.Who.User)
	given := len(bytes.TrimSpace(c.Raw)) > 0
	if errors.Is(err, settings.ErrNotFound) && given {
		err = nil // there is nothing to fill in then
	}
	if err != nil {
		return out, usecase.SettingsMissing(err)
	}
	servers := rest.Deref(stored.MCP)
	if given {
		var faults []api.FieldError
		if servers, faults = settings.CheckMCP(in, stored.MCP, "body"); len(faults) > 0 {
			return out, &api.ValidationError{Detail: faults[:min(len(faults), api.MaxFaults)]}
		}
	}
	if d.Redact != nil {
		d.Redact(servers.SecretValues()...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.Life.Closing, cancel)()
	states, err := d.TestMCP(ctx, c.Who.User, servers)
	out.Servers = append(out.Servers, states...)
	return out, err
}
